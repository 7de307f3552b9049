package why_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/store/tasks"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const now = 1_700_000_000 * sm.Time(sm.Second)

func before(seconds int) sm.Time { return now - sm.Time(seconds)*sm.Time(sm.Second) }

// worker is one that fits whatever demands nothing.
func worker(change ...func(*task.Worker)) task.Worker {
	w := task.Worker{
		Registration: task.Registration{Name: "w1", Node: "n1", Slots: 2, MaxThreads: task.Unlimited},
		State:        task.WorkerReady, Heartbeat: task.Moment(before(1)),
	}
	for _, f := range change {
		f(&w)
	}
	return w
}

// openTask is an open one of the default queue, with what is around it.
func openTask(change ...func(*why.Situation)) why.Situation {
	s := why.Situation{Now: now}
	s.Task.Task = sm.Task{
		ID: 7, State: sm.Open, EndBefore: sm.Never, Timeout: sm.Forever, MaxFails: 1, MaxTimeouts: 1, MaxLosses: 1, MaxFaults: 1,
	}
	for _, f := range change {
		f(&s)
	}
	r := &s.Record
	r.ID, r.State, r.Outcome, r.Round = s.Task.ID, s.Task.State, s.Task.Outcome, s.Task.Round
	r.Rounds = append(r.Rounds, task.Round{Number: r.Round, Stamps: map[string]time.Time{string(r.State): task.Moment(before(5))}})
	return s
}

// crewed is the situation with these workers.
func crewed(s why.Situation, workers ...task.Worker) why.Situation {
	s.Workers = workers
	return s
}

// past is a round that has ended.
func past(r task.Round) func(*why.Situation) {
	return func(s *why.Situation) {
		stamps := map[string]time.Time{"running": task.Moment(before(50))}
		maps.Copy(stamps, r.Stamps)
		r.Stamps, s.Task.Round = stamps, r.Number+1
		s.Record.Rounds = append(s.Record.Rounds, r)
	}
}

// logged is what the log of the task says.
func logged(lines ...string) func(*why.Situation) {
	return func(s *why.Situation) {
		for _, text := range lines {
			s.Record.Log = append(s.Record.Log, task.LogEntry{Text: text})
		}
	}
}

// told is what is said, a line each, with the kind in front, a mark where it
// blocks, and the change behind.
func told(e why.Explanation) string {
	var text strings.Builder
	for _, r := range e {
		mark := ""
		if r.Blocks {
			mark = "!"
		}
		text.WriteString(string(r.Kind) + mark + " " + r.Text)
		if c := r.Change; c != (why.Remedy{}) {
			text.WriteString(" => " + strings.TrimSpace(c.Object+" "+c.Name) + " " + c.Attribute + "=" + c.Value)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// blocked reports whether a reason blocks.
func blocked(e why.Explanation) bool {
	return slices.ContainsFunc(e, func(r why.Reason) bool { return r.Blocks })
}

// answered are dry claims that all find the same.
func answered(h tasks.Hindrance) func([]tasks.DryClaim) ([]tasks.Hindrance, error) {
	return func(claims []tasks.DryClaim) ([]tasks.Hindrance, error) {
		return slices.Repeat([]tasks.Hindrance{h}, len(claims)), nil
	}
}

func explain(t *testing.T, s why.Situation, want ...string) {
	t.Helper()
	if s.Claims == nil {
		s.Claims = answered(tasks.Hindrance{Claimed: true})
	}
	e, err := why.Explain(s)
	if err != nil {
		t.Fatal(err)
	}
	got := told(e)
	for _, part := range want {
		if !strings.Contains(got, part) {
			t.Errorf("said\n%s, want %q in it", got, part)
		}
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    why.Situation
		want string
	}{
		"claimable": {crewed(openTask(), worker()),
			"claimable nothing is in the way: the next claim of worker w1 on n1 gets it (2 free slots)"},
		"no worker": {openTask(), "no_worker! no worker is alive; start one with any configuration => worker start="},
		"late": {crewed(openTask(func(s *why.Situation) { s.Task.EndBefore = before(3) }), worker()),
			"late! its end_before was 2023-11-14 22:13:17 UTC, 3s ago"},
		"late for a rest": {crewed(openTask(func(s *why.Situation) { s.Task.NotBefore, s.Task.EndBefore = now+9e6, now+5e6 }), worker()),
			"before it may start: it will expire => task 7 end_before=inf"},
		"unlisted": {crewed(openTask(func(s *why.Situation) { s.Unlisted = true }), worker()), "unlisted! another client opened it"},
		"resting": {crewed(openTask(func(s *why.Situation) { s.Task.NotBefore = now + 90e6 },
			past(task.Round{Number: 0, Worker: "w1", Class: sm.ClassProgram, ExitCode: new(3), Error: "\n no disk\n"})), worker()), "backoff! rests until 2023-11-14 22:14:50 UTC, in 1m30s after round 0 of worker w1 failed, " +
			"class program, exit code 3: no disk => time now=1700000090.000000"},
		"held": {openTask(func(s *why.Situation) { s.Task.State, s.Record.Hold = sm.Blocked, "wait for data" }, logged("held by bob", "x", "held by ann: y")),
			"held! held by ann since 2023-11-14 22:13:15 UTC (5s): wait for data => task 7 hold=\nno_worker! once released: no worker is alive"},
		"lost": {crewed(openTask(), worker(func(w *task.Worker) { w.State = task.WorkerLost })),
			"no_worker! no worker is alive; worker w1 on n1 is lost, last heard of 1s ago => worker w1 state=ready"},
		"nearest miss": {crewed(openTask(func(s *why.Situation) { s.Task.Bucket.Labels = "gpu=a100,zone=eu" }),
			worker(func(w *task.Worker) { w.Name = "w0" }),
			worker(func(w *task.Worker) { w.Labels = []string{"gpu=v100", "zone=eu"} })), "label! needs label gpu=a100, the worker offers gpu=v100 (no live worker does; worker w1 on n1 comes nearest) => " +
			"worker w1 labels=gpu=a100"},
		"no commands": {crewed(openTask(func(s *why.Situation) { s.Task.Bucket.Labels = task.CommandsLabel }),
			worker(func(w *task.Worker) { w.Labels = []string{"commands=off"} })), "label! needs label commands=on, the worker offers commands=off (worker w1 on n1) => " +
			"worker w1 commands=on"},
		"no limits of its own": {crewed(openTask(func(s *why.Situation) { s.Task.Bucket.Labels = "memory_max=on" }), worker()),
			"label! needs label memory_max=on, the worker offers none (worker w1 on n1) => worker w1 memory_max=1024TiB"},
		"no worker with limits": {openTask(func(s *why.Situation) { s.Task.Bucket.Labels = "commands=on,memory_max=on,pids_max=on,zone=eu" }),
			"no_worker! no worker is alive; start one with memory_max = 1024TiB; pids_max = 4194304; labels = zone=eu => worker start="},
		"no worker for a command": {openTask(func(s *why.Situation) { s.Task.Bucket.Labels = task.CommandsLabel }),
			"no_worker! no worker is alive; start one with any configuration => worker start="},
		"no worker for a command with a label": {openTask(func(s *why.Situation) { s.Task.Bucket.Labels = task.CommandsLabel + ",zone=eu" }),
			"no_worker! no worker is alive; start one with labels = zone=eu => worker start="},
		"no resource, by another client": {crewed(openTask(func(s *why.Situation) { s.Task.Bucket.Resources = "gpu=many" }), worker()),
			"resource! needs resource gpu=many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explain(t, c.s, c.want)
		})
	}
}

// TestHoldersAreNamed: limits, resources and lines say by whom.
func TestHoldersAreNamed(t *testing.T) {
	t.Parallel()
	q := task.Queue{QueueSpec: task.ParseQueue("q", nil), Running: 3, RunningByNode: map[string]int64{"n1": 2, "n2": 1}}
	q.Threads, q.MaxThreads = task.AtMost(3), task.AtMost(2)
	n := task.Node{NodeRecord: task.ParseNode("n1", nil), Running: 4, Held: map[int64]task.Resources{3: {"gpu": 2}}}
	n.MaxThreads, n.MaxThreadsSet, n.Run, n.Reason = task.AtMost(4), true, 5, "all fail"
	s := crewed(openTask(func(s *why.Situation) {
		s.Task.Bucket = task.Bucket{Queue: "q", Resources: "gpu=1"}
		s.Queues, s.Nodes = []task.Queue{q}, []task.Node{n}
	}), worker(func(w *task.Worker) {
		w.Resources, w.Queues, w.Busy = task.Resources{"gpu": 2}, []task.QueueUse{{Class: "a", Queue: "q", Processing: 1}, {Queue: "q", Processing: 1}}, 2
	}))
	s.Claims = answered(tasks.Hindrance{
		Threads: tasks.Places{Limited: true}, MaxThreads: tasks.Places{Limited: true}, NodeCap: tasks.Places{Limited: true}, Gated: true,
		Taken: []tasks.Taken{{Name: "gpu", Asked: 1, Used: 2}}, Next: tasks.Overtaking{ID: 2, Priority: 4, Rank: 4, Before: 20, Due: 30, Queues: 2},
	})
	explain(t, s,
		"slots! worker w1 on n1 has no free slot (2 of 2 busy) => worker w1 free_slots=1",
		"threads! queue q in the fleet reached its limit: 3 running, threads = 3 (by node n1: 2, n2: 1; by worker w1: 2) => queue q threads=4",
		"maxthreads! queue q on node n1 reached its limit: 2 running, maxthreads = 2 => queue q maxthreads=3",
		"node_cap! node n1 reached its limit: 4 running, maxthreads = 4 (by queue q: 2) => node n1 maxthreads=5",
		"quarantine! node n1 waits for a server's verdict after 5 failures in a row: all fail => server quarantine=warn",
		"taken! needs gpu=1, of 2 on node n1 2 are taken (task 3 has 2) => node n1 free=gpu=1",
		"line! 20 tasks are before it in queue q, next task 2 (priority 4, effective 4); 30 are due in 2 queues, which take turns => task 7 before=0")
	s.Claims = answered(tasks.Hindrance{Kept: "gpu", Keeper: 3})
	explain(t, s, "kept! node n1 keeps gpu for a task before it in queue q, which waits for more (the first is task 3) => task 7 before=0")
}

// What takes several slots needs a worker that has so many, and that has them free; others wait while it keeps them.
func TestSlotsOfWideTasks(t *testing.T) {
	t.Parallel()
	wide := func(s *why.Situation) { s.Task.Bucket = task.Bucket{Resources: "cpus=4"} }
	of := func(slots, busy int) task.Worker {
		return worker(func(w *task.Worker) { w.Slots, w.Busy = slots, busy })
	}
	explain(t, crewed(openTask(wide), of(2, 0)),
		"resource! needs resource cpus=4, the worker has cpus=2 (worker w1 on n1) => worker w1 slots=4")
	explain(t, crewed(openTask(wide), of(6, 3)),
		"slots! it takes 4 slots, worker w1 on n1 has 3 free slots (3 of 6 busy) => worker w1 free_slots=4")
	explain(t, crewed(openTask(wide), worker(func(w *task.Worker) { w.Slots, w.Stuck = 4, 1 })),
		"slots! it takes 4 slots, worker w1 on n1 has 3 free slots (0 of 4 busy, 1 stuck) => worker w1 free_slots=4")
	explain(t, openTask(wide), "no_worker! no worker is alive; start one with slots = 4 => worker start=slots = 4")
	s := crewed(openTask(), of(6, 3))
	s.Claims = answered(tasks.Hindrance{Gathers: "q"})
	explain(t, s, "slots! worker w1 on n1 keeps its 3 free slots for a task of queue q that takes more => queue q paused=true")
}

func TestStarted(t *testing.T) {
	t.Parallel()
	run := func(s *why.Situation) {
		s.Task.State, s.Task.Worker, s.Task.Node, s.Task.Timeout = sm.Running, "w1", "n1", 60*sm.Second
		s.Task.Current = sm.Round{Claim: "c", Running: before(50)}
	}
	explain(t, crewed(openTask(run), worker()),
		"running runs in round 0 on worker w1 on node n1 since 2023-11-14 22:12:30 UTC (50s)",
		"served its worker is ready, last heard of 1s ago", "timeout its timeout ends the round in 10s")
	explain(t, openTask(run, logged("stop asked for by bob: wrong input"), func(s *why.Situation) {
		s.Grace, s.Task.Current.Running, s.Task.StopAsked = 10*sm.Second, before(65), true
		s.Record.CancelRequested, s.Record.CancelReason = task.Moment(before(2)), "wrong input"
	}), "stop a stop was asked for by bob since 2023-11-14 22:13:18 UTC (2s): wrong input; its worker is told",
		"silent its worker is not registered", "over since 5s; servers leave it to its worker for another 5s")
	overdue := crewed(openTask(run, func(s *why.Situation) { s.Task.Current.Running = before(65) }), worker())
	explain(t, overdue, "over since 5s; servers tell its worker to end the round, and move the task when that has, or when its lease is over")
	overdue.Workers = nil
	explain(t, overdue, "over since 5s; the next server to look ends the round")
	explain(t, openTask(func(s *why.Situation) {
		s.ServerSeen, s.Task.State, s.Task.Current.Executed = before(30), sm.Executed, before(4)
	}),
		"server round 0 was reported since 2023-11-14 22:13:16 UTC (4s) and waits for a server to settle it; one was last seen 30s ago")
}

func TestEnded(t *testing.T) {
	t.Parallel()
	end := func(how sm.State, change ...func(*why.Situation)) why.Situation {
		return openTask(append(change, func(s *why.Situation) { s.Task.State, s.Task.Outcome = sm.Archived, how })...)
	}
	for want, s := range map[string]why.Situation{
		"outcome succeeded: round 0 ended without an error":                      end(sm.Succeeded),
		"outcome failed: it failed 2 times, max_fails = 1":                       end(sm.Failed, func(s *why.Situation) { s.Task.Fails = 2 }),
		"outcome failed: it failed without being to blame 2 times, max_faults =": end(sm.Failed, func(s *why.Situation) { s.Task.Faults = 2 }),
		"outcome failed: exit code 3 is among its fatal_exit_codes": end(sm.Failed, func(s *why.Situation) {
			s.Task.Fails, s.Task.FatalCodes, s.Task.Current.HasExit, s.Task.Current.ExitCode = 1, []int{3}, true, 3
		}),
		"outcome failed: exit code 3 is not among its retry_exit_codes": end(sm.Failed, func(s *why.Situation) {
			s.Task.Fails, s.Task.RetryCodes, s.Task.Current.HasExit, s.Task.Current.ExitCode = 1, []int{4}, true, 3
		}),
		"outcome failed: its handler said that another try would not mend it": end(sm.Failed, func(s *why.Situation) {
			s.Task.Fails, s.Task.Current.Retry = 1, sm.Never
		}),
		"outcome failed: its round failed, and a stop":                        end(sm.Failed, func(s *why.Situation) { s.Task.StopAsked = true }),
		"outcome timed_out: its round took longer than its timeout of 9s 2 t": end(sm.TimedOut, func(s *why.Situation) { s.Task.Timeouts, s.Task.Timeout = 2, 9e6 }),
		"outcome orphaned: it lost its worker 2 times, max_losses = 1":        end(sm.Orphaned, func(s *why.Situation) { s.Task.Losses = 2 }),
		"outcome expired: no worker took it in time: its end_before was":      end(sm.Expired, func(s *why.Situation) { s.Task.EndBefore = before(9) }),
		"outcome expired: round 0 was executed 2s late": end(sm.Expired, func(s *why.Situation) {
			s.Task.EndBefore, s.Task.Current.Executed = before(9), before(7)
		}),
		"outcome cancelled: called off by bob: no need": end(sm.Cancelled, logged("cancelled by bob: no need"), func(s *why.Situation) { s.Record.CancelReason = "no need" }),
		"round the last round that ended: round 1 of worker w on node n timed out": end(sm.TimedOut, past(
			task.Round{Number: 1, Worker: "w", Node: "n", Stamps: map[string]time.Time{"timeout": time.Unix(5, 0)}})),
		"stderr its program ended with exit status 0, but wrote to stderr, which failed it": end(sm.Failed, past(
			task.Round{Number: 1, Worker: "w", ExitCode: new(0), Error: "warning\n", Stamps: map[string]time.Time{"failure": time.Unix(5, 0)}})),
		"retried task 9 repeats it": end(sm.Failed, func(s *why.Situation) { s.Record.RetriedBy = 9 }),
		"archived since":            end(sm.Failed),
	} {
		explain(t, s, want)
		if e, err := why.Explain(s); err != nil || blocked(e) {
			t.Errorf("%s: an ended task is not blocked", told(e))
		}
	}
}

// Of many workers those are asked about that might claim, until one does, or it is clear that none can.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	s := openTask()
	for i := range 100 {
		s.Workers = append(s.Workers, worker(func(w *task.Worker) { w.Name = fmt.Sprint("w", i) }))
	}
	for want, c := range map[string]struct {
		who   string // claims
		found tasks.Hindrance
		most  int // dry claims
	}{
		"claimable nothing is in the way: the next claim of worker w90": {"w90", tasks.Hindrance{Gated: true}, 101},
		"quarantine! node n1":    {"", tasks.Hindrance{Gated: true}, 101},
		"threads! queue default": {"", tasks.Hindrance{Threads: tasks.Places{Limited: true}}, 40},
	} {
		asked := 0
		s.Claims = func(claims []tasks.DryClaim) ([]tasks.Hindrance, error) {
			found := slices.Repeat([]tasks.Hindrance{c.found}, len(claims))
			for i := range claims {
				if asked++; claims[i].Claim.Worker == c.who {
					found[i] = tasks.Hindrance{Claimed: true}
				}
			}
			return found, nil
		}
		explain(t, s, want)
		if asked > c.most {
			t.Errorf("%s: asked about %d workers", want, asked)
		}
	}
}

// queueFull are dry claims of which those find the limit of their queue reached that name one.
func queueFull(claims []tasks.DryClaim) ([]tasks.Hindrance, error) {
	found := make([]tasks.Hindrance, len(claims))
	for i := range claims {
		found[i].Threads.Limited = claims[i].Claim.Candidates[0].Queue.Threads != task.Unlimited
	}
	return found, nil
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q := task.Queue{
		QueueSpec: task.ParseQueue("q", nil), Waiting: 9, Due: 4, Oldest: task.Moment(before(30)), Running: 1, RunningByNode: map[string]int64{"n1": 1},
		Lines: []task.Line{{Bucket: task.Bucket{Queue: "q", Env: "py"}, Due: 4}},
	}
	q.Threads = task.AtMost(1)
	if err := q.Set("paused", "true"); err != nil {
		t.Fatal(err)
	}
	if err := q.Set("nodes_ignore", "n2"); err != nil {
		t.Fatal(err)
	}
	q.Damaged = task.ParseQueue("q", map[string]string{"order": "x"}).Damaged
	e, err := why.ExplainQueue(why.Situation{
		Now: now, Queues: []task.Queue{q}, Claims: queueFull,
		Workers: []task.Worker{
			worker(), worker(func(w *task.Worker) { w.Name, w.Node = "w2", "n2" }), worker(func(w *task.Worker) { w.Name, w.State = "w3", task.WorkerDraining }),
		},
	}, "q")
	if err != nil {
		t.Fatal(err)
	}
	got := told(e)
	for _, want := range []string{
		"paused! queue q is paused => queue q paused=false",
		`paused! queue q counts as paused, its record is damaged: field order: "x"`, "=> queue q order=", "threads! queue q in the fleet reached its limit: 1 running, threads = 1",
		"waiting 9 tasks wait, 4 of them due, the oldest since 2023-11-14 22:12:50 UTC (30s); 1 running (by node n1: 1)",
		"unfit 4 due tasks fit no live worker; w1 comes nearest: needs env py", "served worker w1 on n1 may take from it: 2 free slots",
		"ignored worker w2 on n2 may not take from it: the queue avoids n2", "drain worker w3 on n1 may take from it, but now: worker w3",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("said\n%s, want %q in it", got, want)
		}
	}
}

// A worker that hands a task back for want of a handler does not get it, in the session in which it did so.
func TestNoHandler(t *testing.T) {
	t.Parallel()
	back := func(worker string, incarnation int64) task.Round {
		return task.Round{Worker: worker, Incarnation: incarnation, Class: sm.ClassHandler}
	}
	handedBack := openTask(func(s *why.Situation) {
		s.Task.Program, s.Record.Rounds = "p", []task.Round{back("w1", 3), back("w2", 4)}
	})
	session := func(n int64) func(*task.Worker) { return func(w *task.Worker) { w.Incarnation = n } }
	second := worker(session(4), func(w *task.Worker) { w.Name = "w2" })
	explain(t, crewed(handedBack, worker(session(3)), second),
		"handler! no live worker has a handler for program p or runs programs: handed back by w1, w2 => worker w1 handlers=p")
	explain(t, crewed(handedBack, worker(session(5)), second),
		"claimable nothing is in the way: the next claim of worker w1 on n1 gets it (2 free slots)")
	drains := worker(session(5), func(w *task.Worker) { w.State, w.Name = task.WorkerDraining, "w3" })
	explain(t, crewed(handedBack, second, drains), "drain!")
}
