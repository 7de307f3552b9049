package tdf

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Config says where a site is. Only Namespace is required; the zero value of every
// other field stands for its default. docs/CONFIGURATION.md has the limits, under the
// name of the key.
type Config struct {
	// Addr is where Redis is: host:port, host, or the absolute path of a unix socket.
	// Default localhost:6379 ([redis] host, port).
	Addr string
	// Namespace is the prefix of all keys, which tells apart the sites on one Redis
	// ([tdf] namespace). Required.
	Namespace string
	// Username and Password are a login of Redis. Default: none.
	Username, Password string
	// DB is the index of the database.
	DB int

	// TLS encrypts the connections, at least with TLS 1.2. CAFile is a PEM file of the
	// authorities to trust instead of the system's, CertFile and KeyFile are a client
	// certificate, ServerName is the name expected in the server's certificate, by default
	// the host's.
	TLS                                   bool
	CAFile, CertFile, KeyFile, ServerName string

	// SentinelMaster names the master; the sentinels at SentinelAddrs, host:port each, say
	// where it is, in place of Addr.
	SentinelMaster   string
	SentinelAddrs    []string
	SentinelPassword string
	// ClusterAddrs are some nodes of a Redis Cluster, host:port each, in place of Addr.
	// Namespace must be in braces then, such as {hello}.
	ClusterAddrs []string

	// DialTimeout, ReadTimeout and WriteTimeout bound a connection attempt, a reply and a
	// command. Default 5 s, 3 s, 3 s.
	DialTimeout, ReadTimeout, WriteTimeout time.Duration
	// Durability is fast, safe or ha: what Redis must keep of what it has acknowledged.
	// Default fast. With ha, ReplicationTimeout bounds the wait for a replica, default 1 s.
	Durability         string
	ReplicationTimeout time.Duration

	// Logger receives the log of the site, and of everything made from it that has no
	// logger of its own. Default: slog.Default().
	Logger *slog.Logger

	file *config.File // what Load has read; nil without it
}

// Load reads a configuration file as the commands do, with the environment
// (TDF_SECTION_KEY), which wins. With an empty name everything comes from the
// environment. What the sections [worker], [server], [manager] and [task_defaults] say
// is the default of whatever is made from the site.
//
// The error names file, line, key and value, and what to write.
func Load(file string) (Config, error) {
	f, err := config.Load(file, config.ForManager)
	if err != nil {
		return Config{}, err
	}
	r := f.Redis
	c := Config{
		Namespace: f.TDF.Namespace, Username: r.Username, Password: r.Password, DB: r.DB,
		TLS: r.TLS, CAFile: r.CAFile, CertFile: r.CertFile, KeyFile: r.KeyFile, ServerName: r.ServerName,
		SentinelMaster: r.SentinelMaster, SentinelAddrs: r.SentinelAddrs, SentinelPassword: r.SentinelPassword,
		ClusterAddrs: r.ClusterAddrs,
		DialTimeout:  r.DialTimeout, ReadTimeout: r.ReadTimeout, WriteTimeout: r.WriteTimeout,
		Durability: r.Durability, ReplicationTimeout: r.ReplicationTimeout,
		file: f,
	}
	if !r.Sentinel() && !r.Cluster() {
		_, c.Addr = r.Addr()
	}
	return c, nil
}

// complete checks the fields by the rules of a file, and returns the configuration that
// they are part of.
func (c *Config) complete() (*config.File, error) {
	if c.Namespace == "" {
		return nil, fmt.Errorf("%w: tdf.Config.Namespace is required; name the namespace, for example \"hello\"", config.ErrMissing)
	}
	checked, err := config.Load("", config.ForManager, config.WithEnviron(nil), config.WithValues(c.values()...))
	if err != nil || c.file == nil {
		return checked, err
	}
	all := *c.file
	all.Redis, all.TDF.Namespace = checked.Redis, checked.TDF.Namespace
	return &all, nil
}

// values are the fields that are set, as a file has them.
func (c *Config) values() []config.Value {
	host, port := c.Addr, ""
	if host == "" && c.SentinelMaster == "" && len(c.ClusterAddrs) == 0 {
		host = "localhost"
	}
	if h, p, err := net.SplitHostPort(c.Addr); err == nil && !strings.HasPrefix(c.Addr, "/") {
		host, port = h, p
	}
	all := []config.Value{{Section: "tdf", Key: "namespace", Text: c.Namespace, Name: "tdf.Config.Namespace"}}
	for _, v := range [][3]string{
		{"host", host, "Addr"}, {"port", port, "Addr"},
		{"username", c.Username, "Username"}, {"password", c.Password, "Password"},
		{"db", number(c.DB), "DB"},
		{"tls", truth(c.TLS), "TLS"}, {"ca_file", c.CAFile, "CAFile"},
		{"cert_file", c.CertFile, "CertFile"}, {"key_file", c.KeyFile, "KeyFile"},
		{"server_name", c.ServerName, "ServerName"},
		{"sentinel_master", c.SentinelMaster, "SentinelMaster"},
		{"sentinel_addrs", strings.Join(c.SentinelAddrs, ","), "SentinelAddrs"},
		{"sentinel_password", c.SentinelPassword, "SentinelPassword"},
		{"cluster_addrs", strings.Join(c.ClusterAddrs, ","), "ClusterAddrs"},
		{"dial_timeout", seconds(c.DialTimeout), "DialTimeout"},
		{"read_timeout", seconds(c.ReadTimeout), "ReadTimeout"},
		{"write_timeout", seconds(c.WriteTimeout), "WriteTimeout"},
		{"durability", c.Durability, "Durability"},
		{"replication_timeout", seconds(c.ReplicationTimeout), "ReplicationTimeout"},
	} {
		if v[1] != "" {
			all = append(all, config.Value{Section: "redis", Key: v[0], Text: v[1], Name: "tdf.Config." + v[2]})
		}
	}
	return all
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func truth(is bool) string {
	if !is {
		return ""
	}
	return "true"
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}
