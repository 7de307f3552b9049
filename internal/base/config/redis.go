package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"strings"
	"time"
)

// EmbeddedHost is the value of [redis] host with which a server starts a Redis
// of its own inside the process, for trials; nothing survives its end.
const EmbeddedHost = "embedded"

// Redis holds the section [redis]: which server to use and how to reach it.
type Redis struct {
	// Host is a name, an IP address, the absolute path of a unix socket, or
	// "embedded" (only for the server; see Embedded). Default localhost.
	Host string
	// Port is the TCP port (default 6379). 0 is allowed with an embedded Redis
	// only and means any free port.
	Port int
	// Username is the ACL user; empty means Redis' default user.
	Username string
	// Password authenticates the user; empty means none. Never print it.
	Password string `json:"-"`
	// PasswordFile names the file Password was read from; empty if none.
	PasswordFile string
	// DB is the index of the database (default 0).
	DB int

	// TLS encrypts the connection (at least TLS 1.2).
	TLS bool
	// CAFile holds the PEM certificates to trust instead of the system's.
	CAFile string
	// CertFile and KeyFile hold the PEM client certificate; both or neither.
	CertFile, KeyFile string
	// ServerName is the name expected in the server's certificate; empty means Host.
	ServerName string

	// SentinelMaster is the name of the master to ask the sentinels for; with
	// it, Host and Port are not used.
	SentinelMaster string
	// SentinelAddrs are the sentinels, each host:port.
	SentinelAddrs []string
	// SentinelPassword authenticates at the sentinels; empty means none. Never print it.
	SentinelPassword string `json:"-"`

	// ClusterAddrs are some nodes of a Redis Cluster, each host:port; with
	// them, Host and Port are not used.
	ClusterAddrs []string

	// DialTimeout limits making a connection (default 5s).
	DialTimeout time.Duration
	// ReadTimeout limits waiting for a reply that is not a blocking read (default 3s).
	ReadTimeout time.Duration
	// WriteTimeout limits sending a command (default 3s).
	WriteTimeout time.Duration

	// Durability is what Redis is expected to keep: DurabilityFast (default),
	// DurabilitySafe or DurabilityHA.
	Durability string
	// ReplicationTimeout limits waiting for a replica, under DurabilityHA (default 1s).
	ReplicationTimeout time.Duration
}

// The values of [redis] durability.
const (
	DurabilityFast = "fast"
	DurabilitySafe = "safe"
	DurabilityHA   = "ha"
)

// Embedded reports whether the server is to start a Redis inside its process.
func (r Redis) Embedded() bool { return r.Host == EmbeddedHost }

// Sentinel reports whether the master is to be found through sentinels.
func (r Redis) Sentinel() bool { return r.SentinelMaster != "" }

// Cluster reports whether Redis is a cluster.
func (r Redis) Cluster() bool { return len(r.ClusterAddrs) > 0 }

// Addr returns the network ("tcp" or "unix") and address of a single Redis. An
// embedded one has the loopback address on which it listens.
func (r Redis) Addr() (network, address string) {
	port := strconv.Itoa(r.Port)
	switch {
	case strings.HasPrefix(r.Host, "/"):
		return "unix", r.Host
	case r.Embedded():
		return "tcp", net.JoinHostPort("127.0.0.1", port)
	default:
		return "tcp", net.JoinHostPort(strings.Trim(r.Host, "[]"), port)
	}
}

// String describes where Redis is, without any secret, for logs and errors.
func (r Redis) String() string {
	db := " db " + strconv.Itoa(r.DB)
	switch {
	case r.Cluster():
		return "cluster " + strings.Join(r.ClusterAddrs, ",")
	case r.Sentinel():
		return "sentinel " + r.SentinelMaster + "@" + strings.Join(r.SentinelAddrs, ",") + db
	default:
		_, address := r.Addr()
		return address + db
	}
}

// Mark is a short text that is the same for the same description of a Redis: it
// keeps what belongs to one Redis apart from the same names of another on a host.
func (r Redis) Mark() string {
	sum := sha256.Sum256([]byte(r.String()))
	return hex.EncodeToString(sum[:4])
}

// GoString is like String: %#v cannot leak a password.
func (r Redis) GoString() string { return "config.Redis(" + r.String() + ")" }
