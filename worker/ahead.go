package worker

import (
	"sync"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// A worker of short programs claims some tasks ahead: a slot that has ended a round goes on with one of them, and the report
// of its round may wait for others, so that a call to Redis carries several.
const (
	// paceRounds is of how many rounds the mean is taken, and shortRound what it must be below.
	paceRounds = 100
	shortRound = 10 * time.Millisecond
	// A report for which no slot waits is held back about as long as a round takes, within these bounds.
	leastGather, mostGather = time.Millisecond, 4 * time.Millisecond
)

// pace is how long the last rounds took.
type pace struct {
	mu   sync.Mutex
	took [paceRounds]time.Duration
	n    int
	sum  time.Duration
}

func (p *pace) add(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.n % paceRounds
	if p.n >= paceRounds {
		p.sum -= p.took[at]
	}
	p.took[at] = d
	p.sum += d
	p.n++
}

// forget starts over: nothing is claimed ahead until paceRounds more rounds have ended.
func (p *pace) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n, p.sum = 0, 0
}

// ahead returns how many tasks are that much work, at most most.
func (p *pace) ahead(most int, work time.Duration) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	mean := p.sum / paceRounds
	if p.n < paceRounds || mean >= shortRound {
		return 0
	}
	return min(most, int(work/max(mean, time.Microsecond)))
}

// gather returns how long a report waits for others.
func (p *pace) gather() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(p.sum/paceRounds, leastGather), mostGather)
}

// mostAhead is how many tasks this worker may claim ahead: none where slots rest after a round, and none for handlers, whose
// slots are many.
func (o *options) mostAhead() int {
	if len(o.Handlers) > 0 || o.SleepAfterSuccess > 0 || o.SleepAfterFailure > 0 {
		return 0
	}
	return o.Ahead
}

// further returns how many more tasks to claim ahead now.
func (w *Worker) further() int {
	return max(0, w.pace.ahead(w.opts.mostAhead(), w.opts.aheadTime)-w.pool.supply())
}

// mayBegin reports whether tasks claimed ahead may begin now.
func (w *Worker) mayBegin() bool { return !w.rules.outdated.Load() && w.whyPaused().kind == "" }

// place gives a task to an idle slot, or keeps it for the next one that is free. Where it can do neither, it hands the task back.
func (w *Worker) place(a *assignment) {
	may := w.opts.mostAhead() > 0 && w.mayBegin()
	s, kept := w.pool.place(a, may)
	switch {
	case s != nil:
		w.working.Go(func() { s.work(a) })
	case kept:
		w.watchOver(a)
	default:
		w.sendBack(a)
	}
}

// keep returns the task with which a slot that has reported goes on, nil if it may not: a, or one that was claimed before it, so
// that rounds begin in the order of their claims.
func (w *Worker) keep(s *slot, a *assignment) *assignment {
	first := w.pool.keep(s, a)
	if first != nil && first != a {
		w.watchOver(a)
	}
	return first
}

func (w *Worker) watchOver(a *assignment) { time.AfterFunc(w.opts.aheadTime, func() { w.overdue(a) }) }

// overdue hands back all that was claimed ahead if a has not begun in time.
func (w *Worker) overdue(a *assignment) {
	if w.pool.keeps(a) {
		w.pace.forget()
		w.giveBack()
	}
}

// giveBack hands back what was claimed ahead and has not begun.
func (w *Worker) giveBack() {
	for _, a := range w.pool.drop() {
		w.sendBack(a)
	}
}

// sendBack hands a task back that the pool has given up.
func (w *Worker) sendBack(a *assignment) {
	w.working.Go(func() {
		defer w.pool.reported()
		w.handBack(w.reports, a, errNoSlot)
	})
}

// goOn gives a slot the next task claimed ahead, if there is one. The slot does not wait for the report of its round then.
func (s *slot) goOn(r *round, end *ending) (next *assignment) {
	w := s.worker
	if end.blocks() || w.pool.supply() == 0 || !w.mayBegin() {
		return nil
	}
	if next = w.pool.next(s); next == nil {
		return nil
	}
	r.apart = true
	r.removePrivate()
	w.working.Go(func() {
		defer w.pool.reported()
		_, _ = r.report(w.reports, end)
		w.flush()
	})
	return next
}

// begin notes when the round of a task that was claimed ahead begins.
func (a *assignment) begin() { a.claimed.Task.Current.Begun = a.clock.now() }

// begunFields says of a round that was claimed ahead when it began.
func begunFields(t *statemachine.Task) []string {
	if t.Current.Begun == 0 {
		return nil
	}
	return []string{statemachine.RoundField(t.Round, statemachine.StampBegun), t.Current.Begun.Text()}
}
