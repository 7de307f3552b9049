package store_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/embedded"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRedis(t *testing.T) {
	t.Parallel()
	exercise(t, func(tb testing.TB) *storetest.Space { return storetest.New(tb) })
}

func TestLongEmbedded(t *testing.T) {
	t.Parallel()
	exercise(t, onEmbedded)
}

// patient is the limit of a call to a Redis whose Lua is interpreted in Go, on the processors that the tests share: a
// busy machine is slow, not broken.
const patient = time.Minute

// onEmbedded is storetest.New on a Redis inside the process.
func onEmbedded(tb testing.TB) *storetest.Space {
	tb.Helper()
	where, end, err := embedded.Start(config.Redis{
		Host: config.EmbeddedHost, DialTimeout: patient, ReadTimeout: patient, WriteTimeout: patient,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(end)
	sp := &storetest.Space{Namespace: redistest.Namespace(tb), Where: where}
	sp.Store = sp.Dial(tb)
	sp.Raw = redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(where.Host, strconv.Itoa(where.Port)), Protocol: 2, DisableIdentity: true,
		ReadTimeout: patient,
	})
	tb.Cleanup(func() { _ = sp.Raw.Close() })
	return sp
}
