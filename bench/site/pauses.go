package site

import (
	"context"
	"runtime"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
)

// Pauses are the times at which a thread that only looks at the clock, with the priority that [Redis.Prefer] gives, was
// stopped: the machine stood still, or its host gave the processor to others. What Redis says a script took holds such
// times too.
type Pauses struct {
	Limit   time.Duration // shorter ones are not counted
	Watched time.Duration
	Count   int
	Longest time.Duration
}

// Linux stops threads of that priority when they have used 95 % of a second. The watch rests before.
const (
	watchSpell = 200 * time.Millisecond
	watchRest  = 50 * time.Millisecond
)

// Watch looks for pauses for a while, of which a fifth is rest, or until ctx ends, but once at least.
func (p *Pauses) Watch(ctx context.Context, span time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its priority
		prefer(0)
		for again := true; again; again = ctx.Err() == nil {
			p.spell()
			timing.Pause(ctx, watchRest)
		}
	}()
	<-done
}

func (p *Pauses) spell() {
	began := time.Now()
	last := began
	for last.Sub(began) < watchSpell {
		now := time.Now()
		gap := now.Sub(last)
		p.Longest = max(p.Longest, gap)
		if gap > p.Limit {
			p.Count++
		}
		last = now
	}
	p.Watched += last.Sub(began)
}

// Expected is how many pauses fall into a time.
func (p *Pauses) Expected(in time.Duration) float64 { return p.scale(p.Count, in) }

// Chance is how many may: after none in a span, three in the next one are still likely enough.
func (p *Pauses) Chance(in time.Duration) float64 { return p.scale(p.Count+3, in) }

func (p *Pauses) scale(count int, in time.Duration) float64 {
	if p.Watched == 0 {
		return 0
	}
	return float64(count) * in.Seconds() / p.Watched.Seconds()
}
