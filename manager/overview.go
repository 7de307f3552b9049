package manager

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Overview is the state of a namespace at about one moment, for people to watch.
type Overview struct {
	Namespace string
	// At is the time of Redis.
	At      time.Time
	Counts  Counts
	Queues  []task.Queue
	Workers []task.Worker
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
	workers, now, err := m.store.Workers(ctx)
	if err != nil {
		return o, err
	}
	o.Workers, o.At = workers, task.Moment(now)
	if o.Programs, err = m.programs(ctx, o.Workers); err != nil {
		return o, err
	}
	o.Failures, err = m.failures(ctx, failures)
	return o, err
}

// mostPrograms bounds of how many tasks the programs are read.
const mostPrograms = 500

// programs reads the programs of the tasks that the workers hold.
func (m *Manager) programs(ctx context.Context, workers []task.Worker) (map[int64]string, error) {
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

// Failure is a task that ended in another way than succeeded.
type Failure struct {
	ID             int64
	Outcome        statemachine.State
	Program, Queue string
	// Worker, Node, Class and Error are those of the last round that a worker has
	// begun; Error is its beginning only, at most 1 KiB.
	Worker, Node, Class, Error string
	// At is when the task ended; zero if that is not recorded.
	At time.Time
}

// archiveLook is how many of the newest archived tasks are looked at for those
// that failed.
const archiveLook = 200

// failed is a failure on the way.
type failed struct {
	Failure

	round, begun int // the last round, and the last that a worker has begun
}

// failures reads the newest ones: of each outcome the last, and those among the
// tasks archived last.
func (m *Manager) failures(ctx context.Context, most int) ([]Failure, error) {
	if most <= 0 {
		return nil, nil
	}
	var all []failed
	for _, state := range append(statemachine.Outcomes(), statemachine.Archived) {
		limit := most
		switch state {
		case statemachine.Succeeded:
			continue
		case statemachine.Archived:
			limit = max(most, archiveLook)
		default:
		}
		some, err := m.failedIn(ctx, state, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if err := m.readEnds(ctx, all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b failed) int { return b.At.Compare(a.At) })
	all = all[:min(len(all), most)]
	if err := m.readRounds(ctx, all); err != nil {
		return nil, err
	}
	failures := make([]Failure, len(all))
	for i := range all {
		failures[i] = all[i].Failure
	}
	return failures, nil
}

// failedIn are those that one set lists, without what the rounds tell.
func (m *Manager) failedIn(ctx context.Context, state statemachine.State, limit int) ([]failed, error) {
	ids, err := m.store.IDs(ctx, state, 0, int64(limit), true)
	if err != nil {
		return nil, err
	}
	read, err := m.store.Fields(ctx, ids, SummaryFields()...)
	if err != nil {
		return nil, err
	}
	var found []failed
	for i, fields := range read {
		s := listed(ids[i], state, fields)
		outcome := s.End()
		if outcome == statemachine.Succeeded || !outcome.Ended() {
			continue
		}
		found = append(found, failed{
			Failure: Failure{ID: s.ID, Outcome: outcome, Program: s.Program, Queue: s.Queue},
			round:   s.Round, begun: lastBegun(s),
		})
	}
	return found, nil
}

// readEnds reads when the tasks ended.
func (m *Manager) readEnds(ctx context.Context, all []failed) error {
	names := make([]string, 0, len(statemachine.Outcomes()))
	for _, outcome := range statemachine.Outcomes() {
		names = append(names, string(outcome))
	}
	return m.eachRound(ctx, all, func(f *failed) int { return f.round }, names, func(f *failed, get func(string) string) {
		f.At = task.ParseMoment(get(string(f.Outcome)))
	})
}

// readRounds reads what the rounds tell.
func (m *Manager) readRounds(ctx context.Context, all []failed) error {
	names := []string{"worker", "node", "class", "error"}
	return m.eachRound(ctx, all, func(f *failed) int { return f.begun }, names, func(f *failed, get func(string) string) {
		text := get("error")
		f.Worker, f.Node, f.Class, f.Error = get("worker"), get("node"), get("class"), strings.Clone(text[:min(len(text), mostError)])
	})
}

// eachRound reads fields of one round of each task, those of the same round
// number in one call.
func (m *Manager) eachRound(
	ctx context.Context, all []failed, roundOf func(*failed) int, names []string, take func(*failed, func(string) string),
) error {
	byRound := map[int][]*failed{}
	for i := range all {
		if round := roundOf(&all[i]); round >= 0 {
			byRound[round] = append(byRound[round], &all[i])
		}
	}
	for round, those := range byRound {
		fields, ids := make([]string, len(names)), make([]int64, len(those))
		for i, name := range names {
			fields[i] = statemachine.RoundField(round, name)
		}
		for i, f := range those {
			ids[i] = f.ID
		}
		found, err := m.store.Fields(ctx, ids, fields...)
		if err != nil {
			return err
		}
		for i, f := range those {
			take(f, func(name string) string { return found[i][statemachine.RoundField(round, name)] })
		}
	}
	return nil
}
