package worker

import (
	"testing"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

// A kill_grace that outlasts the server's patience is said, with both settings.
func TestGraceIsCompared(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.Store.PublishGrace(t.Context(), 2*sm.Second); err != nil {
		t.Fatal(err)
	}
	s.start(t, func(o *Options) { o.KillGrace = 2 * time.Second }).log.await(t, "[worker] kill_grace = 2s is not shorter")
	short := s.start(t, func(o *Options) { o.Name, o.KillGrace = "other", time.Second })
	short.log.await(t, "no open task to claim")
	if n := short.log.count("kill_grace"); n != 0 {
		t.Errorf("warned %d times of a kill_grace that is short enough", n)
	}
}
