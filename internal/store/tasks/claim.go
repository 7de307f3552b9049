package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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
	// Candidates are the queues to take from, and the buckets of each (see task.Candidates).
	Candidates []task.Candidate
	// First is which of the queues has the first turn; raise it with each claim.
	First int
	// Rules is the version of the rules that Candidates were made from; 0: whatever
	// they are.
	Rules int64
	// Max is how many slots to claim for, at least 1: a task takes one, or as many as it asks for of [task.CPUs]. Ahead is how
	// many of them are claimed ahead of free slots: these come last, belong to no plan, need no resources, and count against no limit.
	Max, Ahead int
	// Gathers is [ClaimReply].Gathers of the last claim.
	Gathers string
	// Incarnation is that of the worker's session; 0 claims without a lease, so
	// that only timeout and end_before bring the tasks back.
	Incarnation int64
	// Node is the worker's node; it goes into the round's record.
	Node string
	// Known is the version of the list of buckets that Candidates were made from.
	Known int64
	// MaxThreads is the most rounds on the node at a time, over all queues;
	// task.Unlimited for no limit. It is ignored without a Node.
	MaxThreads task.Limit
	// Resources are what the node offers; without a Node there are none.
	Resources task.Resources
	// Woken is what ended the worker's last wait, if it is not decided yet whether
	// it is used (see [ClaimReply].Unused).
	Woken WakeUp
	// Waited says that the request was sent behind a wait before, and had no answer: it
	// is called off first, since Redis may carry it out later (see [Tasks.WaitAndClaim]).
	Waited bool

	till statemachine.Time // from when on nothing is claimed, 0 for never
}

// Claimed is a task with what a worker needs to run it.
type Claimed struct {
	// Task is what decisions about the round are made from.
	Task statemachine.Task
	// Spec is what there is to run: Program, Source, Input, Argv, Variables, Stdin, FailOn, OnCut, Return, ReturnOn, ReturnTo, Workdir,
	// MemoryMax, PidsMax, Nice, Queue, Class, Needs, Args and Meta.
	Spec task.Spec
	// Bucket is where the task waits when it is opened again.
	Bucket task.Bucket
	// Plan is the plan of the task, 0 for none.
	Plan task.PlanID
	// Job is the job of a task whose source the first worker pins (see task.PinFirst), else 0.
	Job task.PlanID
	// Resources is what the round got of the node, by name; which, where the node offers at most MaxIDs.
	Resources map[string]task.Allotted
	// Expiry is when end_before comes, by the time of the namespace.
	Expiry statemachine.Time
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
	// Stale says that the rules have changed, or that the claim was called off, and
	// nothing was claimed. NewBuckets says that the list of buckets has; tasks may have been claimed. Read the
	// [fleet.Fleet.Rules] and claim again.
	Stale, NewBuckets bool
	// Full are the queues with due tasks of which nothing more may be claimed
	// here, because of a limit or because a resource is taken; NodeFull says that
	// of all queues on this node. Elsewhere are those of Full that have a place
	// here, but none in the fleet.
	Full, Elsewhere []string
	NodeFull        bool
	// Gathers is the queue whose next task takes more slots than are free, which the worker keeps for it; empty for none.
	// Wider says that such tasks are due, whether it keeps slots or not: claim again when another slot is free.
	Gathers string
	Wider   bool
	// Unused says that the worker has no use for the wake-up of the request, and is
	// to pass it on to others (see [fleet.Fleet.PassOn]), unless it claims again at once.
	Unused bool
}

// Claim moves due tasks to running in the name of one worker, as far as the
// limits of queues and node allow; in which order, task.QueueSpec says. Under a
// session it counts as a heartbeat; the error matches [conn.ErrLeaseLost], and
// nothing is claimed, if that session is over.
func (s *Tasks) Claim(ctx context.Context, req ClaimRequest) (ClaimReply, error) {
	if req.Waited {
		if err := s.Interrupt(ctx, req.Worker, req.Request); err != nil {
			return ClaimReply{}, err
		}
	}
	t := s.turn(ctx, nil, &req)
	return t.Reply, t.Claimed
}

// check says what of a request a script cannot take.
func (r *ClaimRequest) check() error {
	if r.Max < 1 || r.Ahead < 0 || r.Ahead > r.Max || r.Worker == "" || r.Request == "" {
		return errors.New("claim: want a worker, a request and room for at least one task")
	}
	if r.Node == "" && len(r.Resources) > 0 {
		return &statemachine.FieldError{
			Field: "resources", Value: r.Resources.Text(), Want: "those of a node: name the node that they are counted for",
		}
	}
	return nil
}

// claimed reads the answer to that call.
func (s *Tasks) claimed(req *ClaimRequest, v any) (ClaimReply, error) {
	switch {
	case v == int64(Over):
		return ClaimReply{}, LeaseLost("claim", req.Worker, req.Incarnation)
	case v == int64(outdated):
		return ClaimReply{Stale: true, Next: statemachine.Never}, nil
	case v == int64(tooLate):
		return ClaimReply{}, errTooLate
	}
	c := decodeClaim(conn.AsReply(v))
	for i := range c.Tasks {
		s.Memory.Saw(c.Tasks[i].Task.ID)
	}
	c.Unused = s.Unused(req.Woken, &c)
	return c, nil
}

// gatherTime is how many seconds a worker counts as gathering slots after the claim that said so.
const gatherTime = 10

// Answers of the claim script: to rules that are not in force any more, or a request that
// was called off; and to a request that comes later than its till.
const (
	outdated = -2
	tooLate  = -3
)

var errTooLate = errors.New("the wait has ended by itself, and is to go on")

// call is the call of turn, or of dry, that makes the moves first.
func (r *ClaimRequest) call(k conn.Keys, script string, moves int, m *moveCall) conn.ScriptArgs {
	session := ""
	if r.Incarnation > 0 {
		session = strconv.FormatInt(r.Incarnation, 10)
	}
	till := ""
	if r.till != 0 {
		till = r.till.Text()
	}
	keys := m.keys
	args := append([]any{
		moves, len(m.kinds), r.Worker, r.Request, r.Max, r.Ahead, writer(r.Worker), session, r.Node, versionText(r.Rules), r.Known,
		limitArg(r.MaxThreads), r.Resources.Text(), r.First, r.Gathers, till, len(r.Candidates),
	}, m.args...)
	for i := range r.Candidates {
		q := &r.Candidates[i].Queue
		keys = append(keys, k.BusyQueue(q.Name), k.BusyBoth(q.Name, r.Node), k.WakeQueue(q.Name))
		args = append(args, q.Name, limitArg(q.Threads), limitArg(q.MaxThreads), conn.Flag(q.Order == task.Lifo),
			q.EffectiveAging().Text(), len(r.Candidates[i].Buckets))
		for _, b := range r.Candidates[i].Buckets {
			args = append(args, b.Priority, b.Resources)
		}
	}
	for i := range r.Candidates {
		for _, b := range r.Candidates[i].Buckets {
			name := b.Name()
			keys = append(keys, k.Ready(name), k.Wake(name))
		}
	}
	return conn.ScriptArgs{Name: script, Of: conn.Subject{Worker: r.Worker, Node: r.Node, More: keys}, Args: args}
}

func limitArg(l task.Limit) string {
	if l == task.Unlimited {
		return ""
	}
	return string(l)
}

func decodeClaim(r conn.Reply) ClaimReply {
	c := ClaimReply{Now: r.Time(0), More: r.Text(1) != "", Next: r.Time(2)}
	for i := range r.List(3) {
		c.Damaged = append(c.Damaged, r.List(3).Number(i))
	}
	list, at := r.List(4), conn.ClockOf(r, 9)
	c.Tasks = make([]Claimed, len(list))
	for i := range list {
		c.Tasks[i] = decodeClaimed(list.List(i), at)
	}
	c.NewBuckets, c.NodeFull = r.Text(5) != "", r.Text(7) != ""
	c.Full, c.Elsewhere = r.List(6).Texts(), r.List(8).Texts()
	c.Gathers, c.Wider = r.Text(10), r.Text(11) != ""
	return c
}

// decodeClaimed reads what the script has checked: the numbers are numbers.
// Argv that is no list is left to the worker, as an error of the round.
func decodeClaimed(r conn.Reply, at conn.Clock) Claimed {
	f := FieldReader{Get: func(name string) string {
		if i, ok := claimFields[name]; ok {
			return r.Text(4 + i)
		}
		return ""
	}}
	t, bucket := f.task(r.Number(0)), f.bucket()
	t.State = statemachine.Running
	t.Current = statemachine.Round{Claim: r.Text(1), Running: r.Time(2)}
	c := Claimed{
		Task: t, Bucket: bucket, Plan: task.PlanID(f.Count(PlanField)), Resources: task.ParseAllotted(r.Text(3)),
		Expiry: at.Moment(t.EndBefore),
		Spec: task.Spec{
			Program: f.Get("program"), Source: f.Get("source"), Input: f.Get("input"), FailOn: f.Get("fail_on"),
			Queue: bucket.QueueName(), Class: bucket.Class, Needs: task.ParseNeeds(f.Get("needs")), Args: f.Get("args"),
			Workdir: f.Get("workdir"), Stdin: f.Get("stdin"), OnCut: f.Get("on_cut"), ReturnOn: f.Get("return_on"), ReturnTo: f.Get("return_to"),
		},
	}
	if c.Plan == 0 && strings.HasSuffix(c.Spec.Source, task.PinFirst) {
		c.Job = task.PlanOf(f.Get(PlanField))
	}
	if text := f.Get("meta"); text != "" {
		c.Spec.Meta = decodeTexts(text)
	}
	if text := f.Get("variables"); text != "" {
		c.Spec.Variables = decodeTexts(text)
	}
	if text := f.Get("params"); text != "" {
		c.Spec.Params = json.RawMessage(text)
	}
	c.Spec.MemoryMax = limitOf(f.Get("memory_max"))
	c.Spec.PidsMax, c.Spec.Nice = int(limitOf(f.Get("pids_max"))), int(limitOf(f.Get("nice")))
	if text := f.Get("return"); text != "" {
		c.Spec.Return = decodeArgv(text)
	}
	if text := f.Get("argv"); text != "" {
		c.Spec.Argv = decodeArgv(text)
	}
	return c
}

// decodeTexts reads the JSON object of the field meta or variables; what is no object of texts says nothing.
func decodeTexts(text string) (texts map[string]string) {
	_ = json.Unmarshal([]byte(text), &texts)
	return texts
}

// limitOf reads a limit; -1 for what is no number, so that nobody takes it for no limit.
func limitOf(text string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// decodeArgv reads the JSON array of the field argv; any other text becomes the
// only argument, so that the program can complain about it.
func decodeArgv(text string) []string {
	argv := []string{}
	if err := json.Unmarshal([]byte(text), &argv); err != nil {
		return []string{text}
	}
	return argv
}

// The order in which the claim script returns the fields of a task: those that each task has, then, of a task that has more,
// all that its worker has to know. claims.lua knows the places of the plan, and of the node to avoid.
var (
	claimedFirst = []string{
		"state", "round", "rev", startField, "end_before", "timeout", "fails", "timeouts", "max_fails", "max_timeouts",
		"program", "source", "input", "archive",
	}
	claimedMore = slices.DeleteFunc(append([]string{
		"argv", "args", "meta", PlanField, AvoidField, "needs", ClassField, "losses", "releases", "faults", "not_before", "cancel_requested",
		"variables", "return", "return_on", "return_to", "stdin", "memory_max", "pids_max", "nice", "params",
	}, configured()...), func(name string) bool { return slices.Contains(claimedFirst, name) })
)

// claimFields is where they stand.
var claimFields = placesOf(slices.Concat(claimedFirst, claimedMore))

// writer pads a name as the original's log lines do.
func writer(name string) string {
	if missing := 10 - utf8.RuneCountInString(name); missing > 0 {
		return name + "          "[:missing]
	}
	return name
}

// Turn is the answer to the end of some rounds and the claim of the next ones.
type Turn struct {
	Outcomes []Outcome
	// Moved is the error of the moves, as that of Apply.
	Moved error
	Reply ClaimReply
	// Claimed is the error of the claim, as that of Claim.
	Claimed error
}

// Turn is [Tasks.Apply], of at least one commit, and then [Tasks.Claim], if req is not nil, in one trip to Redis. Each is
// carried out, or not, as it would be alone; but where the moves fail as a whole, nothing is claimed.
func (s *Tasks) Turn(ctx context.Context, commits []Commit, req *ClaimRequest) (t Turn) {
	commits, err := s.withMeta(ctx, commits)
	if err != nil {
		return Turn{Moved: err, Claimed: err}
	}
	if req == nil {
		t.Outcomes, t.Moved = s.Apply(ctx, commits...)
		return t
	}
	return s.turn(ctx, commits, req)
}

func (s *Tasks) turn(ctx context.Context, commits []Commit, req *ClaimRequest) (t Turn) {
	moves, err := s.callOf(commits)
	if err == nil {
		err = req.check()
	}
	if err != nil {
		return Turn{Moved: err, Claimed: err}
	}
	call := req.call(s.Keys, "turn", len(commits), &moves)
	answer, err := s.Run(ctx, call.Name, call.Of, call.Args...)
	return s.turned(commits, req, conn.AsReply(answer), err)
}

// turned reads the answer to that call.
func (s *Tasks) turned(commits []Commit, req *ClaimRequest, answer conn.Reply, err error) (t Turn) {
	if err == nil && len(answer) != 2 {
		err = fmt.Errorf("turn: %d answers, want 2", len(answer))
	}
	if err != nil {
		return Turn{Moved: err, Claimed: err}
	}
	t.Outcomes, t.Moved = s.outcomes(commits, answer[0])
	if refused, ok := answer[1].(error); ok {
		t.Claimed = s.Failed("turn", refused)
		return t
	}
	t.Reply, t.Claimed = s.claimed(req, answer[1])
	return t
}

// taskWords are the fields that scripts read of a task, which follow from package task.
var taskWords = map[string]string{
	"--[[header]]": luaList(headerFields), "--[[first]]": luaList(claimFirst), "--[[more]]": luaList(claimedMore), "EVIDENCE_TTL": evidenceTTL,
	"DEFAULT_GRACE": strconv.Itoa(DefaultGrace), "GATE_RUN": strconv.Itoa(blame.GateRun), "MOST_IDS": strconv.Itoa(MaxIDs),
	"GATHER":    strconv.Itoa(gatherTime),
	"PIN_FIRST": "'" + task.PinFirst + "'", "PIN_END": strconv.Itoa(int(task.PinFirst[len(task.PinFirst)-1])),
	"MAX_AHEAD": strconv.Itoa(config.MaxAhead),
}

// claimFirst are the fields that the claim reads of each task: what it answers is among them.
var claimFirst = []string{
	"state", "round", startField, "end_before", "timeout", "fails", "timeouts", "max_fails", "max_timeouts", "program", "source", "input",
	"log", "id", "namespace", "0:open", "archive",
}

// luaList is a list of fields as a script has it behind others.
func luaList(names []string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString(", '" + name + "'")
	}
	return text.String()
}

// Over is what scripts answer to a session that is over.
const Over = -1

// LeaseLost is the error of a worker whose session is over.
func LeaseLost(op, name string, incarnation int64) error {
	return fmt.Errorf("%s: worker %s, incarnation %d: %w", op, conn.Quote(name), incarnation, conn.ErrLeaseLost)
}
