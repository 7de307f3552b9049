package redistest_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// A command that is refused gets the error in its place, and is not carried out.
func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	proxy := srv.Proxy(t)
	c := client(t, "tcp", proxy.Addr())
	proxy.Refuse(redistest.Command("SET"), "OOM command not allowed")
	cmds, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Ping(t.Context())
		p.Set(t.Context(), "k", "v", 0)
		p.Get(t.Context(), "k")
		return nil
	})
	if err == nil || cmds[0].Err() != nil || !strings.HasPrefix(cmds[1].Err().Error(), "OOM ") || cmds[2].Err() != redis.Nil { //nolint:errorlint // it is not wrapped
		t.Errorf("answers %v, error %v", cmds, err)
	}
	proxy.Accept()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Errorf("after that: %v", err)
	}
}
