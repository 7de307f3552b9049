package daemontest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var errAgain = errors.New("already ran")

// daemon is a well-behaved daemon; its fields make it misbehave.
type daemon struct {
	used     atomic.Bool
	ready    chan struct{}
	once     sync.Once
	again    bool          // runs twice without a word
	deaf     chan struct{} // if not nil, Run ends when it is closed, not on cancel
	onEnd    chan struct{} // closed, if not nil, before Run returns
	fails    error
	endsSoon bool
}

func (d *daemon) Run(ctx context.Context) error {
	if d.used.Swap(true) && !d.again {
		return errAgain
	}
	d.once.Do(func() { close(d.ready) })
	switch {
	case d.endsSoon:
	case d.deaf != nil:
		<-d.deaf
	default:
		<-ctx.Done()
	}
	if d.onEnd != nil {
		close(d.onEnd)
	}
	return d.fails
}

// pair makes daemons that end together, as by global state: the second one ends
// when the first one is cancelled.
func pair() func(testing.TB) *daemon {
	var first *daemon
	return func(testing.TB) *daemon {
		if first == nil {
			first = &daemon{onEnd: make(chan struct{})}
			return first
		}
		return &daemon{deaf: first.onEnd}
	}
}

func battery(factory func(tb testing.TB) *daemon) Battery {
	return Battery{
		New: func(tb testing.TB) Runner {
			d := factory(tb)
			d.ready = make(chan struct{})
			return d
		},
		Ready:     func(d Runner) <-chan struct{} { return d.(*daemon).ready },
		SecondRun: errAgain,
		Limit:     100 * time.Millisecond,
	}
}

func TestBatteryPassesGoodDaemon(t *testing.T) {
	b := battery(func(testing.TB) *daemon { return &daemon{} })
	b.Limit = 0
	b.Exercise(t)
}

func TestBatteryPassesDaemonThatMayRunAgain(t *testing.T) {
	b := battery(func(testing.TB) *daemon { return &daemon{again: true, fails: context.Canceled} })
	b.SecondRun, b.Limit = nil, 0
	b.Exercise(t)
}

func TestBatteryFindsBadDaemons(t *testing.T) {
	deaf := func(tb testing.TB) *daemon {
		d := &daemon{deaf: make(chan struct{})}
		tb.Cleanup(func() { close(d.deaf) })
		return d
	}
	for name, tc := range map[string]struct {
		make   func(tb testing.TB) *daemon
		failed string // the trial that must find it
	}{
		"deaf to cancel":   {deaf, "cancel ends Run"},
		"deaf to deadline": {deaf, "deadline ends Run"},
		"deaf at start":    {deaf, "cancelled before Run"},
		"deaf when racing": {deaf, "start beside stop"},
		"error on stop": {func(testing.TB) *daemon { return &daemon{fails: errors.New("oops")} },
			"cancel ends Run"},
		"ends by itself": {func(testing.TB) *daemon { return &daemon{endsSoon: true} },
			"cancel ends Run"},
		"runs twice at once": {func(testing.TB) *daemon { return &daemon{again: true} },
			"second Run at the same time"},
		"runs again": {func(testing.TB) *daemon { return &daemon{again: true} },
			"second Run afterwards"},
		"ends with the other": {pair(), "two instances"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range battery(tc.make).trials() {
				if c.name == tc.failed {
					if err := c.run(t); err == nil {
						t.Errorf("%q found nothing wrong", c.name)
					}
					return
				}
			}
			t.Fatalf("no trial %q", tc.failed)
		})
	}
}

func TestNeverReadyIsFound(t *testing.T) {
	b := battery(func(testing.TB) *daemon { return &daemon{} })
	b.Ready = func(Runner) <-chan struct{} { return make(chan struct{}) }
	if err := b.cancelEndsRun(t); err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("got %v", err)
	}
}
