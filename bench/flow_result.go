package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
)

// flatWithin is how far from their median all figures of memory may be, and how much the last ones may differ from the first ones.
const flatWithin = 0.10

// figureSpan is what a figure was from the end of the warm-up until no more tasks were opened.
type figureSpan struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
	// Drift is the median of the last fifth by that of the first fifth.
	Drift float64 `json:"drift"`
}

// flat reports whether it stayed within the tolerance.
func (s figureSpan) flat() bool {
	return s.Least >= (1-flatWithin)*s.Median && s.Most <= (1+flatWithin)*s.Median && math.Abs(s.Drift-1) <= flatWithin
}

// result is what was found.
type result struct {
	// Asked and Opened are tasks, one of Failing of them was to fail; Ran are the calls of their handler.
	Asked   int   `json:"asked"`
	Opened  int   `json:"opened"`
	Failing int   `json:"failing"`
	Ran     int64 `json:"ran"`
	// Keep is how many of those that succeeded were to stay at the end, Kept how many did.
	Keep int   `json:"keep"`
	Kept int64 `json:"kept"`
	// WarmUp is the number of samples before one task left Redis for each that came.
	WarmUp  int                   `json:"warm_up"`
	Samples []sample              `json:"samples"`
	Spans   map[string]figureSpan `json:"spans"`
	Kinds   map[string]*kind      `json:"kinds"`
	Ended   sample                `json:"ended"`
	// Ranges is how many ranges of ids have left Redis.
	Ranges  int64         `json:"purged_ranges"`
	Account audit.Account `json:"account"`
	// Archive is nil without -archive.
	Archive *audit.ArchiveReport `json:"archive,omitempty"`
	// Purged is how many have left Redis, as Redis counts them.
	Purged int64 `json:"purged"`
	// States are those of the tasks that are left, Violations what is wrong with them.
	States     map[statemachine.State]int64 `json:"states"`
	Violations []audit.Violation            `json:"violations"`
	Flat       bool                         `json:"flat"`
}

// figures are what the spans are made of, as the table has them: parts of samples, in units.
var figures = []struct {
	title, name string
	unit        float64
}{
	{"used_memory, MB", "used_memory", 1e6},
	{"of it data, MB", "used_memory_dataset", 1e6},
	{"resident, MB", "used_memory_rss", 1e6},
	{"keys", "keys", 1},
	{"tasks waiting", "waiting", 1},
	{"tasks archived", "archived", 1},
	{"buffers of clients, kB", "mem_clients_normal", 1e3},
	{"buffer of the append-only file, kB", "mem_aof_buffer", 1e3},
	{"Lua, kB", "used_memory_vm_eval_and_scripts", 1e3},
	{"scripts", "number_of_cached_scripts", 1},
	{"connections", "connected_clients", 1},
	{"append-only file, MB", "aof_current_size", 1e6},
}

// sumUp makes the spans of what was measured.
func (f *flowRun) sumUp() {
	r := &f.result
	r.Ran = f.ran.Load()
	flowing := r.Samples[r.WarmUp:]
	if len(flowing) == 0 {
		return
	}
	for _, figure := range figures {
		values := make([]float64, len(flowing))
		for i, s := range flowing {
			values[i] = s[figure.name] / figure.unit
		}
		r.Spans[figure.title] = spanOf(values)
	}
	r.Flat = r.Spans[figures[0].title].flat()
}

func spanOf(values []float64) figureSpan {
	fifth := (len(values) + 4) / 5
	s := figureSpan{Least: slices.Min(values), Median: median(values), Most: slices.Max(values), Drift: 1}
	if first := median(values[:fifth]); first != 0 {
		s.Drift = median(values[len(values)-fifth:]) / first
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
	sums := []sum{
		{"ids given out", r.Account.Opened, opened},
		{"calls of the handler", r.Ran, opened},
		{"tasks that are archived or have left Redis", left + r.Purged, opened},
		{"tasks that are archived", left, r.Kept},
		{"tasks that succeeded and are left", r.Kept, min(int64(r.Keep), succeeded)},
		{"ranges of ids that have left Redis beyond what the tasks between them explain", max(0, r.Ranges-left-1), 0},
		{"violations", int64(len(r.Violations)), 0},
	}
	if r.Archive != nil {
		sums = append(sums, sum{"tasks in the archive", r.Archive.Tasks, r.Account.Purged},
			sum{"records in the archive", r.Archive.Records, r.Account.Purged})
	}
	var errs []error
	for _, sum := range sums {
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
		return fmt.Errorf("used_memory was not flat within %.0f %%", 100*flatWithin)
	}
	return nil
}

func (r *result) headline() string {
	e, n := r.Ended, float64(r.Opened)
	return fmt.Sprintf("%d tasks in %.0f s, %d of those that succeeded kept; %.0f tasks a second, %.0f µs of Redis a task, "+
		"%.0f of all others, %.1f commands", r.Opened, e["seconds"], r.Keep, n/e["seconds"],
		1e6*e["redis_cpu_seconds"]/n, 1e6*e["own_cpu_seconds"]/n, e["total_reads_processed"]/n)
}

// markdown has the tables, what was counted, and the verdict.
func (r *result) markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%d samples after a warm-up of %d\n\n", len(r.Samples)-r.WarmUp, r.WarmUp)
	var spans, kinds [][]string
	for _, figure := range figures {
		if s, there := r.Spans[figure.title]; there {
			spans = append(spans, append(cells(figure.title, 1, s.Least, s.Median, s.Most), fmt.Sprintf("%.3f", s.Drift)))
		}
	}
	grid(&w, []string{"", "least", "median", "most", "last fifth by first fifth"}, spans...)
	for _, name := range slices.Sorted(maps.Keys(r.Kinds)) {
		k := r.Kinds[name]
		kinds = append(kinds, cells("`"+name+"`", 0, float64(k.Keys[0]), float64(k.Bytes[0]), float64(k.Keys[1]), float64(k.Bytes[1])))
	}
	fmt.Fprintln(&w)
	grid(&w, []string{"keys", "after the warm-up", "bytes", "at the end", "bytes"}, kinds...)
	fmt.Fprintf(&w, "\nThe append-only file was written anew %.0f times.\n", r.Ended["aof_rewrites"])
	fmt.Fprintf(&w, "%d opened = %d in a state + %d purged, in %d ranges of ids; %d violations\n",
		r.Account.Opened, r.Account.InStates, r.Account.Purged, r.Ranges, len(r.Violations))
	if a := r.Archive; a != nil {
		fmt.Fprintf(&w, "%d purged = %d in the archive, in %d records\n", a.Purged, a.InArchive, a.Records)
	}
	fmt.Fprintf(&w, "Flat within %.0f %%: %s\n", 100*flatWithin, r.verdict())
	return w.String()
}

func (r *result) verdict() string {
	switch {
	case len(r.Samples) == r.WarmUp:
		return "not known, as the run ended before the retention was reached"
	case r.Flat:
		return "yes"
	default:
		return "no"
	}
}

// sample is what there was at one moment, by name: numbers of INFO under the names that they have there, and those that
// [flowRun.sample] adds. Bytes are Redis' own figures; those of processor time and of reads are sums so far.
type sample map[string]float64

func (s sample) done() float64 { return s["archived"] + s["purged"] }

func (f *flowRun) sample(ctx context.Context) (sample, error) {
	c, err := f.site.Store.Census(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := f.site.Redis.DB.DBSize(ctx).Result()
	if err != nil {
		return nil, err
	}
	info, err := f.site.Redis.Figures(ctx)
	s := sample{
		"seconds": time.Since(f.began).Seconds(), "waiting": float64(c.Listed[statemachine.Open]),
		"archived": float64(c.Listed[statemachine.Archived]), "purged": float64(c.Purged), "keys": float64(keys),
		"used_memory_vm_eval_and_scripts": info["used_memory_vm_eval"] + info["used_memory_scripts"],
		"redis_cpu_seconds":               info["used_cpu_user"] + info["used_cpu_sys"],
		"own_cpu_seconds":                 site.ProcessorTime().Seconds(),
	}
	for _, name := range []string{
		"used_memory", "used_memory_dataset", "used_memory_rss", "mem_clients_normal", "mem_aof_buffer", "number_of_cached_scripts",
		"connected_clients", "total_reads_processed", "aof_current_size", "aof_rewrites",
	} {
		s[name] = info[name]
	}
	return s, err
}

// look takes a sample. With the first one after the warm-up it also looks what lies in Redis.
func (f *flowRun) look(ctx context.Context) error {
	s, err := f.sample(ctx)
	if err != nil {
		return err
	}
	f.say("%.0f archived after %.0f s: %.2f MB, %.0f waiting, %.0f left Redis",
		s.done(), s["seconds"], s["used_memory"]/1e6, s["waiting"], s["purged"])
	f.Samples = append(f.Samples, s)
	if f.WarmUp < len(f.Samples)-1 {
		return nil
	}
	purged, err := f.site.Store.PurgedCount(ctx)
	if err != nil {
		return err
	}
	// Once tasks of all outcomes have left Redis, one goes for each that comes.
	if slices.ContainsFunc(f.retention(), func(r upkeep.Retention) bool { return purged[r.Outcome] == 0 }) {
		f.WarmUp = len(f.Samples)
		return nil
	}
	return f.survey(ctx, warmedUp)
}

// When what lies in Redis is looked at: after the warm-up, and when no more tasks are opened.
const (
	warmedUp = iota
	atEnd
	surveys
)

// kind is the memory of all keys of a kind at that moment, 0 where it was not measured.
type kind struct {
	Keys  [surveys]int64 `json:"keys"`
	Bytes [surveys]int64 `json:"bytes"`
}

// surveyPage is how many keys one command looks at.
const surveyPage = 1000

// survey looks what lies in Redis.
func (f *flowRun) survey(ctx context.Context, look int) error {
	var cursor uint64
	for {
		keys, next, err := f.site.Redis.DB.Scan(ctx, cursor, "*", surveyPage).Result()
		if err != nil {
			return err
		}
		if err := f.weigh(ctx, look, keys); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// weigh adds what some keys take.
func (f *flowRun) weigh(ctx context.Context, look int, keys []string) error {
	sizes := make([]*redis.IntCmd, len(keys))
	_, err := f.site.Redis.DB.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			sizes[i] = p.MemoryUsage(ctx, key, 0)
		}
		return nil
	})
	for i, key := range keys {
		name := kindOf(strings.TrimPrefix(key, f.site.Key("")))
		if f.Kinds[name] == nil {
			f.Kinds[name] = &kind{}
		}
		f.Kinds[name].Keys[look]++
		f.Kinds[name].Bytes[look] += sizes[i].Val() // 0 of a key that is gone
	}
	if err == redis.Nil { //nolint:errorlint // as the client returns it
		return nil
	}
	return err
}

// kindOf is the name of a key without what it belongs to: all that is said by numbers or free text.
func kindOf(key string) string {
	name, rest, found := strings.Cut(key, ":")
	switch {
	case !found:
		return name
	case name == "archived":
		return name + ":" + rest
	default:
		return name + ":…"
	}
}
