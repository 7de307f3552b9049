package worker_test

import (
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tdf-go/tdf/httpapi"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

func init() { worker.ServeSite = serveOnce } //nolint:gochecknoinits // a test of the package itself cannot import httpapi

// served are the servers of spaces, by namespace and the worker that has a token.
var served sync.Map

// serveOnce serves a space until the test ends that asks first.
func serveOnce(tb testing.TB, sp *storetest.Space, name string) (url, token string) {
	tb.Helper()
	once, _ := served.LoadOrStore(sp.Namespace+"/"+name, sync.OnceValues(func() (string, string) { return serveSite(tb, sp, name) }))
	return once.(func() (string, string))()
}

// serveSite serves a space as a server does.
func serveSite(tb testing.TB, sp *storetest.Space, name string) (url, token string) {
	tb.Helper()
	m := manager.New(storetest.At(tb, sp.Where, sp.Namespace, nil), "test", manager.Options{})
	g, err := worker.NewGateway(storetest.At(tb, sp.Where, sp.Namespace, nil), 10)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = g.Close() })
	token, _, err = m.NewToken(tb.Context(), task.TokenSpec{Name: name, Role: task.TokenWork}, manager.ChangeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	srv := httptest.NewServer(httpapi.New(httpapi.Options{Manager: m, Gateway: g, Logger: slog.New(slog.DiscardHandler)}))
	tb.Cleanup(srv.Close)
	return srv.URL, token
}
