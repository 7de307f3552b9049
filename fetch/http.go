package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/task"
)

// httpGet downloads src into sink and repeats what may be a passing trouble.
func (f *Fetcher) httpGet(ctx context.Context, src task.Source, sink *sink) error {
	delay := f.opts.retryDelay
	for tries := 0; ; tries++ {
		if err := sink.reset(); err != nil {
			return err
		}
		err := f.getOnce(ctx, src, sink)
		if err == nil || tries == httpRetries || ctx.Err() != nil || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(delay + rand.N(delay+1)):
		}
		delay *= 2
	}
}

// passing says whether a repeated GET may succeed.
func passing(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.code == http.StatusTooManyRequests || status.code >= 500
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
}

func (f *Fetcher) getOnce(ctx context.Context, src task.Source, sink *sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, src.Path, nil)
	if err != nil {
		return fmt.Errorf("%w: '%s': it is no URL", task.ErrInvalidSource, redact(src.Location))
	}
	req.Header.Set("User-Agent", "tdf")
	req.Header.Set("Accept-Encoding", "identity")
	for header, value := range map[string]string{"If-None-Match": sink.known.ETag, "If-Modified-Since": sink.known.Modified} {
		if value != "" {
			req.Header.Set(header, value)
		}
	}
	if err := f.authorize(req); err != nil {
		return err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotModified && sink.known != (validator{}) {
		return errUnchanged
	}
	if err := f.checkResponse(resp, src); err != nil {
		return err
	}
	sink.seen = validator{ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified")}
	return f.receive(ctx, cancel, resp, sink)
}

// receive copies the body, and gives up when nothing comes for StallTimeout.
func (f *Fetcher) receive(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response, sink *sink) error {
	watchdog := time.AfterFunc(f.opts.stallTimeout, func() {
		cancel(fmt.Errorf("%w: nothing came for %v", errStalled, f.opts.stallTimeout))
	})
	defer watchdog.Stop()
	_, err := io.Copy(sink, readerFunc(func(p []byte) (int, error) {
		n, err := resp.Body.Read(p)
		watchdog.Reset(f.opts.stallTimeout)
		return n, err
	}))
	return downloadError(ctx, err, sink.n, resp.ContentLength)
}

// downloadError explains a broken transfer. A body shorter than announced ends
// in io.ErrUnexpectedEOF, which stays visible to errors.Is.
func downloadError(ctx context.Context, err error, got, want int64) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.ErrUnexpectedEOF) && want >= 0:
		return fmt.Errorf("download was truncated: %d of %d bytes: %w", got, want, err)
	default:
		return fmt.Errorf("download broke off after %d bytes: %w", got, err)
	}
}

// checkResponse refuses what cannot be the whole file, byte for byte.
func (f *Fetcher) checkResponse(resp *http.Response, src task.Source) error {
	if resp.StatusCode != http.StatusOK {
		return &statusError{code: resp.StatusCode}
	}
	if resp.ContentLength > f.opts.MaxBytes {
		return &limitError{of: limitDownload, most: f.opts.MaxBytes}
	}
	// Some servers describe a .tar.gz file as a .tar with a gzip encoding.
	encoding := strings.ToLower(resp.Header.Get("Content-Encoding"))
	described := src.Format == task.FormatTarGz && (encoding == "gzip" || encoding == "x-gzip")
	if encoding != "" && encoding != "identity" && !described {
		return fmt.Errorf("server sent content encoding '%s' though none was asked for", printable(encoding))
	}
	if resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && src.SHA256 == "" {
		return fmt.Errorf("%w: the server announces no length, so a truncated file could not be told from a whole one: "+
			"add #sha256=HEX to the source", ErrUnpinned)
	}
	return nil
}

// authorize adds the worker's own credentials for the host, if it has any.
func (f *Fetcher) authorize(req *http.Request) error {
	if f.opts.NetrcFile == "" {
		return nil
	}
	login, password, ok, err := netrcLookup(f.opts.NetrcFile, req.URL.Hostname())
	if err == nil && ok {
		req.SetBasicAuth(login, password)
	}
	return err
}

// withoutURL drops the URL that net/http puts before each error: the source is
// in the log already, and a redirect's target may hold secrets.
func withoutURL(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

// newClient makes the HTTP client of one Fetcher. It keeps no connections: a
// fetch happens once, and idle connections would outlive it.
func newClient(o *Options) (*http.Client, error) {
	trusted, err := tlsConfig(o.CAFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: o.stallTimeout, ControlContext: dialControl}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        trusted,
		TLSHandshakeTimeout:    o.stallTimeout,
		ResponseHeaderTimeout:  o.stallTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		DisableKeepAlives:      true,
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
		return nil, badOption("CAFile", caFile, "name a readable file with PEM certificates: "+err.Error())
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, badOption("CAFile", caFile, "it holds no PEM certificate")
	}
	config.RootCAs = pool
	return config, nil
}

// awsMetadataV6 is the one metadata address outside the link-local ranges.
var awsMetadataV6 = netip.MustParseAddr("fd00:ec2::254")

// dialControl looks at the resolved address, so that no name and no redirect
// leads to the credentials a cloud host offers to its own processes.
func dialControl(_ context.Context, _, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	if ip := addr.Addr().Unmap().WithZone(""); ip.IsLinkLocalUnicast() || ip == awsMetadataV6 {
		return fmt.Errorf("%w: %s is a link-local or metadata address", errForbidden, ip)
	}
	return nil
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

// netrcLookup finds a host's credentials in a netrc file. The default entry
// does not count: tasks choose the host, and would get credentials meant for
// no host in particular. Errors never show the file's content.
func netrcLookup(file, host string) (login, password string, ok bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "", false, fmt.Errorf("read netrc file (%s): %w", setting("NetrcFile"), err)
	}
	words := netrcWords(string(text))
	here := false
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "default":
			here = false
			continue
		case "machine", "login", "password", "account":
		default:
			return "", "", false, fmt.Errorf("netrc file '%s' is malformed at word %d: expected machine, login or password", file, i+1)
		}
		if i+1 == len(words) {
			return "", "", false, fmt.Errorf("netrc file '%s' ends within an entry", file)
		}
		key, value := words[i], words[i+1]
		i++
		switch {
		case key == "machine" && ok:
			return login, password, true, nil
		case key == "machine":
			here = strings.EqualFold(value, host)
			ok = here
		case here && key == "login":
			login = value
		case here && key == "password":
			password = value
		}
	}
	return login, password, ok, nil
}

// netrcWords splits the file into words, without comment lines and macros; a
// macro ends at an empty line.
func netrcWords(text string) []string {
	var words []string
	inMacro := false
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
			inMacro = false
		case inMacro || strings.HasPrefix(fields[0], "#"):
		case fields[0] == "macdef":
			inMacro = true
		default:
			words = append(words, fields...)
		}
	}
	return words
}
