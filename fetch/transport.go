package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
)

// newClient makes the HTTP client of one Fetcher. It keeps no connections: a
// fetch happens once, and idle connections would outlive it.
func newClient(o *Options) (*http.Client, error) {
	trusted, err := tlsConfig(o.CAFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: o.StallTimeout, ControlContext: dialControl(o.AllowLinkLocal)}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        trusted,
		TLSHandshakeTimeout:    o.StallTimeout,
		ResponseHeaderTimeout:  o.StallTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		DisableKeepAlives:      true,
	}
	if o.ProxyFromEnvironment {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{Transport: transport, CheckRedirect: checkRedirect(o.MaxRedirects)}, nil
}

func tlsConfig(caFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, &OptionError{"CAFile", caFile, "name a readable file with PEM certificates: " + err.Error()}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &OptionError{"CAFile", caFile, "it holds no PEM certificate"}
	}
	config.RootCAs = pool
	return config, nil
}

// awsMetadataV6 is the one metadata address outside the link-local ranges.
var awsMetadataV6 = netip.MustParseAddr("fd00:ec2::254")

// dialControl looks at the resolved address, so that no name and no redirect
// leads to the credentials a cloud host offers to its own processes.
func dialControl(allowLinkLocal bool) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: %w", address, err)
		}
		ip := addr.Addr().Unmap().WithZone("")
		if !allowLinkLocal && (ip.IsLinkLocalUnicast() || ip == awsMetadataV6) {
			return fmt.Errorf("%w: %s is a link-local or metadata address", ErrForbidden, ip)
		}
		return nil
	}
}

// errRedirect is wrapped by refused redirects.
var errRedirect = errors.New("redirect refused")

func checkRedirect(limit int) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > limit {
			return fmt.Errorf("%w: more than %d redirects (%s)", errRedirect, limit, setting("MaxRedirects"))
		}
		if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
			return fmt.Errorf("%w: to scheme '%s'", errRedirect, printable(req.URL.Scheme))
		}
		if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http" {
			return fmt.Errorf("%w: from https to http", errRedirect)
		}
		if req.URL.User != nil {
			return fmt.Errorf("%w: it carries credentials", errRedirect)
		}
		req.Header.Del("Referer")
		for _, earlier := range append(via[1:len(via):len(via)], req) {
			if !sameOrigin(via[0].URL, earlier.URL) {
				req.Header.Del("Authorization")
			}
		}
		return nil
	}
}

// sameOrigin is stricter than net/http, which lets credentials go to
// subdomains and other ports. Going from http to https is the one exception.
func sameOrigin(a, b *url.URL) bool {
	if a.Hostname() != b.Hostname() {
		return false
	}
	upgrade := a.Scheme == "http" && a.Port() == "" && b.Scheme == "https" && b.Port() == ""
	return upgrade || a.Scheme == b.Scheme && a.Port() == b.Port()
}
