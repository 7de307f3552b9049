package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// DryClaim asks what keeps a task from being claimed.
type DryClaim struct {
	// Claim is the claim that is meant. Its Candidates have Queue, and the Bucket of a Task.
	Claim ClaimRequest
	Queue string
	// Task is the task in Bucket, whether or not that lists it; with 0 the question is about the queue.
	Task   int64
	Bucket task.Bucket
	// At is the moment of the claim, if it is later than now.
	At statemachine.Time
}

// Hindrance is what a claim would find in its way. The limits are those that the claim names.
type Hindrance struct {
	// Claimed says that the claim would take the task, if it were the turn of the task's queue.
	Claimed bool
	// Threads, MaxThreads and NodeCap are how many more rounds the limits allow of the queue, of the queue on the
	// node, and on the node; task.Unlimited where there is no limit.
	Threads, MaxThreads, NodeCap Places
	// Gated says that the gate of the node is closed.
	Gated bool
	// Taken are the resources that the task asks and that others have taken too much of.
	Taken []Taken
	// Next is the task that its queue offers before this one once the limits allow it and all that this one asks is free.
	// With the ID 0 there is none.
	Next Overtaking
	// Gathers is the queue for whose task the worker keeps its free slots from this one, as [ClaimReply].Gathers.
	Gathers string
	// Kept is a resource that the task asks and that is kept for others before it, of which Keeper is the first.
	Kept   string
	Keeper int64
}

// Taken is a resource: how much a task asks, and how much is taken on the node.
type Taken struct {
	Name        string
	Asked, Used int
}

// Places is what a limit leaves: below 1 where it is reached.
type Places struct {
	Limited bool
	Left    int64
}

// None reports whether the limit is reached.
func (p Places) None() bool { return p.Limited && p.Left <= 0 }

// Overtaking is a task that is claimed before another one.
type Overtaking struct {
	ID int64
	// Rank is the Priority raised by what it has waited.
	Priority, Rank int64
	// Before is how many tasks of the queue are claimed before the other one, Due how many are due in the Queues that
	// the worker may take from.
	Before, Due, Queues int64
}

// dryBatch is how many dry claims make one trip.
const dryBatch = 32

// DryClaims goes through claims as [Tasks.Claim] does and changes nothing.
func (s *Tasks) DryClaims(ctx context.Context, claims []DryClaim) (found []Hindrance, err error) {
	for batch := range slices.Chunk(claims, dryBatch) {
		calls := make([]conn.ScriptArgs, len(batch))
		for i := range batch {
			if calls[i], err = batch[i].call(s.Keys); err != nil {
				return nil, err
			}
		}
		for _, answer := range s.Together(ctx, calls...) {
			if answer.Err != nil {
				return nil, answer.Err
			}
			found = append(found, decodeHindrance(conn.AsReply(answer.Value)))
		}
	}
	return found, nil
}

func (d *DryClaim) call(k conn.Keys) (conn.ScriptArgs, error) {
	queue := slices.IndexFunc(d.Claim.Candidates, func(c task.Candidate) bool { return c.Queue.Name == d.Queue })
	if queue < 0 {
		return conn.ScriptArgs{}, fmt.Errorf("dry claim: queue %s is not among its candidates", conn.Quote(d.Queue))
	}
	bucket := -1
	if d.Task != 0 {
		bucket = slices.IndexFunc(d.Claim.Candidates[queue].Buckets, func(b task.Bucket) bool { return b.Name() == d.Bucket.Name() })
	}
	call := d.Claim.call(k, "dry", 0, &moveCall{})
	call.Args = append(call.Args, queue+1, bucket+1, Member(d.Task), d.At.Text())
	return call, nil
}

func decodeHindrance(r conn.Reply) Hindrance {
	places := func(i int) Places { return Places{Limited: r.Text(i) != "", Left: r.Number(i)} }
	h := Hindrance{
		Threads: places(0), MaxThreads: places(1), NodeCap: places(2), Gated: r.Text(3) != "",
		Kept: r.Text(6), Keeper: r.Number(7), Claimed: r.Text(8) != "", Gathers: r.Text(9),
	}
	for lent := range slices.Chunk(r.List(4), 3) {
		h.Taken = append(h.Taken, Taken{lent.Text(0), int(lent.Number(1)), int(lent.Number(2))})
	}
	if next := r.List(5); len(next) > 0 {
		h.Next = Overtaking{next.Number(0), next.Number(1), next.Number(2), next.Number(3), next.Number(4), next.Number(5)}
	}
	return h
}
