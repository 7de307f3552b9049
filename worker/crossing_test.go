package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A result on disk that would open the task again ends it if the task was
// cancelled meanwhile.
func TestCancelMeetsTheSpool(t *testing.T) {
	t.Parallel()
	for event, want := range map[sm.Event]map[string]string{
		sm.StopOverdue: {
			"state": "timed_out", "timeouts": "1", "0:output": "partial\n", "0:error": "too long", "0:class": "time",
			"0:timeout": "*", "round": "0", "1:open": "-",
		},
		sm.HandBack: {
			"state": "terminated", "releases": "-", "0:error": "TERMINATED - cancelled", "round": "0", "1:open": "-",
		},
	} {
		t.Run(string(event), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			id := s.open(t, func(sp *task.Definition) { storetest.Set(sp, "max_timeouts", "3") })
			w, l := s.spooling(t)
			w.spoolCommit("1.0.x", s.spooled(t, event))
			s.askStop(t, id)
			if err := w.deliverSpool(t.Context()); err != nil {
				t.Fatal(err)
			}
			task := s.Task(t, id)
			checkFields(t, task, want)
			checkContains(t, "log", task.Fields["log"], "it is not opened again", "-> "+want["state"])
			checkContains(t, "the worker's log", l.String(), "delivered a result from the spool")
			if n := s.Raw.ZCard(t.Context(), s.Key("ready:"+task.Bucket.Name())).Val(); n != 0 {
				t.Error("a bucket has the task")
			}
			if left, err := filepath.Glob(filepath.Join(w.spool.Dir(), "*.result")); err != nil || len(left) > 0 {
				t.Errorf("the spool holds %v, %v", left, err)
			}
		})
	}
}

// A report over HTTP that would open the task again ends it if the task is cancelled before it is made.
func TestCancelMeetsTheGateway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t)
	held := s.Claim(t, "w", 1)[0]
	end := RoundEnd{RoundRef: RoundRef{Task: id, Claim: held.Task.Current.Claim}, Ended: EndedHandedBack}
	commit, err := end.decide("w", &Former{Task: held.Task, Bucket: held.Bucket}, nil, held.Task.Current.Running)
	if err != nil {
		t.Fatal(err)
	}
	s.askStop(t, id)
	g := Gateway{site: s.Store}
	out, err := g.commit(t.Context(), []Commit{commit}, nil, held.Task.Current.Running, false)
	if err != nil || len(out.Outcomes) != 1 || out.Outcomes[0].Err != nil {
		t.Errorf("%+v, %v", out, err)
	}
	got := s.Task(t, id)
	checkFields(t, got, map[string]string{"state": "terminated", "releases": "-", "round": "0", "0:error": "TERMINATED - cancelled"})
	checkContains(t, "log", got.Fields["log"], "it is not opened again")
}

// What a worker over HTTP cannot be told of ends without it: a result that is gone, which is no fault of the program, and parameters that
// are no object.
func TestGatewayMissesAResult(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, other := s.open(t), s.open(t)
	held := s.Claim(t, "w", 2)
	held[0].Spec.Needs, held[1].Spec.Params = []task.Need{{Task: 99}}, []byte(`{"a":`)
	g := Gateway{site: s.Store}
	all, err := g.assigned(t.Context(), &guest{Session: Session{Name: "w"}, clock: newClock(held[0].Task.Current.Running)}, held)
	if err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	checkFields(t, s.Task(t, id), map[string]string{
		"state": "executed", "0:class": "infrastructure", "0:error": "task 99, which this one needs, is gone or has not ended: it has no result",
	})
	checkContains(t, "error", s.Task(t, other).Fields["0:error"], "params", "is not a JSON object")
}

// spooling is a worker that does nothing but keep results on disk.
func (s *site) spooling(t *testing.T) (*Worker, *logs) {
	t.Helper()
	l := &logs{}
	o := s.options(t, s.Store)
	o.Logger = newLogger(l)
	w, err := assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	if w.site, err = s.Store.Site(t.Context()); err != nil {
		t.Fatal(err)
	}
	at, err := s.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock(at)
	w.clock.Store(&clock)
	w.openSpool()
	t.Cleanup(w.closeSpool)
	return w, l
}

// spooled claims a task and returns the order that ends its round by the event.
func (s *site) spooled(t *testing.T, event sm.Event) *tasks.Commit {
	t.Helper()
	task := s.Claim(t, "w", 1)[0]
	o := sm.Occurrence{Event: event, Actor: sm.Worker, Claim: task.Task.Current.Claim, Round: task.Task.Round}
	move, err := sm.Decide(&task.Task, o, task.Task.Current.Running)
	if err != nil {
		t.Fatal(err)
	}
	order := &tasks.Commit{Move: move, Writer: "w", Bucket: task.Bucket}
	if event == sm.StopOverdue {
		order.Fields = []string{"0:output", "partial\n", "0:error", "too long", "0:class", "time"}
	}
	return order
}

// Who opens a cancelled task again, as clients do that know of no stop, does not
// make it run.
func TestCancelledTaskOpenedByOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ran := filepath.Join(t.TempDir(), "ran")
	id := s.open(t, s.script(t, "p", `echo x > "$1"`), input(ran))
	if err := s.Raw.HSet(t.Context(), s.Key("task:1"), "cancel_requested", "5").Err(); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	task := s.await(t, id, sm.Terminated, sm.Executed)
	checkFields(t, task, map[string]string{
		"state": "terminated", "0:worker": "w", "0:end": "terminate", "0:error": "TERMINATED - cancelled", "0:output": "", "0:exit_code": "-",
	})
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program ran: %v", err)
	}
}
