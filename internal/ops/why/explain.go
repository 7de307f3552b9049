// Package why explains why a task is where it is, and what would change it.
//
// A [Situation] is a task and everything around it, read at one moment; [Explain]
// and [ExplainQueue] turn it into reasons for people, each with the change that
// would take it away. Whether a task and a worker go together at all is asked of
// task.Unfit, as the claim does. What the claim script decides beside that
// (limits, free resources, gates, order) the script says itself, in a dry claim
// ([Situation.Claims]). A task that a claim would take has no reason that blocks
// it, any other has one at least, and carrying out what its reasons propose makes
// the claim take it.
package why

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Explain says why the task is where it is. What blocks an open or blocked task
// comes first, for the worker that is nearest to taking it: once everything that
// its reasons propose is done, a claim takes the task. Without a reason that
// blocks, the next claim of some worker takes it now.
// The error is that of a dry claim.
func Explain(s Situation) (Explanation, error) {
	found, err := s.explain()
	return append(found, s.stepped()...), err
}

func (s *Situation) explain() (Explanation, error) {
	switch t := &s.Task; t.State {
	case statemachine.Open:
		return s.open()
	case statemachine.Blocked:
		return s.blocked()
	case statemachine.Running:
		return s.running(), nil
	case statemachine.Executed:
		return s.executed(), nil
	default:
		return s.ended(), nil
	}
}

// held says who holds the task.
func (s *Situation) held() Reason {
	who, why := s.saidBy("held by "), s.Record.Hold
	if why == "held by "+who { // what is recorded where nobody gave a reason
		why = ""
	}
	text := "held" + with(" by ", who) + since(s.Now, s.entered()) + with(": ", why)
	return blocks(KindHeld, s.onTask(AttrHold, ""), text)
}

// blocked explains a blocked task, and what it will meet once it is released.
func (s *Situation) blocked() (Explanation, error) {
	reasons := s.planned()
	if s.Record.DoomedBy != 0 { // it is never going to be open
		return reasons, nil
	}
	reasons = append(reasons, s.timely()...)
	found, err := s.hindered(false)
	for _, r := range found {
		if r.Blocks {
			r.Text = "once released: " + r.Text
			reasons = append(reasons, r)
		}
	}
	return reasons, err
}

// ExplainQueue says what keeps the tasks of a queue from being claimed: what
// holds for all of them, then what waits that nobody fits, then who may take
// from the queue and who may not. The task of the situation does not count.
// The error is that of a dry claim.
func ExplainQueue(s Situation, name string) (Explanation, error) {
	q := s.queue(name)
	found, err := s.closed(&q)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s, %d of them due", things(q.Waiting, "task waits", "tasks wait"), q.Due)
	if !q.Oldest.IsZero() {
		text += ", the oldest" + since(s.Now, task.Stamp(q.Oldest))
	}
	found = append(found, Reason{Kind: KindWaiting, Text: text + fmt.Sprintf("; %d running", q.Running) + s.holders(&q)})
	found = append(found, s.unserved(&q)...)
	servers, err := s.servers(&q)
	return append(found, servers...), err
}

// closed finds what keeps every task of the queue.
func (s *Situation) closed(q *task.Queue) (Explanation, error) {
	var found Explanation
	all := &candidate{s: s, queue: *q, worker: task.Worker{Registration: task.Registration{MaxThreads: task.Unlimited}}}
	all.queue.MaxThreads = task.Unlimited // of some node
	if err := s.ask([]*candidate{all}); err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(task.Unfit(task.Bucket{}, q.QueueSpec, task.Offer{})) { // what is damaged before what is paused
		if r.Kind == task.KindPaused {
			_, change := all.adapt(r)
			found = append(found, blocks(KindPaused, change, r.String()))
		}
	}
	found = append(found, all.reasons...)
	if len(s.alive()) == 0 {
		found = append(found, blocks(KindNoWorker, all.onWorker(AttrStart, anyOffer), "no worker is alive"))
	}
	return found, nil
}

// unserved are the lines of the queue that no live worker may take from.
func (s *Situation) unserved(q *task.Queue) Explanation {
	var found Explanation
	alive := s.alive()
	for _, b := range q.Lines {
		if b.Due == 0 || len(alive) == 0 || len(found) == mostOthers {
			continue
		}
		var least []task.Reason
		who := ""
		for _, w := range alive {
			lacks := task.Unfit(b.Bucket, unpaused(q), w.Offer())
			if who == "" || len(lacks) < len(least) {
				who, least = w.Name, lacks
			}
		}
		if len(least) > 0 {
			text := fmt.Sprintf("%s no live worker; %s comes nearest: %s", things(b.Due, "due task fits", "due tasks fit"), who, least[0])
			found = append(found, Reason{Kind: KindUnfit, Text: text})
		}
	}
	return found
}

// unpaused is the queue for somebody who wants to know what else there is.
func unpaused(q *task.Queue) task.QueueSpec {
	open := q.QueueSpec
	_ = open.Set("paused", "false") // a value that can be
	open.Damaged = nil
	return open
}

// servers says of each live worker whether it may take from the queue.
func (s *Situation) servers(q *task.Queue) (Explanation, error) {
	var may, not Explanation
	var fit []*candidate
	for _, w := range s.alive() {
		if lacks := task.Unfit(task.Bucket{Queue: q.Name}, unpaused(q), w.Offer()); len(lacks) > 0 {
			text := placed(&w) + " may not take from it: " + lacks[0].String()
			not = append(not, Reason{Kind: Kind(lacks[0].Kind), Text: text})
			continue
		}
		c := &candidate{s: s, queue: *q, worker: w, node: s.node(w.Node)}
		c.queue.Threads = task.Unlimited // said already
		c.idle()
		fit = append(fit, c)
	}
	if err := s.ask(fit); err != nil {
		return nil, err
	}
	for _, c := range fit {
		who := placed(&c.worker)
		if len(c.reasons) > 0 {
			r := c.reasons[0]
			not = append(not, Reason{Kind: r.Kind, Text: who + " may take from it, but now: " + r.Text, Change: r.Change})
			continue
		}
		may = append(may, Reason{Kind: KindServed, Text: who + " may take from it: " + freeText(&c.worker)})
	}
	return append(may, not...), nil
}

// Kind is what a reason is about. docs/WHY.md tells them to users.
type Kind string

// The kinds of reasons for a task that has not been claimed, beside those of [task.Unfit].
const (
	KindClaimable Kind = "claimable" // nothing is in the way
	KindHeld      Kind = "held"      // an operator holds it
	KindPlan      Kind = "plan"      // its plan is not ready
	KindNeeds     Kind = "needs"     // tasks that it needs have not ended
	KindDoomed    Kind = "doomed"    // it never runs, because of a task that it needs
	KindStart     Kind = "start"     // its start_after has not come
	KindBackoff   Kind = "backoff"   // it rests after a failure
	KindLate      Kind = "late"      // its end_before has passed, or will before it may start
	KindUnlisted  Kind = "unlisted"  // no server has taken it over from another client yet
	KindPaused    Kind = "paused"    // its queue is paused
	KindNoWorker  Kind = "no_worker" // no worker is alive
	KindAway      Kind = "away"      // the worker that fits is lost or stopped
	KindUnfit     Kind = "unfit"     // no worker comes near
	KindPinned    Kind = "pinned"    // its queue is for other nodes
	KindIgnored   Kind = "ignored"   // its queue is not for this node
	KindHandler   Kind = "handler"   // the worker has no Go function of its program's name
	KindElsewhere Kind = "elsewhere" // it is left to others for a while: it has failed on the node, or they keep its version
	KindVersion   Kind = "version"   // no worker has the version that it is pinned to
	KindDrain     Kind = "drain"     // the worker that fits drains
	KindClaimsNot Kind = "claims_nothing"
	KindSlots     Kind = "slots"      // too few of its slots are free, or they are kept for a task that takes several
	KindThreads   Kind = "threads"    // the limit of the queue in the fleet is reached
	KindMax       Kind = "maxthreads" // the limit of the queue on the node is reached
	KindNodeCap   Kind = "node_cap"   // the limit of the node over all queues is reached
	KindGate      Kind = "quarantine" // the node is in quarantine, or waits to be judged
	KindTaken     Kind = "taken"      // other tasks have the resource just now
	KindKept      Kind = "kept"       // the resource is kept for a task before it
	KindLine      Kind = "line"       // tasks are before it
	KindOther     Kind = "other"      // what another worker that fits lacks
	KindClock     Kind = "clock"      // the clock of Redis has stepped
)

// The kinds of reasons for tasks that have been claimed, and for queues.
const (
	KindRunning  Kind = "running"
	KindSilent   Kind = "silent"  // its worker has not been heard of
	KindTimeout  Kind = "timeout" // when its round is over
	KindStop     Kind = "stop"    // somebody asked to stop it
	KindServer   Kind = "server"  // it waits for a server
	KindCause    Kind = "cause"   // the task that it needs because of which it never ran
	KindOutcome  Kind = "outcome" // how it ended, and by which rule
	KindRound    Kind = "round"   // how its last round ended
	KindStderr   Kind = "stderr"  // nothing but text on stderr failed it
	KindRetried  Kind = "retried" // which task repeats it
	KindArchived Kind = "archived"
	KindWaiting  Kind = "waiting" // how many tasks wait in the queue
	KindServed   Kind = "served"  // a worker that may take from the queue
)

// Reason is one thing to say about where a task is, or about a queue.
type Reason struct {
	// Kind is a word that stays the same over versions.
	Kind Kind `json:"kind"`
	// Text is for people: a clause without a full stop.
	Text string `json:"text"`
	// Blocks says that the task is not claimed as long as this holds.
	Blocks bool `json:"blocks"`
	// Change would take the reason away; the zero Remedy if nothing would.
	Change Remedy `json:"change,omitzero"`
}

// blocks is a reason that keeps the task from being claimed.
func blocks(kind Kind, change Remedy, text string) Reason {
	return Reason{Kind: kind, Text: text, Blocks: true, Change: change}
}

// The attributes of objects that a remedy sets, where they are not attributes of
// queues and nodes by their own names, or words of a worker's offer.
const (
	AttrNow       = "now"           // of time: seconds since 1970, to be waited for
	AttrHold      = "hold"          // of a task: "" releases it; of a plan: "" resumes it
	AttrNeeds     = "needs"         // of a task: "" once all that it needs have ended
	AttrAfter     = "after"         // of a job: the job that has to end first
	AttrReady     = "ready"         // of a plan: true once it has been built
	AttrWindow    = "window"        // of a job: how many of its tasks may be open or run; wait until one has ended
	AttrRetry     = "retry"         // of a plan: the task that failed
	AttrSubmit    = "submit"        // of a plan: a new one, because it was called off
	AttrBefore    = "before"        // of a task: how many are claimed before it
	AttrEndBefore = "end_before"    // of a task
	AttrFailOn    = "fail_on"       // of a task
	AttrListed    = "listed"        // of a task: true once a server has taken it over
	AttrState     = "state"         // of a worker: ready
	AttrHandlers  = "handlers"      // of a worker: the name of one more Go function
	AttrOnly      = "handlers_only" // of a worker: false if it runs programs too
	AttrCommands  = "commands"      // of a worker: on if it runs commands too
	AttrReason    = "reason"        // of a worker: "" once it claims again
	AttrSlots     = "slots"         // of a worker
	AttrFreeSlots = "free_slots"    // of a worker: how many slots have to be free
	AttrStart     = "start"         // of a worker: a new one with this offer; without a node, on any that the queue does not avoid
	AttrFree      = "free"          // of a node: name=number, how much more of a resource has to be free
	AttrGate      = "quarantine"    // of the server
)

// Remedy is a change that takes a reason away: the attribute of the object is to
// have the value.
type Remedy struct {
	// Object is task, plan, queue, worker, node, server or time. Name is which one;
	// empty for the time, the server, and a worker to start.
	Object    string `json:"object"`
	Name      string `json:"name,omitempty"`
	Attribute string `json:"attribute"`
	Value     string `json:"value"`
}

func (s *Situation) onTask(attribute, value string) Remedy {
	return Remedy{Object: "task", Name: strconv.FormatInt(s.Task.ID, 10), Attribute: attribute, Value: value}
}

func (s *Situation) onPlan(attribute, value string) Remedy {
	return Remedy{Object: "plan", Name: strconv.FormatInt(int64(s.Record.Plan), 10), Attribute: attribute, Value: value}
}

func (c *candidate) onQueue(attribute, value string) Remedy {
	return Remedy{Object: "queue", Name: c.queue.Name, Attribute: attribute, Value: value}
}

func (c *candidate) onWorker(attribute, value string) Remedy {
	return Remedy{Object: "worker", Name: c.worker.Name, Attribute: attribute, Value: value}
}

func (c *candidate) onNode(attribute, value string) Remedy {
	return Remedy{Object: "node", Name: c.node.Name, Attribute: attribute, Value: value}
}

// Explanation are the reasons, the most important first.
type Explanation []Reason

// Blocked reports whether any of the reasons blocks.
func (e Explanation) Blocked() bool {
	return slices.ContainsFunc(e, func(r Reason) bool { return r.Blocks })
}

// moment is a time for people.
func moment(t statemachine.Time) string {
	if t == statemachine.Never {
		return "never"
	}
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// span is a length of time for people: whole seconds above ten of them.
func span(d statemachine.Duration) string {
	const longest = statemachine.Duration(1<<63-1) / 1000
	if d >= longest {
		return "forever"
	}
	length := time.Duration(d) * time.Microsecond
	if length.Abs() >= 10*time.Second {
		return length.Round(time.Second).String()
	}
	return length.Round(time.Millisecond).String()
}

// since adds when something began and how long ago that is, if it is known.
func since(now, t statemachine.Time) string {
	if t == 0 {
		return ""
	}
	return " since " + moment(t) + " (" + span(now.Sub(t)) + ")"
}

// with is a text behind what leads to it; nothing without one.
func with(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

// things is a number and what is counted.
func things(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// mostNamed is how many of a list a text names.
const mostNamed = 8

// some is a list that does not grow long.
func some(words []string) string {
	if len(words) > mostNamed {
		return strings.Join(words[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(words)-mostNamed)
	}
	return strings.Join(words, ", ")
}

// counts is "a: 2, b: 1", the names sorted, without zeros.
func counts[N int | int64](by map[string]N) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if by[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", name, by[name]))
		}
	}
	return some(parts)
}
