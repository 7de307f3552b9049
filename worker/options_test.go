package worker

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, change := range map[string]func(*Options){
		"Backend":                    func(o *Options) { o.Backend = nil },
		"Programs":                   func(o *Options) { o.Programs = nil },
		"Slots":                      func(o *Options) { o.Slots = 0 },
		"DiskReserve":                func(o *Options) { o.DiskReserve = -1 },
		"KeepRounds":                 func(o *Options) { o.KeepRounds = -1 },
		"OutputLimit":                func(o *Options) { o.OutputLimit = 0 },
		"ErrorFile":                  func(o *Options) { o.OutputFile, o.ErrorFile = "x", "./x" },
		"DrainTimeout":               func(o *Options) { o.DrainTimeout = -1 },
		"TempDir":                    func(o *Options) { o.TempDir = "/no/such/dir" },
		"SleepAfterSuccess":          func(o *Options) { o.SleepAfterSuccess = -1 },
		"SleepAfterFailure":          func(o *Options) { o.SleepAfterFailure = -1 },
		"SleepAfterNoProcessClaimed": func(o *Options) { o.SleepAfterNoProcessClaimed = -1 },
		"SleepInitial":               func(o *Options) { o.SleepInitial = 0 },
		"SleepMax":                   func(o *Options) { o.SleepMax = 0 },
		"SleepIncrease":              func(o *Options) { o.SleepIncrease = math.NaN() },
		"Env":                        func(o *Options) { o.Env = "a b" },
		"Labels":                     func(o *Options) { o.Labels = []string{"zone"} },
		"Resources":                  func(o *Options) { o.Resources = map[string]int{"gpu": 0} },
		"Classes":                    func(o *Options) { o.Classes = []string{"a,b"} },
		"MaxThreads":                 func(o *Options) { o.MaxThreads = -2 },
		"KillGrace":                  func(o *Options) { o.KillGrace = -1 },
		"StopTimeout":                func(o *Options) { o.StopTimeout = 0 },
	} {
		o := s.options(t, s.Store)
		change(&o)
		_, err := New(o)
		var wrong *OptionError
		if !errors.As(err, &wrong) || wrong.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "a/b", "a\nb", ".."} {
		o := s.options(t, s.Store)
		o.Name = name
		if _, err := New(o); !errors.Is(err, config.ErrInvalid) {
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
	for want, st := range map[error]*store.Store{conn.ErrUnreachable: nowhere, conn.ErrUnfit: evicting.Store} {
		w, err := New(s.options(t, st))
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
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var full *disk.FullError
	if err := w.disk.Check(); !errors.As(err, &full) || full.Path != o.SpoolDir || full.Reserve != 2<<20 {
		t.Errorf("%v, want a lack of room in %s", err, o.SpoolDir)
	}
}
