package manager

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Overview is the state of a namespace at about one moment, for people to watch.
type Overview struct {
	Namespace string
	// At is the time of Redis.
	At      time.Time
	Counts  Counts
	Queues  []Queue
	Workers []Worker
	// Programs are the programs of tasks that the workers hold, of some hundreds
	// at most.
	Programs map[int64]string
	// Failures are tasks that did not succeed, the newest first.
	Failures []Failure
}

// Ended counts the tasks that came to each outcome since their queues exist.
func (o *Overview) Ended() map[statemachine.State]int64 {
	ended := map[statemachine.State]int64{}
	for i := range o.Queues {
		for outcome, n := range o.Queues[i].Ended {
			ended[outcome] += n
		}
	}
	return ended
}

// Overview reads the counts, the queues, the workers, and the newest failures, at
// most so many. What it costs does not depend on the number of tasks.
func (m *Manager) Overview(ctx context.Context, failures int) (Overview, error) {
	o := Overview{Namespace: m.Namespace()}
	var err error
	if o.Counts, err = m.Count(ctx); err != nil {
		return o, err
	}
	if o.Queues, err = m.Queues(ctx); err != nil {
		return o, err
	}
	found, now, err := m.store.Workers(ctx)
	if err != nil {
		return o, err
	}
	for i := range found {
		o.Workers = append(o.Workers, newWorker(&found[i], now))
	}
	o.At = momentOf(now)
	if o.Programs, err = m.programs(ctx, o.Workers); err != nil {
		return o, err
	}
	o.Failures, err = m.failures(ctx, failures)
	return o, err
}

// mostPrograms bounds of how many tasks the programs are read.
const mostPrograms = 500

// programs reads the programs of the tasks that the workers hold.
func (m *Manager) programs(ctx context.Context, workers []Worker) (map[int64]string, error) {
	var ids []int64
	for i := range workers {
		ids = append(ids, workers[i].Tasks[:min(len(workers[i].Tasks), mostPrograms-len(ids))]...)
	}
	found, err := m.store.Fields(ctx, ids, "program")
	if err != nil {
		return nil, err
	}
	programs := make(map[int64]string, len(ids))
	for i, fields := range found {
		programs[ids[i]] = fields["program"]
	}
	return programs, nil
}
