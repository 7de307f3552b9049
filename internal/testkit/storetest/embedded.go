package storetest

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/embedded"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// Embedded is New on a Redis inside the process.
func Embedded(tb testing.TB) *Space {
	tb.Helper()
	where, end, err := embedded.Start(config.Redis{
		Host: config.EmbeddedHost, DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(end)
	sp := &Space{Namespace: redistest.Namespace(tb), Where: where}
	sp.Store = sp.Dial(tb)
	sp.Raw = redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(where.Host, strconv.Itoa(where.Port)), Protocol: 2, DisableIdentity: true,
	})
	tb.Cleanup(func() { _ = sp.Raw.Close() })
	return sp
}
