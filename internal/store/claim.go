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
}

// Claim moves due tasks to running in the name of one worker, in the order of
// the buckets, within a bucket by start_after, then first in, first out.
func (s *Store) Claim(ctx context.Context, req ClaimRequest) (ClaimReply, error) {
	if req.Max < 1 || req.Worker == "" || req.Request == "" {
		return ClaimReply{}, errors.New("claim: want a worker, a request and room for at least one task")
	}
	k := s.keys
	keys := []string{k.meta(), k.state(statemachine.Open), k.state(statemachine.Running), k.due(), k.lastClaim(req.Worker)}
	var buckets bucketArgs
	for _, b := range req.Buckets {
		buckets.index(b)
	}
	r, err := s.runList(ctx, "claim", append(keys, buckets.keys(k)...), k.taskPrefix(), req.Worker, req.Request, req.Max,
		string(statemachine.Open), string(statemachine.Running), DefaultGrace, writer(req.Worker))
	if err != nil {
		return ClaimReply{}, err
	}
	return decodeClaim(r), nil
}

func decodeClaim(r reply) ClaimReply {
	c := ClaimReply{Now: r.time(0), More: r.text(1) != "", Next: r.time(2)}
	for i := range r.list(3) {
		c.Damaged = append(c.Damaged, r.list(3).number(i))
	}
	for i := range r.list(4) {
		c.Tasks = append(c.Tasks, decodeClaimed(r.list(4).list(i)))
	}
	return c
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

// RegisterWorker gives a worker name its number, which stays with the name
// over restarts, and lists the name among the workers.
func (s *Store) RegisterWorker(ctx context.Context, name string) (int64, error) {
	k := s.keys
	v, err := s.run(ctx, "register", []string{k.meta(), k.worker(), k.workerIDs(), k.workerID(name)}, name)
	if err != nil {
		return 0, err
	}
	id, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("register: id of worker %s: %s", name, strconv.Quote(fmt.Sprint(v)))
	}
	return id, nil
}
