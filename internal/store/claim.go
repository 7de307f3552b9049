package store

import (
	"context"
	"errors"
	"strconv"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// DefaultGrace is how many seconds the server leaves an overdue round to its
// worker where no server has published another value.
const DefaultGrace = 10

// ClaimRequest asks for due tasks.
type ClaimRequest struct {
	// Worker is the worker's name; it goes into the round's record and log.
	Worker string
	// Request identifies the call: sent again, it returns the same tasks. The
	// claim ids are made from it. Use [NewToken].
	Request string
	// Turns are the queues to take from, and the buckets of each (see route.Turns).
	Turns []route.Turn
	// First is which of the queues has the first turn; raise it with each claim.
	First int
	// Rules is the version of the rules that Turns were made from; 0: whatever
	// they are.
	Rules int64
	// Max is the most tasks to claim, at least 1.
	Max int
	// Incarnation is that of the worker's session; 0 claims without a lease, so
	// that only timeout and end_before bring the tasks back.
	Incarnation int64
	// Node is the worker's node; it goes into the round's record.
	Node string
	// Known is the version of the list of buckets that Turns were made from.
	Known int64
	// MaxThreads is the most rounds on the node at a time, over all queues;
	// route.NoLimit for no such limit. Without a Node there is none.
	MaxThreads route.Limit
	// Resources are what the node offers; without a Node there are none.
	Resources route.Resources
}

// Claimed is a task with what a worker needs to run it.
type Claimed struct {
	statemachine.Task
	Program, Source, Input string
	// Argv takes the place of Input if it is not nil.
	Argv []string
	// FailOn is "", "stderr" or "exit".
	FailOn string
	// Bucket is where the task waits when it is opened again.
	Bucket Bucket
	// Plan is the plan of the task, 0 for none; Needs are the tasks whose results are its arguments, and ArgsAs how
	// the program gets them (see Spec.ArgsAs).
	Plan   int64
	Needs  []Need
	ArgsAs string
	// Resources is what the round got of the node: by name, the count and which.
	Resources map[string]Allotted
	// Expiry is when end_before comes, by the time of the namespace.
	Expiry statemachine.Time
}

// Allotted is a part of a resource of the node.
type Allotted struct {
	Count int
	// IDs says which, from 0, where the node offers at most MaxIDs of it.
	IDs []int
}

// MaxIDs is up to how many pieces of a resource are told apart.
const MaxIDs = 1024

// ClaimReply is the answer to a claim.
type ClaimReply struct {
	Tasks []Claimed
	// Damaged are ids met on the way whose hash does not hold what it must;
	// they are no longer offered.
	Damaged []int64
	// More says that further tasks are due in these buckets.
	More bool
	// Next is when the next task of these buckets starts, or when a node that is set
	// aside may try one, or Never.
	Next statemachine.Time
	// Now is the time of the claim.
	Now statemachine.Time
	// Stale says that the rules have changed, and nothing was claimed. NewBuckets
	// says that the list of buckets has; tasks may have been claimed. Read the
	// [Store.Rules] and claim again.
	Stale, NewBuckets bool
	// Full are the queues with due tasks of which nothing more may be claimed
	// here, because of a limit or because a resource is taken; NodeFull says that
	// of all queues on this node. Elsewhere are those of Full that have a place
	// here, but none in the fleet.
	Full, Elsewhere []string
	NodeFull        bool
}

// Claim moves due tasks to running in the name of one worker, as far as the
// limits of queues and node allow; in which order, route.Queue says. Under a
// session it counts as a heartbeat; the error matches [ErrLeaseLost], and
// nothing is claimed, if that session is over.
func (s *Store) Claim(ctx context.Context, req ClaimRequest) (ClaimReply, error) {
	call, err := s.claim(&req)
	if err != nil {
		return ClaimReply{}, err
	}
	v, err := s.run(ctx, "claim", call.keys, call.args...)
	if err != nil {
		return ClaimReply{}, err
	}
	return s.claimed(&req, v)
}

// claim is the call that claims.
func (s *Store) claim(req *ClaimRequest) (scriptArgs, error) {
	if req.Max < 1 || req.Worker == "" || req.Request == "" {
		return scriptArgs{}, errors.New("claim: want a worker, a request and room for at least one task")
	}
	if req.Node == "" && len(req.Resources) > 0 {
		return scriptArgs{}, &statemachine.FieldError{
			Field: "resources", Value: req.Resources.Text(), Want: "those of a node: name the node that they are counted for",
		}
	}
	return scriptArgs{"claim", req.keys(s.keys), req.args(s.keys)}, nil
}

// claimed reads the answer to that call.
func (s *Store) claimed(req *ClaimRequest, v any) (ClaimReply, error) {
	switch {
	case v == int64(over):
		return ClaimReply{}, leaseLost("claim", req.Worker, req.Incarnation)
	case v == int64(outdated):
		return ClaimReply{Stale: true, Next: statemachine.Never}, nil
	}
	c := decodeClaim(asReply(v))
	for i := range c.Tasks {
		s.history.saw(c.Tasks[i].ID)
	}
	return c, nil
}

// outdated is the answer of the claim script to rules that are not in force any
// more.
const outdated = -2

func (r *ClaimRequest) keys(k keys) []string {
	keys := []string{
		k.meta(), k.state(statemachine.Open), k.state(statemachine.Running), k.due(), k.lastClaim(r.Worker),
		k.workerDoc(r.Worker), k.lease(), k.held(r.Worker),
		k.node(r.Node), k.busyNode(r.Node), k.used(r.Node), k.full(), k.wakeNode(r.Node), k.wakeServer(),
	}
	for i := range r.Turns {
		queue := r.Turns[i].Queue.Name
		keys = append(keys, k.busyQueue(queue), k.busyBoth(queue, r.Node), k.wakeQueue(queue))
	}
	for i := range r.Turns {
		for _, b := range r.Turns[i].Buckets {
			name := b.Name()
			keys = append(keys, k.ready(name), k.wake(name))
		}
	}
	return keys
}

func (r *ClaimRequest) args(k keys) []any {
	session, rules := "", ""
	if r.Incarnation > 0 {
		session = strconv.FormatInt(r.Incarnation, 10)
	}
	if r.Rules > 0 {
		rules = strconv.FormatInt(r.Rules-1, 10)
	}
	args := []any{
		k.taskPrefix(), r.Worker, r.Request, r.Max, string(statemachine.Open), string(statemachine.Running), DefaultGrace,
		writer(r.Worker), session, string(WorkerLost), string(WorkerStopped), r.Node, rules, r.Known,
		limitArg(r.MaxThreads), r.Resources.Text(), MaxIDs, GateRun, r.First, len(r.Turns),
	}
	for i := range r.Turns {
		q := &r.Turns[i].Queue
		args = append(args, q.Name, limitArg(q.Threads), limitArg(q.MaxThreads), flag(q.Order == route.Lifo),
			q.EffectiveAging().Text(), len(r.Turns[i].Buckets))
		for _, b := range r.Turns[i].Buckets {
			args = append(args, b.Priority, b.Resources)
		}
	}
	return args
}

func limitArg(l route.Limit) string {
	if l < 0 {
		return ""
	}
	return l.Text()
}
