package secrets

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// certificates are the files of an authority made for one test, and a free port.
type certificates struct {
	ca, cert, key, clientCert, clientKey string
	// otherCA signed nothing of this.
	otherCA string
	port    int
}

func issue(t *testing.T) *certificates {
	t.Helper()
	dir := t.TempDir()
	c := &certificates{
		ca: filepath.Join(dir, "ca.pem"), otherCA: filepath.Join(dir, "other.pem"),
		cert: filepath.Join(dir, "redis.pem"), key: filepath.Join(dir, "redis.key"),
		clientCert: filepath.Join(dir, "client.pem"), clientKey: filepath.Join(dir, "client.key"), port: hosttest.Port(t),
	}
	mine := hosttest.NewAuthority(t, c.ca)
	hosttest.NewAuthority(t, c.otherCA)
	mine.Sign(t, c.cert, c.key, "localhost")
	mine.Sign(t, c.clientCert, c.clientKey, "client")
	return c
}

// server are the settings of a Redis that speaks TLS, and demands a certificate of
// its clients if it is strict.
func (c *certificates) server(strict bool) []redistest.Option {
	demand := "no"
	if strict {
		demand = "yes"
	}
	return []redistest.Option{
		redistest.WithConfig("tls-port", fmt.Sprint(c.port)), redistest.WithConfig("tls-cert-file", c.cert),
		redistest.WithConfig("tls-key-file", c.key), redistest.WithConfig("tls-ca-cert-file", c.ca),
		redistest.WithConfig("tls-auth-clients", demand),
	}
}

// All programs work over TLS with certificates of their own, and refuse, with a
// message that helps, an authority they do not know and a name that is not meant. A
// Redis that wants certificates refuses who has none.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := issue(t)
	srv := redistest.Start(t, c.server(true)...)
	base := fmt.Sprintf("host=localhost\nport=%d\ntls=true\n", c.port)
	own := fmt.Sprintf("cert_file=%s\nkey_file=%s\n", c.clientCert, c.clientKey)
	roles := map[string]string{
		"no certificate": base + "ca_file=" + c.ca, "wrong authority": base + own + "ca_file=" + c.otherCA,
		"wrong name": base + own + "server_name=elsewhere\nca_file=" + c.ca, "no authority": base + own,
		"no TLS": fmt.Sprintf("host=localhost\nport=%d\n", c.port),
	}
	r := newRig(t, srv, func(role string) string {
		if lines, found := roles[role]; found {
			return lines
		}
		return base + own + "ca_file=" + c.ca
	})
	r.crew()
	r.becomes(r.submit("ok", "echo done"), "succeeded")
	if out := r.verb("manager", "doctor", "--json").out; !strings.Contains(out, "TLS, at least 1.2") {
		t.Errorf("doctor says nothing of TLS: %s", out)
	}
	for role, want := range map[string]string{
		"no certificate":  "certificate|reset by peer|broken pipe", // whatever comes first
		"wrong authority": "unknown authority", "wrong name": "elsewhere", "no authority": "unknown authority",
		"no TLS": "",
	} {
		got := r.verb(role, "stats")
		if got.code != 3 || !regexp.MustCompile(want).MatchString(got.err) || !strings.Contains(got.err, "[redis]") {
			t.Errorf("%s: ended with %d: %s", role, got.code, got.err)
		}
		for _, name := range []string{"tdf-server", "tdf-worker"} {
			d := r.start(name, "x", r.config(role))
			wait.Closed(t, patience, d.Done, "%s, %s: it does not end", role, name)
			if code := d.ProcessState.ExitCode(); code != 3 || !regexp.MustCompile(want).MatchString(d.Log.String()) {
				t.Errorf("%s, %s: ended with %d: %s", role, name, code, d.Log)
			}
			r.daemons = r.daemons[:len(r.daemons)-1]
		}
	}
}
