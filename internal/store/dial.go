package store

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tdf-go/tdf/internal/base/config"
)

// universal translates the [redis] section. Commands are repeated after
// network errors (go-redis' default), which is safe because every script may
// be sent twice.
func universal(where config.Redis) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{
		Username: where.Username, Password: where.Password, DB: where.DB,
		DialTimeout: where.DialTimeout, ReadTimeout: where.ReadTimeout, WriteTimeout: where.WriteTimeout,
		MinRetryBackoff: 20 * time.Millisecond, MaxRetryBackoff: time.Second,
		ContextTimeoutEnabled: true,
		// One try a connection: commands are repeated already, and both together
		// would take minutes to say that a host is not there.
		DialerRetries: 1,
		// CLIENT SETINFO and CLIENT MAINT_NOTIFICATIONS are newer than the oldest
		// supported Redis, and an access list that names them fails to load there.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Protocol:                 2,
	}
	switch {
	case where.Cluster():
		o.Addrs, o.IsClusterMode = where.ClusterAddrs, true
	case where.Sentinel():
		o.Addrs, o.MasterName, o.SentinelPassword = where.SentinelAddrs, where.SentinelMaster, where.SentinelPassword
	default:
		_, addr := where.Addr()
		o.Addrs = []string{addr}
	}
	var err error
	o.TLSConfig, err = tlsConfig(where)
	return o, err
}

func tlsConfig(where config.Redis) (*tls.Config, error) {
	if !where.TLS {
		return nil, nil //nolint:nilnil // go-redis takes nil for "no TLS"
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: where.ServerName}
	if c.ServerName == "" {
		c.ServerName = where.Host
	}
	if where.CAFile != "" {
		pem, err := os.ReadFile(where.CAFile)
		if err != nil {
			return nil, tlsError("ca_file", where.CAFile, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, tlsError("ca_file", where.CAFile, fmt.Errorf("%w: no certificate in the file", ErrUnfit))
		}
	}
	if where.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(where.CertFile, where.KeyFile)
		if err != nil {
			return nil, tlsError("cert_file", where.CertFile, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func tlsError(key, file string, err error) error {
	return &SetupError{Setting: "[redis] " + key, Value: file, Err: err, Remedy: "name a readable PEM file"}
}

// Silence stops the Redis client from writing to stderr by itself, for the
// whole process. It is for programs that log every fault themselves, and is
// called once at the start; a library leaves the choice to its user.
func Silence() { logging.Disable() }
