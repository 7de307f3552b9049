package cli

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is that of a Listener. Its files are read again when they change, so that a renewed one is used without a restart.
type certificate struct {
	Listener
	log *slog.Logger

	mu     sync.Mutex
	looked time.Time
	read   [2]version // of the two files when they were read, also in vain
	pair   *tls.Certificate
}

// version is what changes when a file is written; zero if there is no file.
type version struct{ changed, size int64 }

// lookEvery is how long a certificate is used without a look at its files.
const lookEvery = time.Second

// certificate returns nil for a Listener without one.
func (l Listener) certificate(log *slog.Logger) (*certificate, error) {
	if l.CertFile == "" {
		return nil, nil //nolint:nilnil // none is asked for
	}
	c := &certificate{Listener: l, log: log, looked: time.Now()}
	c.read = c.versions()
	return c, c.load()
}

func (c *certificate) versions() (v [2]version) {
	for i, file := range []string{c.CertFile, c.KeyFile} {
		if info, err := os.Stat(file); err == nil {
			v[i] = version{info.ModTime().UnixNano(), info.Size()}
		}
	}
	return v
}

func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return c.refused("cert_file", c.CertFile, fmt.Sprintf("cannot be used with key_file %s: %v", c.KeyFile, err),
			"name readable PEM files of a certificate and its key", err)
	}
	c.pair = &pair
	return nil
}

// at returns the certificate to use at a time.
func (c *certificate) at(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) < lookEvery {
		return c.pair
	}
	c.looked = now
	found := c.versions()
	if found == c.read {
		return c.pair
	}
	c.read = found
	if err := c.load(); err != nil {
		c.log.Warn("the certificate has changed and cannot be read; the one before stays in use", "error", err)
	} else {
		c.log.Info("the certificate has changed and is used", "file", c.CertFile, "not_after", c.pair.Leaf.NotAfter)
	}
	return c.pair
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.at(time.Now()), nil
	}}
}

// names reports whether the certificate is for a host. A Listener without one has no names.
func (c *certificate) names(host string) bool {
	return c != nil && c.at(time.Now()).Leaf.VerifyHostname(host) == nil
}
