package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

func TestLifecycle(t *testing.T) {
	sp := storetest.New(t)
	daemontest.Battery{
		New: func(tb testing.TB) daemontest.Runner {
			s, err := assemble(withDefaults("s", sp.Dial(tb)))
			if err != nil {
				tb.Fatal(err)
			}
			return s
		},
		Ready: func(d daemontest.Runner) <-chan struct{} {
			s, ok := d.(*Server)
			if !ok {
				t.Fatalf("a %T is no server", d)
			}
			return s.ready
		},
		SecondRun: ErrStarted,
	}.Exercise(t)
}
