package doctor

import (
	"net"
	"strings"

	"github.com/tdf-go/tdf/internal/base/config"
)

// judgeNetwork looks at who can listen in.
func judgeNetwork(f *Facts) []Finding {
	const check = "network"
	switch {
	case f.Redis.TLS:
		return ok(check, "TLS, at least 1.2")
	case local(&f.Redis):
		return ok(check, "Redis is on this host")
	default:
		return warn(check, "no TLS, and Redis is on another host: passwords and tasks can be read on the way",
			"tls=true and ca_file in [redis], tls-port in redis.conf; or a network that nobody else is in")
	}
}

// judgeSecrets looks at the files that passwords and keys are read from.
func judgeSecrets(f *Facts) []Finding {
	const check = "secrets"
	if len(f.Exposed) == 0 {
		return ok(check, "no file with a secret can be read by every user of this host")
	}
	return fail(check, strings.Join(f.Exposed, ", ")+" can be read by every user of this host", "chmod 600, and a new password")
}

// local reports whether all of Redis is reached without a network.
func local(r *config.Redis) bool {
	addresses := append(append([]string{}, r.ClusterAddrs...), r.SentinelAddrs...)
	if len(addresses) == 0 {
		network, address := r.Addr()
		if network == "unix" {
			return true
		}
		addresses = []string{address}
	}
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		ip := net.ParseIP(host)
		if err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}
