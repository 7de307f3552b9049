package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// certified is a Listener with a certificate for node.example.
type certified struct {
	Listener
	authority *hosttest.Authority
	written   time.Time
}

func newCertified(t *testing.T) *certified {
	t.Helper()
	dir := t.TempDir()
	c := &certified{
		Listener: Listener{
			Section: "http", Key: "listen", Address: "127.0.0.1:0", Timeout: time.Minute,
			CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
		},
		authority: hosttest.NewAuthority(t, filepath.Join(dir, "ca.pem")), written: time.Now().Add(-time.Hour),
	}
	c.renew(t)
	return c
}

func (c *certified) renew(t *testing.T) {
	t.Helper()
	c.authority.Sign(t, c.CertFile, c.KeyFile, "node.example")
	c.touch(t, c.CertFile)
	c.touch(t, c.KeyFile)
}

func (c *certified) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.touch(t, file)
}

// touch gives a file another time than ever before, however coarse the clock of the file system is.
func (c *certified) touch(t *testing.T, file string) {
	t.Helper()
	c.written = c.written.Add(time.Second)
	if err := os.Chtimes(file, c.written, c.written); err != nil {
		t.Fatal(err)
	}
}

// serial is the number of the certificate in the file.
func (c *certified) serial(t *testing.T) *big.Int {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber
}

func (c *certified) serve(t *testing.T) (url string) {
	t.Helper()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	url, stop, err := c.Serve(t.Context(), hello, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

// answer is one over TLS.
type answer struct {
	code, protocol int
	kind, text     string
	serial         *big.Int // of the certificate
}

// ask sends a request to node.example, over a connection of its own with at most a version of TLS, as a page of the host named does.
func (c *certified) ask(t *testing.T, url, host string, version uint16) (a answer, err error) {
	t.Helper()
	address := strings.TrimPrefix(url, "https://")
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		TLSClientConfig:   &tls.Config{RootCAs: c.authority.Pool, MinVersion: tls.VersionTLS10, MaxVersion: version},
		ForceAttemptHTTP2: version == 0, // HTTP/2 refuses an old version by itself
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://node.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	reply, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	serial := reply.TLS.PeerCertificates[0].SerialNumber
	return answer{reply.StatusCode, reply.ProtoMajor, reply.Header.Get("Content-Type"), string(text), serial}, err
}

func TestServesOverTLS(t *testing.T) {
	t.Parallel()
	c := newCertified(t)
	url := c.serve(t)
	if !strings.HasPrefix(url, "https://127.0.0.1:") {
		t.Errorf("it answers at %s", url)
	}
	for _, host := range []string{"", "node.example", "node.example:7480", "localhost", "127.0.0.1:1", "[::1]"} {
		if a, err := c.ask(t, url, host, 0); err != nil || a.code != http.StatusOK || a.text != "hello" || a.protocol != 2 {
			t.Errorf("asked for %q: %+v %v", host, a, err)
		}
	}
	if _, err := c.ask(t, url, "", tls.VersionTLS12); err != nil {
		t.Errorf("over TLS 1.2: %v", err)
	}
	if _, err := c.ask(t, url, "", tls.VersionTLS11); err == nil {
		t.Error("it speaks TLS 1.1")
	}
	if code, text, err := askProfiles(t.Context(), "http"+strings.TrimPrefix(url, "https"), ""); err == nil && code != http.StatusBadRequest {
		t.Errorf("without TLS: %d %s", code, text)
	}
	a, err := c.ask(t, url, "evil.example", 0)
	if err != nil || a.code != http.StatusForbidden || a.kind != "application/problem+json" {
		t.Fatalf("asked for another host: %+v %v", a, err)
	}
	var problem struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(a.text), &problem); err != nil || problem.Type != "about:blank" || problem.Title != "Forbidden" ||
		problem.Status != http.StatusForbidden || problem.Detail == "" {
		t.Errorf("the problem is %s (%v)", a.text, err)
	}
}

// With a certificate other hosts may connect, by any name.
func TestServesOthersOverTLS(t *testing.T) {
	t.Parallel()
	c := newCertified(t)
	c.Address = "0.0.0.0:0"
	url := c.serve(t)
	if a, err := c.ask(t, url, "alias.example", 0); err != nil || a.code != http.StatusOK || a.text != "hello" {
		t.Errorf("%+v %v", a, err)
	}
}

func TestRenewedCertificateIsUsed(t *testing.T) {
	t.Parallel()
	c := newCertified(t)
	url := c.serve(t)
	used := func() *big.Int {
		a, err := c.ask(t, url, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.serial
	}
	if number := used(); number.Cmp(c.serial(t)) != 0 {
		t.Errorf("it uses %v, want %v", number, c.serial(t))
	}
	c.renew(t)
	want := c.serial(t)
	wait.Eventually(t, time.Minute, func() bool { return used().Cmp(want) == 0 }, "the renewed certificate is not used")
}

// What cannot be read does not take the place of what could, and is told once.
func TestBrokenCertificateIsNotUsed(t *testing.T) {
	t.Parallel()
	c := newCertified(t)
	var log bytes.Buffer
	own, err := c.certificate(slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := own.looked
	is := func(what string, want *big.Int, after time.Duration, told string) {
		t.Helper()
		now = now.Add(after)
		if number := own.at(now).Leaf.SerialNumber; number.Cmp(want) != 0 {
			t.Errorf("%s: it uses %v, want %v", what, number, want)
		}
		if text := log.String(); !strings.Contains(text, told) || told == "" && text != "" || strings.Count(text, "\n") > 1 {
			t.Errorf("%s: it says %q, want %q", what, text, told)
		}
		log.Reset()
	}
	first := c.serial(t)
	c.renew(t)
	second := c.serial(t)
	is("before it looks", first, lookEvery-1, "")
	is("when it looks", second, 1, `"level":"INFO"`)
	is("unchanged", second, lookEvery, "")
	key, err := os.ReadFile(c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, c.KeyFile, "nothing")
	is("with a broken key", second, lookEvery, `"level":"WARN"`)
	is("with the same key", second, lookEvery, "")
	c.write(t, c.KeyFile, string(key))
	is("with its key again", second, lookEvery, `"level":"INFO"`)
	c.write(t, c.CertFile, "nothing")
	is("broken", second, lookEvery, `[http] cert_file`)
	is("still broken", second, lookEvery, "")
	if err := os.Remove(c.CertFile); err != nil {
		t.Fatal(err)
	}
	is("gone", second, lookEvery, "no such file")
	is("still gone", second, lookEvery, "")
	c.renew(t)
	is("renewed", c.serial(t), lookEvery, `"level":"INFO"`)
}

func TestRefusedCertificates(t *testing.T) {
	t.Parallel()
	for says, breaks := range map[string]func(*certified){
		"no such file":   func(c *certified) { c.CertFile = "/no/such.pem" },
		"/no/such.pem":   func(c *certified) { c.KeyFile = "/no/such.pem" },
		"does not match": func(c *certified) { c.authority.Sign(t, c.CertFile+"2", c.KeyFile, "node.example") },
		"any PEM data":   func(c *certified) { c.write(t, c.CertFile, "nothing") },
	} {
		c := newCertified(t)
		breaks(c)
		_, _, err := c.Serve(t.Context(), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		e, ok := errors.AsType[*config.Error](err)
		if !ok || !errors.Is(err, config.ErrInvalid) || e.Section != "http" || e.Key != "cert_file" || e.Value != c.CertFile ||
			e.Remedy == "" || !strings.Contains(e.Problem, c.KeyFile) || !strings.Contains(e.Problem, says) {
			t.Errorf("%v, want %q", err, says)
		}
		if strings.Contains(says, "such") && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v does not wrap its cause", err)
		}
	}
}
