package doctor

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A server that is alive while the facts are read has never been seen in the future.
func TestServerIsSeenBeforeTheTime(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	proxy := sp.Server.Proxy(t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	far := *sp
	far.Where.Host = host
	if far.Where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	proxy.DropReply(func([]string) bool { // the server is seen again after each answer, which is not dropped
		sp.Raw.HSet(t.Context(), sp.Key("meta"), "server_seen", statemachine.Time(time.Now().UnixMicro()).Text())
		return false
	})
	var f Facts
	for range 3 { // the first answers make the connection ready
		if err := f.namespace(t.Context(), far.Dial(t)); err != nil {
			t.Fatal(err)
		}
		if f.ServerSeen == 0 || f.ServerSeen > f.Now {
			t.Errorf("seen at %s, and it is %s", f.ServerSeen.Text(), f.Now.Text())
		}
	}
}
