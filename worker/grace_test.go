package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

// A kill_grace that outlasts the server's patience is refused, with both settings. Where
// no server has said how long that is, it cannot be.
func TestGraceIsCompared(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t, func(o *options) { o.KillGrace = time.Hour }).log.await(t, "no open task to claim")
	if err := s.Store.PublishGrace(t.Context(), 2*sm.Second); err != nil {
		t.Fatal(err)
	}
	o := s.options(t, s.Dial(t))
	o.Name, o.KillGrace = "long", 2*time.Second
	w, err := assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // a worker that does not refuse runs until it is told to stop
	defer cancel()
	err = w.Run(ctx)
	want := `[worker] kill_grace = "2s": is not shorter than timeout_grace = 2.000000 s of the servers`
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "make it shorter, or [server] timeout_grace longer") {
		t.Errorf("a kill_grace that is too long: %v", err)
	}
	short := s.start(t, func(o *options) { o.Name, o.KillGrace = "other", time.Second })
	short.log.await(t, "no open task to claim")
}
