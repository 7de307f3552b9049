package series

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

var noon = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// at is so many seconds after noon.
func at(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }

// eachTen is due at 10, 20, ... after noon; changes are applied to it.
func eachTen(t *testing.T, changes ...func(*Series)) *Series {
	t.Helper()
	s := &Series{Definition: Definition{Key: "k", Task: Task{"program": json.RawMessage(`"p"`)}, Every: task.Seconds(10 * time.Second)}, Created: noon}
	for _, change := range changes {
		change(s)
	}
	if err := s.complete(); err != nil {
		t.Fatal(err)
	}
	if err := s.begin(noon); err != nil {
		t.Fatal(err)
	}
	return s
}

func with(o Overlap, m Missed) func(*Series) { return func(s *Series) { s.Overlap, s.Missed = o, m } }

// told is a step in a line: what begins, what is cancelled, when to look again, and the newest events.
func told(step verdict) string {
	var parts []string
	for _, o := range step.Open {
		parts = append(parts, fmt.Sprintf("open %d at %v", o.Number, o.At.Sub(noon).Seconds()))
	}
	if len(step.Cancel) > 0 {
		parts = append(parts, fmt.Sprint("cancel ", step.Cancel))
	}
	for _, e := range step.After.History {
		if e.Number == 0 {
			parts = append(parts, fmt.Sprintf("%s %v-%v", e.What, e.At.Sub(noon).Seconds(), e.Before.Sub(noon).Seconds()))
		}
	}
	if step.After.Waits {
		parts = append(parts, "waits")
	}
	if !step.Due.IsZero() {
		parts = append(parts, fmt.Sprintf("due %v", step.Due.Sub(noon).Seconds()))
	}
	return strings.Join(parts, ", ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	busy := func(s *Series) { s.Live = []int64{7} }
	eta := func(s *Series) { s.ETA, s.Every = true, 0 }
	fallback := func(s *Series) { s.ETA = true }
	for _, c := range []struct {
		what  string
		s     *Series
		now   int
		ended map[int64]time.Time
		want  string
	}{
		{"not due", eachTen(t), 9, nil, "due 10"},
		{"due", eachTen(t), 10, nil, "open 1 at 10, due 20"},
		{"late", eachTen(t), 19, nil, "open 1 at 10, due 20"},
		{"once for all", eachTen(t), 45, nil, "open 1 at 40, missed 10-40, due 50"},
		{"all", eachTen(t, with(OverlapAllow, MissedAll)), 35, nil, "open 1 at 10, open 2 at 20, open 3 at 30, due 40"},
		{"all, one after the other", eachTen(t, with(OverlapQueue, MissedAll)), 35, nil, "open 1 at 10, waits, due 95"},
		{"all, but they overlap", eachTen(t, with(OverlapSkip, MissedAll)), 35, nil, "open 1 at 10, skipped 20-40, due 40"},
		{"missed and skipped", eachTen(t, with(OverlapAllow, MissedSkip)), 35, nil, "open 1 at 30, missed 10-30, due 40"},
		{"too late", eachTen(t, with(OverlapAllow, MissedOnce), func(s *Series) { s.MaxBehind = task.Seconds(2 * time.Second) }), 35, nil, "missed 10-40, due 40"},
		{"all, not too late", eachTen(t, with(OverlapAllow, MissedAll), func(s *Series) { s.MaxBehind = task.Seconds(16 * time.Second) }), 35, nil,
			"open 1 at 20, open 2 at 30, missed 10-20, due 40"},
		{"a minute late", eachTen(t, with(OverlapAllow, MissedSkip), func(s *Series) { s.Every = task.Seconds(1000 * time.Second) }), 1061, nil, "missed 1000-2000, due 2000"},
		{"not a minute late", eachTen(t, with(OverlapAllow, MissedSkip), func(s *Series) { s.Every = task.Seconds(1000 * time.Second) }), 1060, nil, "open 1 at 1000, due 2000"},
		{"overlaps", eachTen(t, busy), 12, nil, "skipped 10-20, due 20"},
		{"overlapped", eachTen(t, busy), 12, map[int64]time.Time{7: {}}, "open 1 at 10, due 20"},
		{"another task has ended", eachTen(t, busy), 12, map[int64]time.Time{8: {}}, "skipped 10-20, due 20"},
		{"waits", eachTen(t, busy, with(OverlapQueue, MissedOnce)), 12, nil, "waits, due 72"},
		{"waits on, the last one stays", eachTen(t, busy, with(OverlapQueue, MissedOnce), func(s *Series) { s.Waits = true }), 32, nil,
			"skipped 10-30, waits, due 92"},
		{"has waited", eachTen(t, busy, with(OverlapQueue, MissedSkip), func(s *Series) { s.Waits = true }), 102, map[int64]time.Time{7: {}},
			"open 1 at 100, skipped 10-100, due 110"},
		{"has waited for minutes", eachTen(t, busy, with(OverlapQueue, MissedSkip), func(s *Series) { s.Every, s.Waits = task.Seconds(1000*time.Second), true }), 1200,
			map[int64]time.Time{7: {}}, "open 1 at 1000, due 2000"},
		{"replaces", eachTen(t, busy, with(OverlapReplace, MissedOnce)), 12, nil, "cancel [7], waits, due 22"},
		{"has replaced", eachTen(t, busy, with(OverlapReplace, MissedOnce)), 12, map[int64]time.Time{7: {}}, "open 1 at 10, due 20"},
		{"both run", eachTen(t, busy, with(OverlapAllow, MissedOnce)), 12, nil, "open 1 at 10, due 20"},
		{"paused", eachTen(t, func(s *Series) { s.Paused = true }), 12, nil, ""},
		{"the end", eachTen(t, with(OverlapAllow, MissedAll), func(s *Series) { s.End = at(25) }), 40, nil, "open 1 at 10, open 2 at 20"},
		{"the end, once", eachTen(t, with(OverlapAllow, MissedOnce), func(s *Series) { s.End = at(25) }), 40, nil, "open 1 at 20, missed 10-20"},
		{"by its program, first", eachTen(t, eta), 0, nil, "open 1 at 0, due 600"},
		{"by its program, runs", eachTen(t, eta, busy, func(s *Series) { s.Next = time.Time{} }), 5, nil, "due 605"},
		{"by its program, says", eachTen(t, eta, busy), 5, map[int64]time.Time{7: at(33)}, "due 33"},
		{"by its program, says now", eachTen(t, eta, busy), 5, map[int64]time.Time{7: at(-3)}, "open 1 at -3, due 605"},
		{"by its program, says nothing", eachTen(t, eta, busy), 5, map[int64]time.Time{7: {}}, ""},
		{"by its program, behind the end", eachTen(t, eta, busy, func(s *Series) { s.End = at(20) }), 5, map[int64]time.Time{7: at(33)}, ""},
		{"else each ten seconds", eachTen(t, fallback, busy, func(s *Series) { s.Last = at(20) }), 25, map[int64]time.Time{7: {}}, "due 30"},
		{"one of two has ended", eachTen(t, eta, func(s *Series) { s.Live = []int64{7, 8} }), 5, map[int64]time.Time{7: at(9)}, "due 605"},
	} {
		before := c.s.text()
		step, err := c.s.decide(c.ended, at(c.now), 1)
		if got := told(step); got != c.want || err != nil {
			t.Errorf("%s: %s, want %s; error %v", c.what, got, c.want, err)
		}
		if c.s.text() != before {
			t.Errorf("%s: it changes what it was asked about", c.what)
		}
	}
}

// What is due is found as a walk over all times finds it, with any jitter, however late.
func TestDecideTwin(t *testing.T) {
	t.Parallel()
	for range 3000 {
		s := eachTen(t, with(OverlapAllow, []Missed{MissedSkip, MissedOnce, MissedAll}[rand.IntN(3)]), func(s *Series) {
			s.Key, s.Jitter = fmt.Sprint("k", rand.IntN(9)), task.Seconds(time.Duration(rand.IntN(10))*time.Second)
			if rand.IntN(2) == 0 {
				s.MaxBehind = task.Seconds(time.Duration(1+rand.IntN(200)) * time.Second)
			}
			if rand.IntN(3) == 0 {
				s.End = at(20 + rand.IntN(300))
			}
		})
		now := at(rand.IntN(500)).Add(time.Duration(rand.IntN(1000)) * time.Millisecond)
		most := time.Duration(s.MaxBehind)
		if most == 0 && s.Missed == MissedSkip {
			most = lateByMiss
		}
		var due, want []time.Time
		for o := at(10); !o.Add(s.delay(o)).After(now) && (s.End.IsZero() || !o.After(s.End)); o = o.Add(10 * time.Second) {
			due = append(due, o)
		}
		if s.Missed != MissedAll && len(due) > 0 {
			due = due[len(due)-1:]
		}
		for _, o := range due {
			if most == 0 || now.Sub(o.Add(s.delay(o))) <= most {
				want = append(want, o)
			}
		}
		step, err := s.decide(nil, now, 1)
		var got []time.Time
		for _, o := range step.Open {
			got = append(got, o.At)
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) || err != nil {
			t.Fatalf("%s\nat %v begins %v, want %v, error %v", s.text(), now, got, want, err)
		}
	}
}

// Over any course of time each due time is dealt with once, in order, and what must not overlap does not.
func TestDecideCourse(t *testing.T) {
	t.Parallel()
	for run := range 300 {
		overlap := []Overlap{OverlapSkip, OverlapQueue, OverlapAllow, OverlapReplace}[run%4]
		s := eachTen(t, with(overlap, []Missed{MissedSkip, MissedOnce, MissedAll}[rand.IntN(3)]), func(s *Series) {
			s.Jitter = task.Seconds(time.Duration(rand.IntN(10)) * time.Second)
		})
		now, next, id, live := noon, s.Next, int64(0), []int64(nil)
		for range 60 {
			if now = now.Add(time.Duration(rand.IntN(40)) * time.Second / 2); rand.IntN(20) == 0 {
				now = now.Add(-time.Minute) // the clock steps back
			}
			ended := map[int64]time.Time{}
			live = slices.DeleteFunc(live, func(id int64) bool {
				if rand.IntN(2) == 0 {
					ended[id] = time.Time{}
					return true
				}
				return false
			})
			s.History = nil
			step, err := s.decide(ended, now, 1)
			if err != nil {
				t.Fatal(err)
			}
			if overlap != OverlapAllow && len(live)+len(step.Open) > 1 && len(step.Open) > 0 {
				t.Fatalf("%s: %d begin while %d run", overlap, len(step.Open), len(live))
			}
			for _, e := range step.After.History {
				if !e.At.Equal(next) {
					t.Fatalf("%s, %s: after %v comes %+v", overlap, s.Missed, next, e)
				}
				if next = e.Before; e.Number > 0 {
					next = e.At.Add(10 * time.Second)
				}
			}
			if s = step.After; !s.Next.Equal(next) {
				t.Fatalf("%s, %s: the next is %v, want %v", overlap, s.Missed, s.Next, next)
			}
			for range step.Open {
				if id++; overlap != OverlapAllow {
					s.Live = append(s.Live, id)
				}
				live = append(live, id)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Definition{Key: "k", Task: Task{"program": json.RawMessage(`"p"`)}, Every: task.Seconds(time.Minute)}
	if err := good.complete(); err != nil || good.Overlap != OverlapSkip || good.Missed != MissedOnce {
		t.Errorf("%+v, error %v", good, err)
	}
	for field, change := range map[string]func(*Definition){
		"key":     func(d *Definition) { d.Key = "a\nb" },
		"program": func(d *Definition) { d.Task["program"] = json.RawMessage(`7`) },
		"name":    func(d *Definition) { d.Task = Task{"progam": json.RawMessage(`"p"`)} },
		"step":    func(d *Definition) { d.Task = Task{"step": json.RawMessage(`"p"`)} },
		"argv":    func(d *Definition) { d.Task = Task{"argv": json.RawMessage(`["p"]`), "input": json.RawMessage(`"p"`)} },
		"task": func(d *Definition) {
			d.Task = Task{"input": json.RawMessage(`"` + strings.Repeat("x", mostTask) + `"`)}
		},
		"overlap":    func(d *Definition) { d.Overlap = "forbid" },
		"missed":     func(d *Definition) { d.Missed = "some" },
		"end":        func(d *Definition) { d.Start, d.End = at(5), at(4) },
		"every":      func(d *Definition) { d.Every = task.Seconds(time.Millisecond) },
		"cron":       func(d *Definition) { d.Every, d.Cron = 0, "x" },
		"zone":       func(d *Definition) { d.Zone = "UTC" },
		"jitter":     func(d *Definition) { d.Jitter = d.Every },
		"max_behind": func(d *Definition) { d.MaxBehind = -1 },
	} {
		d := good
		d.Task = Task{"program": json.RawMessage(`"p"`)}
		change(&d)
		err := d.complete()
		if e, ok := errors.AsType[*statemachine.FieldError](err); !ok || e.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// The times of a task count from when its occurrence is due, and it knows which one it is.
func TestSpec(t *testing.T) {
	t.Parallel()
	spec := task.Spec{Program: "p", Argv: []string{"a b", "c"}, Meta: map[string]string{"tenant": "x"}, Return: []string{"*.csv"}, Labels: []string{"a=1"}}
	d := Definition{Key: "k", Task: NewTask(&spec), Every: task.Seconds(time.Minute)}
	d.Task["end_before"] = json.RawMessage(`"+10m"`)
	if err := d.complete(); err != nil {
		t.Fatal(err)
	}
	got, err := d.spec(occurrence{Number: 3, At: noon})
	if err != nil || !got.EndBefore.Equal(noon.Add(10*time.Minute)) || !slices.Equal(got.Argv, spec.Argv) || len(got.Return) != 1 || len(got.Labels) != 1 ||
		got.Meta["tenant"] != "x" || got.Meta["series"] != "k" || got.Meta["occurrence"] != "3" || got.Meta["scheduled"] != "2027-01-15T12:00:00Z" {
		t.Errorf("%+v, error %v", got, err)
	}
}

// Parts of the jitter are spread over all of it, and the same each time.
func TestDelay(t *testing.T) {
	t.Parallel()
	d := Definition{Key: "k", Jitter: task.Seconds(10 * time.Second)}
	early := 0
	for i := range 1000 {
		delay := d.delay(at(i))
		if delay < 0 || delay >= 10*time.Second || delay != d.delay(at(i)) {
			t.Fatalf("%v", delay)
		}
		if delay < 5*time.Second {
			early++
		}
	}
	if early < 400 || early > 600 {
		t.Errorf("%d of 1000 in the first half", early)
	}
}
