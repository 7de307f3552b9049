package worker

import (
	"errors"
	"math"
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

func TestOptions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, change := range map[string]func(*options){
		"Backend":       func(o *options) { o.Backend = nil },
		"Slots":         func(o *options) { o.Slots = 0 },
		"OutputLimit":   func(o *options) { o.OutputLimit = 0 },
		"ErrorFile":     func(o *options) { o.OutputFile, o.ErrorFile = "x", "./x" },
		"TempDir":       func(o *options) { o.TempDir = "/no/such/dir" },
		"SleepInitial":  func(o *options) { o.SleepInitial = 0 },
		"SleepMax":      func(o *options) { o.SleepMax = 0 },
		"SleepIncrease": func(o *options) { o.SleepIncrease = math.NaN() },
		"Env":           func(o *options) { o.Env = "a b" },
		"Labels":        func(o *options) { o.Labels = []string{"zone"} },
		"Resources":     func(o *options) { o.Resources = map[string]int{"gpu": 0} },
		"Classes":       func(o *options) { o.Classes = []string{"a,b"} },
		"Programs":      func(o *options) { o.container = nil },
		"OnRedisLoss":   func(o *options) { o.OnRedisLoss = "wait" },
		"MaxThreads":    func(o *options) { o.MaxThreads = task.AtMost(-2) },
	} {
		o := s.options(t, s.Store)
		change(&o)
		_, err := assemble(o)
		var wrong *OptionError
		if !errors.As(err, &wrong) || wrong.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"a/b", "a\nb", ".."} {
		o := Options{Name: name, Backend: s.Store}
		if _, err := New(nil, o); !errors.Is(err, config.ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

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
