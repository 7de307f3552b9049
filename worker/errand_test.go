package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// asked returns what the worker answers to an errand.
func (r *running) asked(t *testing.T, errand string) (stock task.Stock) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.answer(t.Context(), errand)), &stock); err != nil {
		t.Fatal(err)
	}
	return stock
}

// A worker does only what it understands as a whole: what it does not know may be what keeps something.
func TestErrandsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, s.script(t, "sum", "echo ran"))
	w := s.start(t)
	s.await(t, id, sm.Executed)
	for errand, say := range map[string]string{
		"":   "EOF",
		"no": "invalid character",
		`{"versions":["sum"],"unless":"new","remove":true}`: `unknown field "unless"`,
		`{"remove":true}`:                                      "versions",
		`{"versions":["../sum"],"remove":true}`:                "version",
		`{"versions":["sum@../../x"],"remove":true}`:           "version",
		`{"versions":["sum"],"unused_for":"1","remove":true}`:  "number of seconds",
		`{"versions":"sum","remove":true}`:                     "versions",
		`{"versions":["sum"],"remove":"yes"}`:                  "remove",
		`{"versions":["` + strings.Repeat("a", 200) + `"]}`:    "version",
		`{"versions":["SUM@3F"],"remove":true}`:                "version",
		`{"versions":["sum@` + strings.Repeat("0", 65) + `"]}`: "version",
	} {
		if got := w.asked(t, errand); !strings.Contains(got.Error, say) || len(got.Versions) > 0 || got.Worker != "w" {
			t.Errorf("%s: %+v, want %q", errand, got, say)
		}
	}
	if got := w.asked(t, "{}"); got.Error != "" || len(got.Versions) != 1 || got.Versions[0].Slots != 1 || got.Dir != s.programs || got.Place == "" {
		t.Errorf("afterwards there is %+v", got)
	}
}

// A slot that is idle lets go of what it has run last; it fetches it again for the next round. Times are those of Redis.
func TestIdleSlotLetsGo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	program := s.script(t, "sum", "echo ran")
	w := s.start(t)
	for range 2 {
		<-w.ready
		asked := w.clock.Load().now()
		s.await(t, s.open(t, program), sm.Executed)
		wait.Eventually(t, patience, func() bool { return w.pool.count(idle) == 1 }, "the slot does not rest")
		before := w.asked(t, "{}").Versions
		if len(before) != 1 || before[0].Rounds != 0 || before[0].Slots != 1 || time.Since(before[0].Used).Abs() > time.Minute {
			t.Fatalf("%+v", before)
		}
		if at := sm.Time(before[0].Installed.UnixMicro()); at < asked.Add(-sm.Second/10) {
			t.Errorf("installed at %v, and not asked for before %v", at, asked)
		}
		if got := w.asked(t, `{"unused_for":0.000001,"remove":true}`).Versions; len(got) != 0 {
			t.Errorf("unused is what a slot holds: %+v", got)
		}
		got := w.asked(t, `{"versions":["sum"],"remove":true}`).Versions
		if len(got) != 1 || !got[0].Removed || len(w.asked(t, "{}").Versions) != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// many are very many versions.
func many(context.Context, *task.Errand) ([]task.StoredVersion, error) {
	all := make([]task.StoredVersion, 100_000)
	for i := range all {
		all[i] = task.StoredVersion{
			Program: "sum", SHA256: fmt.Sprintf("%064d", i), Bytes: int64(i), Source: strings.Repeat("<", 300),
		}
	}
	return all, nil
}

// Answers are bounded: the largest versions are named, the others counted.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.start(t, func(o *options) { o.Programs, o.errands = fakePrograms(nil), many })
	<-w.ready
	text := w.answer(t.Context(), "{}")
	got := w.asked(t, "{}")
	if n := len(got.Versions); len(text) > 1<<20 || n < maxStock/10 || n > maxStock || got.More != 100_000-n || got.Versions[0].Bytes != 99_999 {
		t.Errorf("%d bytes, %d versions and %d more, the first of %d bytes", len(text), n, got.More, got.Versions[0].Bytes)
	}
}

// An errand that is heard of again is done once, one at a time, and no more wait than a few. Rounds go on meanwhile.
func TestErrandsWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var begun atomic.Int64
	release := make(chan struct{})
	w := s.start(t, func(o *options) {
		o.Programs, o.errands = fakePrograms(nil), func(context.Context, *task.Errand) ([]task.StoredVersion, error) {
			begun.Add(1)
			<-release
			return nil, nil
		}
	})
	<-w.ready
	answers := make(chan map[string]string, 1)
	go func() {
		got, err := s.Store.Ask(t.Context(), "{}", []string{"w"}, patience) // calls again
		if err != nil {
			t.Error(err)
		}
		answers <- got
	}()
	wait.Eventually(t, patience, func() bool { return begun.Load() == 1 }, "the worker does not begin")
	for i := range maxErrands {
		if room := w.errands.begin(fmt.Sprint(i)); room != (i < maxErrands-1) || room && w.errands.begin(fmt.Sprint(i)) {
			t.Errorf("room for errand %d: %v, or it is done twice", i, room)
		}
	}
	close(release)
	if got := wait.Receive(t, patience, answers, "no answer"); !strings.Contains(got["w"], `"worker":"w"`) || begun.Load() != 1 {
		t.Errorf("answers %v, asked %d times", got, begun.Load())
	}
}
