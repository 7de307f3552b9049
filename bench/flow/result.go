package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tdf-go/tdf/bench/stats"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/statemachine"
)

// tolerance is how far from their median all figures of memory may be, and how much the last ones may differ from the first ones.
const tolerance = 0.10

// span is what a figure was from the end of the warm-up until no more tasks were opened.
type span struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
	// Drift is the median of the last fifth by that of the first fifth.
	Drift float64 `json:"drift"`
}

// flat reports whether it stayed within the tolerance.
func (s span) flat() bool {
	return s.Least >= (1-tolerance)*s.Median && s.Most <= (1+tolerance)*s.Median && math.Abs(s.Drift-1) <= tolerance
}

// result is what the file of figures has.
type result struct {
	Date time.Time `json:"date"`
	// Asked and Opened are tasks, one of Failing of them was to fail; Ran are the calls of their handler.
	Asked   int   `json:"asked"`
	Opened  int   `json:"opened"`
	Failing int   `json:"failing"`
	Ran     int64 `json:"ran"`
	// Keep is how many of those that succeeded were to stay at the end, Kept how many did.
	Keep int   `json:"keep"`
	Kept int64 `json:"kept"`
	// WarmUp is the number of samples before one task left Redis for each that came.
	WarmUp  int              `json:"warm_up"`
	Samples []sample         `json:"samples"`
	Spans   map[string]span  `json:"spans"`
	Kinds   map[string]*kind `json:"kinds"`
	Ended   sample           `json:"ended"`
	// Ranges is how many ranges of ids have left Redis.
	Ranges  int64         `json:"purged_ranges"`
	Account audit.Account `json:"account"`
	// Archive is nil where there is none.
	Archive *copies `json:"archive,omitempty"`
	// States are those of the tasks that are left, Violations what is wrong with them.
	States     map[statemachine.State]int64 `json:"states"`
	Violations []audit.Violation            `json:"violations"`
	Flat       bool                         `json:"flat"`
}

// figures are what the spans are made of, as the table has them.
var figures = []struct {
	name string
	of   func(s *sample) float64
}{
	{"used_memory, MB", func(s *sample) float64 { return s.Memory / 1e6 }},
	{"of it data, MB", func(s *sample) float64 { return s.Dataset / 1e6 }},
	{"resident, MB", func(s *sample) float64 { return s.Resident / 1e6 }},
	{"keys", func(s *sample) float64 { return float64(s.Keys) }},
	{"tasks waiting", func(s *sample) float64 { return float64(s.Waiting) }},
	{"tasks archived", func(s *sample) float64 { return float64(s.Archived) }},
	{"buffers of clients, kB", func(s *sample) float64 { return s.Clients / 1e3 }},
	{"buffer of the append-only file, kB", func(s *sample) float64 { return s.FileBuffer / 1e3 }},
	{"Lua, kB", func(s *sample) float64 { return s.Scripts / 1e3 }},
	{"scripts", func(s *sample) float64 { return s.Cached }},
	{"connections", func(s *sample) float64 { return s.Connections }},
	{"append-only file, MB", func(s *sample) float64 { return s.FileSize / 1e6 }},
}

func (f *flow) result() *result {
	r := &result{
		Date: time.Now().UTC().Truncate(time.Second), Asked: f.o.tasks, Opened: f.opened, Failing: f.o.failing, Ran: f.ran.Load(),
		Keep: f.o.keep, Kept: f.left, WarmUp: f.warm, Samples: f.samples, Spans: map[string]span{}, Kinds: f.kinds, Ended: f.ended,
		Ranges: f.ranges, Archive: f.copies, Account: f.report.Account, States: f.report.States, Violations: f.report.Violations,
	}
	flowing := f.samples[f.warm:]
	for _, figure := range figures {
		values := make([]float64, len(flowing))
		for i := range flowing {
			values[i] = figure.of(&flowing[i])
		}
		if len(values) > 0 {
			r.Spans[figure.name] = spanOf(values)
		}
	}
	r.Flat = len(flowing) > 0 && r.Spans[figures[0].name].flat()
	return r
}

func spanOf(values []float64) span {
	fifth := (len(values) + 4) / 5
	s := span{Least: slices.Min(values), Median: stats.Median(values), Most: slices.Max(values), Drift: 1}
	if first := stats.Median(values[:fifth]); first != 0 {
		s.Drift = stats.Median(values[len(values)-fifth:]) / first
	}
	return s
}

// sum is something that was counted in two ways.
type sum struct {
	what      string
	got, want int64
}

// wrong says what does not add up; nil if every task is accounted for.
func (r *result) wrong() error {
	opened, left := int64(r.Opened), r.States[statemachine.Archived]
	succeeded := opened - (opened+int64(r.Failing)-1)/int64(r.Failing)
	var errs []error
	for _, sum := range append(r.Archive.sums(r.Account.Purged), []sum{
		{"ids given out", r.Account.Opened, opened},
		{"calls of the handler", r.Ran, opened},
		{"tasks that are archived or have left Redis", left + r.Account.Purged, opened},
		{"tasks that are archived", left, r.Kept},
		{"tasks that succeeded and are left", r.Kept, min(int64(r.Keep), succeeded)},
		{"ranges of ids that have left Redis beyond what the tasks between them explain", max(0, r.Ranges-left-1), 0},
		{"violations", int64(len(r.Violations)), 0},
	}...) {
		if sum.got != sum.want {
			errs = append(errs, fmt.Errorf("%d tasks opened: %d %s, want %d", opened, sum.got, sum.what, sum.want))
		}
	}
	return errors.Join(errs...)
}

// check is an error if a task is not accounted for, or, where that is asked, if memory was not flat.
func (r *result) check(strict bool) error {
	if err := r.wrong(); err != nil {
		return err
	}
	if strict && !r.Flat {
		return fmt.Errorf("used_memory was not flat within %.0f %%", 100*tolerance)
	}
	return nil
}
