package upkeep

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
)

// Retention says how long archived tasks of an outcome are kept in Redis.
type Retention = config.Retention

// keeperPause is after how many seconds what keeps archived tasks is looked at again.
const keeperPause = 60

// Outdated are archived tasks of one outcome that are to go.
type Outdated struct {
	Outcome statemachine.State
	// Due is how many there are of them beyond those that were skipped, Oldest when the oldest of all was archived.
	Due    int64
	Oldest statemachine.Time
	// IDs are the first of them.
	IDs []int64
}

// PurgeLease is who sees to it that archived tasks go: one server at a time, so that none does it for nothing.
type PurgeLease struct {
	// By is a name without spaces that no other has; For is how long it stays the one after each call, in whole seconds.
	By  string
	For time.Duration
}

// Outdated lists up to most archived tasks beyond the rules, the oldest of each outcome first, and the time of Redis.
// skip is how many of each outcome the caller knows already. mine is false during another server's turn.
func (s *Upkeep) Outdated(
	ctx context.Context, turn PurgeLease, rules []Retention, most int, skip map[statemachine.State]int64,
) (found []Outdated, now statemachine.Time, mine bool, err error) {
	args := append(make([]any, 0, 4+4*len(rules)), turn.By, int64(turn.For/time.Second), most, keeperPause)
	for _, r := range rules {
		age, count := "", ""
		if r.Age > 0 {
			age = strconv.FormatFloat(r.Age.Seconds(), 'f', 6, 64)
		}
		if r.Most >= 0 {
			count = strconv.FormatInt(r.Most, 10)
		}
		args = append(args, string(r.Outcome), age, count, skip[r.Outcome])
	}
	r, err := s.RunList(ctx, "outdated", conn.Subject{}, args...)
	if err != nil || r.Text(1) == "" {
		return nil, r.Time(0), false, err
	}
	for i, rule := range rules {
		o := r.List(2 + i)
		one := Outdated{Outcome: rule.Outcome, Due: o.Number(0), Oldest: o.Time(1)}
		for _, text := range o.List(2).Texts() {
			one.IDs = append(one.IDs, conn.IDOf(text))
		}
		found = append(found, one)
	}
	return found, r.Time(0), true, nil
}

// Overstayed is how many archived tasks should have left by their age for longer than some time. It reads only.
func (s *Upkeep) Overstayed(ctx context.Context, rules []Retention, longer time.Duration) (n int64, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	var counts []*redis.IntCmd
	err = s.Pipelined(ctx, "overstayed", func(p redis.Pipeliner) {
		for _, r := range rules {
			if r.Age <= 0 {
				continue
			}
			limit := now.Add(-statemachine.Duration((r.Age + longer) / time.Microsecond))
			counts = append(counts, p.ZCount(ctx, s.Keys.ArchivedAs(r.Outcome), "-inf", "("+limit.Text()))
		}
	})
	for _, c := range counts {
		n += c.Val()
	}
	return n, err
}

// Outgoing is an archived task that is to go, as it was read.
type Outgoing struct {
	ID      int64
	Rev     int64
	Outcome statemachine.State
}

// Purged says what became of an archived task that was to go.
type Purged int

// What may become of it. Only a task that stays as PurgeChanged may be there to be asked for again at once.
const (
	PurgeChanged Purged = -2 // it has changed since it was read
	PurgeStray   Purged = 0  // it is not archived with that outcome, or not there at all
	PurgeDone    Purged = 1  // it is gone
	PurgeBefore  Purged = 2  // it was gone before
	PurgeKept    Purged = 3  // something needs it
)

// Purge removes archived tasks from Redis with everything that is theirs, and counts them. One that was changed since it was read
// stays, and so does one that is needed: by a plan that is not over, or by a task that repeats it and is not archived. At most
// [PurgePage] a call. The answers are in the order of the tasks.
func (s *Upkeep) Purge(ctx context.Context, tasks []Outgoing) ([]Purged, error) {
	k := s.Keys
	keys, args := make([]string, 0, 4*len(tasks)), append(make([]any, 0, 1+3*len(tasks)), keeperPause)
	for _, t := range tasks {
		keys = append(keys, k.Task(t.ID), k.Live(t.ID), k.Dependants(t.ID), k.Stuck(t.ID))
		args = append(args, t.ID, t.Rev, string(t.Outcome))
	}
	r, err := s.RunList(ctx, "purge", conn.Subject{More: keys}, args...)
	answers := make([]Purged, len(r))
	for i := range r {
		answers[i] = Purged(r.Number(i))
	}
	return answers, err
}

// PurgePage is how many tasks one call of [Upkeep.Purge] takes: Redis is blocked for about a millisecond.
const PurgePage = 50

// Retain puts archived tasks into the index of those that may go, as far as they belong there and are not in it, and returns how
// many it put there. upTo, if above 0, is the id up to which all archived tasks are in it then.
func (s *Upkeep) Retain(ctx context.Context, ids []int64, upTo int64) (int64, error) {
	mark := ""
	if upTo > 0 {
		mark = strconv.FormatInt(upTo, 10)
	}
	v, err := s.Run(ctx, "retain", conn.Subject{}, conn.Args([]any{mark}, ids...)...)
	n, _ := v.(int64)
	return n, err
}

// KeepIndex makes all clients note which archived tasks may go, from now on, and returns the ids that were archived
// before and are not noted yet: those above from, up to to.
func (s *Upkeep) KeepIndex(ctx context.Context) (from, to int64, err error) {
	last, err := s.tasks.LastID(ctx)
	if err != nil {
		return 0, 0, err
	}
	var fields *redis.SliceCmd
	err = s.Pipelined(ctx, "retention", func(p redis.Pipeliner) {
		p.HSetNX(ctx, s.Keys.Meta(), "retention", last)
		fields = p.HMGet(ctx, s.Keys.Meta(), "retained", "retention")
	})
	if err != nil {
		return 0, 0, err
	}
	bounds := conn.Reply(fields.Val())
	return bounds.Number(0), bounds.Number(1), nil
}

// Origin is the epoch in which the ids of the namespace began: they begin anew with each flush, and go on when Redis has lost
// something.
func (s *Upkeep) Origin(ctx context.Context) (int64, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return 0, err
	}
	if len(epochs) > 0 {
		return epochs[0].Number - 1, nil
	}
	text, err := s.Redis.HGet(ctx, s.Keys.Meta(), "epoch").Result()
	if err != nil && !conn.IsNil(err) {
		return 0, s.Failed("origin", err)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	return 1, nil
}

// NoteArchive tells in Redis why archived tasks cannot be written to a server's archive, and so do not leave Redis; empty that
// they can again. [Sizes] has it.
func (s *Upkeep) NoteArchive(ctx context.Context, problem string) error {
	return s.Pipelined(ctx, "note archive", func(p redis.Pipeliner) {
		if problem == "" {
			p.HDel(ctx, s.Keys.Meta(), archiveError)
		} else {
			p.HSet(ctx, s.Keys.Meta(), archiveError, problem)
		}
	})
}

// archiveError is the field of meta that says why archived tasks cannot be written to an archive.
const archiveError = "archive_error"
