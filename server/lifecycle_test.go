package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/lifecycletest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

func TestLifecycle(t *testing.T) {
	sp := storetest.New(t)
	lifecycletest.Battery{
		New: func(tb testing.TB) lifecycletest.Daemon {
			s, err := New(Options{Name: "s", Store: sp.Dial(tb)})
			if err != nil {
				tb.Fatal(err)
			}
			return s
		},
		Ready: func(d lifecycletest.Daemon) <-chan struct{} {
			s, ok := d.(*Server)
			if !ok {
				t.Fatalf("a %T is no server", d)
			}
			return s.ready
		},
		SecondRun: ErrStarted,
	}.Exercise(t)
}
