package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

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
	// Buckets to take from, in order (see [Claimable]).
	Buckets []Bucket
	// Max is the most tasks to claim, at least 1.
	Max int
	// Incarnation is that of the worker's session; 0 claims without a lease, so
	// that only timeout and end_before bring the tasks back.
	Incarnation int64
	// Node is the worker's node; it goes into the round's record.
	Node string
	// Known is how many buckets the worker knows of; see ClaimReply.Buckets.
	Known int
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
}

// ClaimReply is the answer to a claim.
type ClaimReply struct {
	Tasks []Claimed
	// Damaged are ids met on the way whose hash does not hold what it must;
	// they are no longer offered.
	Damaged []int64
	// More says that further tasks are due in these buckets.
	More bool
	// Next is when the next task of these buckets starts, or Never.
	Next statemachine.Time
	// Now is the time of the claim.
	Now statemachine.Time
	// Buckets are all there are, if their number is not ClaimRequest.Known; else nil.
	Buckets []Bucket
}

// Claim moves due tasks to running in the name of one worker, in the order of
// the buckets, within a bucket by start_after, then first in, first out. Under
// a session it counts as a heartbeat; the error matches [ErrLeaseLost], and
// nothing is claimed, if that session is over.
func (s *Store) Claim(ctx context.Context, req ClaimRequest) (ClaimReply, error) {
	if req.Max < 1 || req.Worker == "" || req.Request == "" {
		return ClaimReply{}, errors.New("claim: want a worker, a request and room for at least one task")
	}
	k := s.keys
	keys := []string{
		k.meta(), k.state(statemachine.Open), k.state(statemachine.Running), k.due(), k.lastClaim(req.Worker),
		k.workerDoc(req.Worker), k.lease(), k.held(req.Worker), k.buckets(),
	}
	var buckets bucketArgs
	for _, b := range req.Buckets {
		buckets.index(b)
	}
	session := ""
	if req.Incarnation > 0 {
		session = strconv.FormatInt(req.Incarnation, 10)
	}
	v, err := s.run(ctx, "claim", append(keys, buckets.keys(k)...), k.taskPrefix(), req.Worker, req.Request, req.Max,
		string(statemachine.Open), string(statemachine.Running), DefaultGrace, writer(req.Worker),
		session, string(WorkerLost), string(WorkerStopped), req.Node, req.Known)
	if err != nil {
		return ClaimReply{}, err
	}
	if v == int64(over) {
		return ClaimReply{}, leaseLost("claim", req.Worker, req.Incarnation)
	}
	return decodeClaim(asReply(v)), nil
}

func decodeClaim(r reply) ClaimReply {
	c := ClaimReply{Now: r.time(0), More: r.text(1) != "", Next: r.time(2)}
	for i := range r.list(3) {
		c.Damaged = append(c.Damaged, r.list(3).number(i))
	}
	for i := range r.list(4) {
		c.Tasks = append(c.Tasks, decodeClaimed(r.list(4).list(i)))
	}
	for i := range r.list(5) {
		c.Buckets = append(c.Buckets, bucketOf(r.list(5).text(i)))
	}
	return c
}

// bucketOf reads a name in the list of buckets. One that is no name, by hand,
// becomes a bucket that no worker takes from, so that the number stays right.
func bucketOf(name string) Bucket {
	b, err := parseBucket(name)
	if err != nil {
		return Bucket{Env: name}
	}
	return b
}

// decodeClaimed reads what the script has checked: the numbers are numbers.
// Argv that is no list is left to the worker, as an error of the round.
func decodeClaimed(r reply) Claimed {
	f := fieldReader{get: func(name string) string {
		if i, ok := claimFields[name]; ok {
			return r.text(3 + i)
		}
		return ""
	}}
	t := Claimed{
		Program: f.get("program"), Source: f.get("source"), Input: f.get("input"), FailOn: f.get("fail_on"),
	}
	t.Task, t.Bucket = f.task(r.number(0)), f.bucket()
	t.State = statemachine.Running
	t.Current = statemachine.Round{Claim: r.text(1), Running: r.time(2)}
	if text := f.get("argv"); text != "" {
		t.Argv = decodeArgv(text)
	}
	return t
}

// decodeArgv reads the JSON array of the field argv; a text that is none
// becomes the only argument, so that the program can complain about it.
func decodeArgv(text string) []string {
	argv := []string{}
	if err := json.Unmarshal([]byte(text), &argv); err != nil {
		return []string{text}
	}
	return argv
}

// claimFields is where the fields stand in a task that the script returns.
var claimFields = map[string]int{
	"state": 0, "round": 1, "rev": 2, "start_after": 3, "end_before": 4, "timeout": 5,
	"fails": 6, "timeouts": 7, "max_fails": 8, "max_timeouts": 9, "program": 10, "source": 11,
	"input": 12, "argv": 13, "fail_on": 14, "losses": 15, "releases": 16, "max_losses": 17,
	"queue": 18, "env": 19, "labels": 20, "priority": 21,
}

// writer pads a name as the original's log lines do.
func writer(name string) string { return fmt.Sprintf("%-10s", name) }
