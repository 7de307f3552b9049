// Package lifecycletest is a battery of tests for daemons: whatever has a
// Run(ctx) error must pass it.
//
// The package is imported from _test.go files only.
package lifecycletest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Daemon is something that runs until its context is done.
type Daemon interface {
	Run(ctx context.Context) error
}

// Battery says how to make the daemon and what to expect of it.
type Battery struct {
	// New makes a fresh daemon. What it needs is released by tb.Cleanup.
	New func(tb testing.TB) Daemon
	// Ready returns a channel that is closed (or receives) once the daemon is at
	// work. Nil, or a nil channel: the battery cancels without waiting for that.
	Ready func(Daemon) <-chan struct{}
	// SecondRun is the error, matched by errors.Is, of a second Run of one daemon,
	// at the same time or later. Nil: a daemon may run again after it has ended.
	SecondRun error
	// Limit bounds each start and each stop. Default: 10 s.
	Limit time.Duration
}

const (
	defaultLimit = 10 * time.Second
	rounds       = 20
	settle       = 50 * time.Millisecond // how long a run is watched for ending by itself
)

// trial is one test of the battery: it returns what is wrong.
type trial struct {
	name string
	run  func(tb testing.TB) error
}

// Exercise runs the battery, each part as a subtest, and after each of them
// checks that no goroutine is left. The calling test must not be parallel, or it
// would be blamed for the goroutines of others.
func (b Battery) Exercise(t *testing.T) {
	t.Helper()
	for _, c := range b.trials() {
		before := goleak.IgnoreCurrent()
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(t); err != nil {
				t.Error(err)
			}
		})
		if err := goleak.Find(before); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func (b Battery) trials() []trial {
	return []trial{
		{"cancel ends Run", b.cancelEndsRun},
		{"deadline ends Run", b.deadlineEndsRun},
		{"cancelled before Run", b.cancelledBeforeRun},
		{"second Run at the same time", b.secondRunBeside},
		{"second Run afterwards", b.secondRunAfter},
		{"two instances", b.twoInstances},
		{"start beside stop", b.startBesideStop},
	}
}
