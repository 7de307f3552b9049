package wait

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const aDay = "cpu  100 20 30 1000 50 0 5 45 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n"

func TestIdleShare(t *testing.T) {
	t.Parallel()
	began := parse(time.Now(), aDay)
	if began.idle != 1000 || began.total != 1250 {
		t.Fatalf("read %+v", began)
	}
	for line, want := range map[string]float64{
		"cpu  100 20 30 1000 50 0 5 45 7 7": 1, // nothing noted since
		"cpu  100 20 30 1100 50 0 5 45 7 7": 1,
		"cpu  200 20 30 1000 50 0 5 45 7 7": 0,
		"cpu  100 20 30 1025 75 0 5 95 9 9": 0.25, // the disk and the host count as busy
		"":                                  1,
	} {
		if got := began.idleUntil(parse(time.Now(), line)); got != want {
			t.Errorf("until %q: %v, want %v", line, got, want)
		}
	}
}

// failed keeps the last failure instead of ending the test.
type failed struct {
	testing.TB
	text string
}

func (f *failed) Helper()                           {}
func (f *failed) Errorf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

// While all processors work, a bound of half the span holds; what is ten times
// too late fails nevertheless.
func TestBoundsOnBusyMachine(t *testing.T) {
	t.Parallel()
	began := time.Now()
	loads.note()
	var all sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		all.Go(func() {
			for time.Since(began) < 600*time.Millisecond {
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	ended := time.Now()
	Within(t, "work", began, ended, ended.Sub(began)*3/4)
	var f failed
	Within(&f, "far too long", ended.Add(-11*time.Second), ended, 99*time.Millisecond)
	if !strings.HasPrefix(f.text, "far too long took 11s, ") {
		t.Errorf("failed with %q", f.text)
	}
	d := newDeadline(99 * time.Millisecond)
	defer d.Stop()
	if d.began = ended.Add(-11 * time.Second); !d.over() {
		t.Error("a deadline that is passed by far is not over")
	}
}

func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	h := &history{}
	if span := h.idle(time.Unix(1, 0), time.Unix(2, 0)); span != time.Second {
		t.Errorf("%v of a second are idle before anything was noted", span)
	}
	h.note()
	first := h.noted[0]
	for range 2 * mostNoted {
		h.noted[len(h.noted)-1].at = h.noted[len(h.noted)-1].at.Add(-noteEvery)
		h.note()
	}
	if n := len(h.noted); n > mostNoted || h.noted[0].total != first.total {
		t.Errorf("%d notes, the first of %v", n, h.noted[0])
	}
}
