package worker

import (
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// At the start an unreachable or unfit Redis is an error.
func TestStartNeedsRedis(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	nowhere, err := store.Dial(config.Redis{Host: "/no/such.sock", DialTimeout: time.Second}, "t")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nowhere.Close() }()
	evicting := storetest.On(t, redistest.Start(t, redistest.WithConfig("maxmemory-policy", "allkeys-lru")))
	for want, st := range map[error]*store.Store{task.ErrUnreachable: nowhere, task.ErrUnfit: evicting.Store} {
		w, err := assemble(s.options(t, st))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, want) {
			t.Errorf("Run: %v, want %v", err, want)
		}
	}
}

// Nothing is claimed where less than [worker] disk_reserve is free.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.options(t, s.Store)
	o.SpoolDir = hosttest.SmallDisk(t, "1m")
	setting(t, "disk_reserve=2MiB")(&o)
	w, err := assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	var full *disk.FullError
	if err := w.disk.Check(); !errors.As(err, &full) || full.Path != o.SpoolDir || full.Reserve != 2<<20 {
		t.Errorf("%v, want a lack of room in %s", err, o.SpoolDir)
	}
}
