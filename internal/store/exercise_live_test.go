package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Orders reach the worker with its next heartbeat, and at once where it listens.
func exerciseOrders(t *testing.T, sp *storetest.Space) {
	w := sp.Register(t, "w")
	renew, _ := listen(t, sp.Store, "w")
	order := func(o task.WorkerCommand) task.Worker {
		t.Helper()
		info, err := sp.Store.CommandWorker(t.Context(), "w", o)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	awaitHint(t, renew, func() { order(task.CommandDrain) })
	if r := sp.Renew(t, w); r.Order != task.CommandDrain {
		t.Errorf("renewed %+v", r)
	}
	if err := sp.Store.Leave(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w = sp.Register(t, "w"); w.Order != task.CommandDrain {
		t.Errorf("the drain is forgotten: %+v", w)
	}
	if before := order(task.CommandStop); before.Order != task.CommandDrain || before.Name != "w" {
		t.Errorf("was %+v", before)
	}
	if r := sp.Renew(t, w); r.Order != task.CommandStop {
		t.Errorf("renewed %+v", r)
	}
	if err := sp.Store.Leave(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w = sp.Register(t, "w"); w.Order != task.NoCommand {
		t.Errorf("the stop is remembered: %+v", w)
	}
	order(task.CommandDrain)
	order(task.NoCommand)
	if r := sp.Renew(t, w); r.Order != task.NoCommand {
		t.Errorf("renewed %+v", r)
	}
	if _, err := sp.Store.CommandWorker(t.Context(), "w", "dance"); err == nil {
		t.Error("any order is taken")
	}
}

// listen gathers the hints for a worker until the test ends.
func listen(t *testing.T, st *store.Store, worker string) (renew, rules <-chan struct{}) {
	t.Helper()
	heard := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	hint := func(c chan struct{}) func() {
		return func() {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		st.Listen(ctx, worker, hint(heard[0]), hint(heard[1]), func(request string) { t.Errorf("an errand %q", request) })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return heard[0], heard[1]
}

// awaitHint repeats what must be announced: the subscription may come later.
func awaitHint(t *testing.T, hints <-chan struct{}, announce func()) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		announce()
		select {
		case <-hints:
			return
		case <-deadline:
			t.Fatal("nothing was announced")
		case <-tick.C:
		}
	}
}

// A worker that waits is ended by an interrupt, also by one that came before;
// a wake-up it cannot use goes to the next.
func exerciseInterrupt(t *testing.T, sp *storetest.Space) {
	q := task.Bucket{Queue: "q"}
	sp.AddQueue(t, task.ParseQueue("q", nil))
	sp.Raw.Del(t.Context(), sp.Key("wake_queue:q"))
	wait := func(worker string) tasks.WakeUp {
		t.Helper()
		waitFor := tasks.WaitFor{Worker: worker, Candidates: storetest.Free(task.Bucket{}, q)}
		by, err := storetest.Wait(t.Context(), sp.Store, waitFor, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		return by
	}
	halted := func() bool { return sp.Raw.LLen(t.Context(), sp.Key("halt:w")).Val() > 0 }
	for range 2 {
		if err := sp.Store.Interrupt(t.Context(), "w", "r"); err != nil {
			t.Fatal(err)
		}
	}
	if n := sp.Raw.LLen(t.Context(), sp.Key("halt:w")).Val(); n != 1 {
		t.Errorf("%d tokens", n)
	}
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, q) }))
	if by := wait("w"); by != "" || halted() {
		t.Errorf("interrupted by %q", by)
	}
	by := wait("w")
	if string(by) != sp.Key("wake:"+q.Name()) {
		t.Errorf("woken by %q", by)
	}
	if err := sp.Store.PassOn(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	if by := wait("v"); by == "" {
		t.Error("the wake-up was not passed on")
	}
	if err := sp.Store.Interrupt(t.Context(), "w", "r"); err != nil {
		t.Fatal(err)
	}
	sp.Register(t, "w")
	if halted() {
		t.Error("an interrupt of a former session is left")
	}
}

// TestWaitEndsWithItsContext: at once, also within the command that waits, and without a
// token for the next wait.
func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	waits := sp.Server.Blocks(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	begun := time.Now()
	go func() {
		by, err := storetest.Wait(ctx, sp.Store, waitFor("w"), time.Minute)
		if by != "" {
			err = errors.Join(err, errors.New("woken by "+string(by)))
		}
		ended <- err
	}()
	await.Receive(t, time.Minute, waits, "it does not wait")
	cancel()
	if err := await.Receive(t, time.Minute, ended, "it waits on"); err != nil {
		t.Error(err)
	}
	await.Within(t, "the wait", begun, time.Now(), 2*time.Second)
	if _, err := storetest.Wait(ctx, sp.Store, waitFor("w"), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("waits in an ended context: %v", err)
	}
	if sp.Raw.Exists(t.Context(), sp.Key("halt:w")).Val() != 0 {
		t.Error("a token is left")
	}
}

// Output travels only while somebody follows, to the worker that runs the task.
func exerciseFollow(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	w, v := sp.Register(t, "w"), sp.Register(t, "v")
	sp.Open(t, storetest.Spec(), storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	renew, _ := listen(t, sp.Store, "w")
	awaitHint(t, renew, func() {
		if err := sp.Store.Follow(t.Context(), 1, 10*time.Second, true); err != nil {
			t.Fatal(err)
		}
	})
	if err := sp.Store.Follow(t.Context(), 2, 10*time.Second, true); err != nil {
		t.Error(err)
	}
	followed := func(since statemachine.Time) {
		t.Helper()
		if got := sp.Renew(t, w).Followed; !slices.Equal(got, []fleet.Followed{{ID: 1, Since: since}}) {
			t.Errorf("followed %v, want 1 since %v", got, since)
		}
	}
	followed(noon)
	sp.SetClock(t, noon.Add(second))
	if err := sp.Store.Follow(t.Context(), 1, 9*time.Second, false); err != nil { // the first goes on
		t.Error(err)
	}
	followed(noon)
	if err := sp.Store.Follow(t.Context(), 1, 9*time.Second, true); err != nil { // a second reader
		t.Error(err)
	}
	followed(noon.Add(second))
	if got := sp.Renew(t, v).Followed; len(got) != 0 {
		t.Errorf("another is asked for %v", got)
	}
	sp.SetClock(t, noon.Add(11*second))
	if got := sp.Renew(t, w).Followed; len(got) != 0 || sp.Raw.Exists(t.Context(), sp.Key("follow")).Val() != 0 {
		t.Errorf("followed %v after the end", got)
	}
	if err := sp.Store.Follow(t.Context(), 9, time.Second, true); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("follow what is not there: %v", err)
	}
	if err := sp.Store.Follow(t.Context(), 1, 0, true); err == nil {
		t.Error("follow for no time")
	}
}

// Chunks come in order, byte-exact, the newest only; a reader waits for more.
func exerciseChunks(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "w", 1)[0]
	odd := tasks.Chunk{Stream: "error", Offset: 1 << 40, Data: []byte("\x00\xff\r\nü")}
	if chunks, after, err := sp.Store.Chunks(t.Context(), 1, "", 20*time.Millisecond); len(chunks) != 0 || after != "" || err != nil {
		t.Errorf("chunks %v, position %q, error %v", chunks, after, err)
	}
	sent := make(chan error, 1)
	go func() { sent <- sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Chunks: []tasks.Chunk{odd}}) }()
	chunks, after, err := sp.Store.Chunks(t.Context(), 1, "", 5*time.Second)
	if err = errors.Join(err, <-sent); err != nil || len(chunks) != 1 || chunks[0].Round != 0 || chunks[0].Stream != "error" ||
		chunks[0].Offset != 1<<40 || !bytes.Equal(chunks[0].Data, odd.Data) {
		t.Errorf("chunks %+v, error %v", chunks, err)
	}
	exerciseManyChunks(t, sp, &c.Task, after)
}

// exerciseManyChunks goes on behind a position.
func exerciseManyChunks(t *testing.T, sp *storetest.Space, task *statemachine.Task, after string) {
	t.Helper()
	send := func(chunks ...tasks.Chunk) {
		t.Helper()
		if err := sp.Store.Tell(t.Context(), "w", task, tasks.News{Chunks: chunks}); err != nil {
			t.Fatal(err)
		}
	}
	many := make([]tasks.Chunk, 100)
	for i := range many {
		many[i] = tasks.Chunk{Stream: "output", Offset: int64(i), Data: []byte{byte(i)}}
	}
	send(many[:30]...)
	send(many[30:]...)
	chunks, _, err := sp.Store.Chunks(t.Context(), 1, after, 5*time.Second)
	if err != nil || len(chunks) != 64 || chunks[0].Offset != 36 || chunks[63].Offset != 99 {
		t.Errorf("%d chunks, error %v", len(chunks), err)
	}
	send()
	if err := sp.Store.Tell(t.Context(), "w", task, tasks.News{Chunks: []tasks.Chunk{{Data: make([]byte, tasks.MaxChunk+1)}}}); err == nil {
		t.Error("a chunk of any size is taken")
	}
	if ttl := sp.Raw.TTL(t.Context(), sp.Key("live:1")).Val(); ttl <= 9*time.Minute || ttl > 10*time.Minute {
		t.Errorf("expires in %s", ttl)
	}
}

// A program says how far it is, and only while its round runs.
func exerciseProgress(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "w", 1)[0]
	rev := sp.Task(t, 1).Rev
	for _, step := range []struct {
		progress tasks.Progress
		want     string
	}{
		{tasks.Progress{Part: 0.4, Text: " half\n way "}, "0.4 half way"},
		{tasks.Progress{Part: -1, Text: "step 3"}, "step 3"},
		{tasks.Progress{Part: 1}, "1"},
		{tasks.Progress{Part: 0.25, Text: string(bytes.Repeat([]byte("ü"), 200))}, "0.25 " + string(bytes.Repeat([]byte("ü"), 128))},
	} {
		for range 2 {
			if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Progress: &step.progress}); err != nil {
				t.Fatal(err)
			}
		}
		rev++
		if task := sp.Task(t, 1); task.Fields["0:progress"] != step.want || task.Rev != rev {
			t.Errorf("progress %q, rev %d, want %q, %d", task.Fields["0:progress"], task.Rev, step.want, rev)
		}
	}
	if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Progress: &tasks.Progress{Part: 1.5}}); err == nil {
		t.Error("more than everything")
	}
	sp.Report(t, &c, "", "")
	if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Progress: &tasks.Progress{}}); !errors.Is(err, statemachine.ErrStale) {
		t.Errorf("progress after the report: %v", err)
	}
}

// Attributes of a task change name by name, in each state, and for a worker only while its round runs.
func exerciseMeta(t *testing.T, sp *storetest.Space) {
	with := func(d *task.Definition) { storetest.Set(d, "meta", `{"a":"1","b":"<é/\\\"\ud83d\ude00>"}`) }
	sp.Open(t, storetest.Spec(with), storetest.Spec())
	check := func(want map[string]string, state statemachine.State) {
		t.Helper()
		h := sp.Task(t, 1)
		if got := task.Decode(1, h.Fields).Meta; !maps.Equal(got, want) || h.State != state || len(want) == 0 && h.Fields["meta"] != "" {
			t.Errorf("%s with %s, want %s with %q", h.State, h.Fields["meta"], state, want)
		}
	}
	set := func(pairs ...string) {
		t.Helper()
		change := tasks.MetaChange{Set: map[string]string{}, Note: tasks.Note{Writer: "m", Text: "set by me"}}
		for i := 0; i < len(pairs); i += 2 {
			change.Set[pairs[i]] = pairs[i+1]
		}
		for again := range 2 {
			before := sp.Task(t, 1)
			states, outcomes, err := sp.Store.SetMeta(t.Context(), []int64{1, 9}, change)
			if err != nil || states[0] != before.State || outcomes[0].Err != nil || states[1] != "" || !errors.Is(outcomes[1].Err, task.ErrDamaged) {
				t.Fatalf("%v, %v, %v", states, outcomes, err)
			}
			after := sp.Task(t, 1)
			if lines := strings.Count(after.Fields["log"], "set by me"); again == 1 && (after.Rev != before.Rev || after.Fields["log"] != before.Fields["log"]) ||
				again == 0 && lines != strings.Count(before.Fields["log"], "set by me")+1 {
				t.Errorf("rev %d -> %d, %d lines", before.Rev, after.Rev, lines)
			}
		}
	}
	set("a", "2")
	check(map[string]string{"a": "2", "b": `<é/\"😀>`}, statemachine.Open)
	set("b", "", "c", "x/y")
	check(map[string]string{"a": "2", "c": "x/y"}, statemachine.Open)
	c := sp.Claim(t, "w", 1)[0]
	if c.Spec.Meta["c"] != "x/y" {
		t.Errorf("the worker has %v", c.Spec.Meta)
	}
	if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Meta: map[string]string{"d": "4"}}); err != nil {
		t.Fatal(err)
	}
	late := c.Task
	late.Current.Claim = "another"
	if err := sp.Store.Tell(t.Context(), "w", &late, tasks.News{Meta: map[string]string{"d": "late"}}); !errors.Is(err, statemachine.ErrStale) {
		t.Errorf("a late worker: %v", err)
	}
	set("a", "", "c", "")
	check(map[string]string{"d": "4"}, statemachine.Running)
	sp.Report(t, &c, "", "")
	if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Meta: map[string]string{"d": "late"}}); !errors.Is(err, statemachine.ErrStale) {
		t.Errorf("after the report: %v", err)
	}
	set("d", "")
	check(nil, statemachine.Executed)
	many := map[string]string{}
	for i := range task.MaxMeta {
		many[fmt.Sprintf("n%d", i)] = "x"
	}
	for want, set := range []map[string]string{many, {"one": "more"}} {
		_, outcomes, err := sp.Store.SetMeta(t.Context(), []int64{2}, tasks.MetaChange{Set: set})
		if _, full := errors.AsType[*statemachine.FieldError](outcomes[0].Err); err != nil || full != (want == 1) {
			t.Errorf("%d: %v, %v", len(set), outcomes, err)
		}
	}
	sp.Raw.HSet(t.Context(), sp.Key("task:2"), "meta", `["a"]`)
	if _, outcomes, err := sp.Store.SetMeta(t.Context(), []int64{2}, tasks.MetaChange{Set: many}); err != nil || !errors.Is(outcomes[0].Err, task.ErrDamaged) {
		t.Errorf("damaged attributes: %v, %v", outcomes, err)
	}
}

// Attributes that come along with a report are there when it is made; too many are told in the log.
func exerciseMetaReported(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec(), storetest.Spec())
	for _, n := range []int{1, task.MaxMeta + 1} {
		c := sp.Claim(t, "w", 1)[0]
		move, err := statemachine.Decide(&c.Task, statemachine.Occurrence{
			Event: statemachine.Report, Actor: statemachine.Worker, Claim: c.Task.Current.Claim, Round: c.Task.Round,
		}, noon)
		if err != nil {
			t.Fatal(err)
		}
		commit := tasks.Commit{Move: move, Writer: "w", Bucket: c.Bucket, Meta: map[string]string{}}
		for i := range n {
			commit.Meta[fmt.Sprintf("n%d", i)] = "x"
		}
		for range 2 {
			if turn := sp.Store.Turn(t.Context(), []tasks.Commit{commit}, nil); turn.Moved != nil || turn.Outcomes[0].Err != nil {
				t.Fatalf("%+v", turn)
			}
		}
		got := sp.Task(t, c.Task.ID)
		if tooMany := n > task.MaxMeta; (got.Fields["meta"] == `{"n0":"x"}`) == tooMany || strings.Contains(got.Fields["log"], "remove some first") != tooMany {
			t.Errorf("task %d: %q, log %q", got.ID, got.Fields["meta"], got.Fields["log"])
		}
	}
}

// A move may take away what a task keeps no longer, and sent again it is
// recognised all the same.
func exerciseDrop(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "w", 1)[0]
	m := decided(t, &c.Task, statemachine.Report, statemachine.Worker, 0)
	order := tasks.Commit{Move: m, Writer: "w", Fields: []string{"0:output", "x", "0:stderr", "y"}, Drop: []string{"0:stderr", "0:none"}}
	for _, want := range []statemachine.Result{statemachine.Moved, statemachine.Repeated} {
		if out := applyAll(t, sp, order); out[0].Result != want {
			t.Errorf("%+v, want %v", out[0], want)
		}
	}
	if _, there := sp.Task(t, 1).Fields["0:stderr"]; there {
		t.Error("the field is there")
	}
}

// Parameters change while a task waits, and not after that; a call that is sent again is answered as before.
func exerciseParams(t *testing.T, sp *storetest.Space) {
	first := storetest.Spec()
	storetest.Set(&first, "params", `{"n":1}`)
	sp.Open(t, first, storetest.Spec())
	seq := func() int64 {
		t.Helper()
		n, err := sp.Raw.HGet(t.Context(), sp.Key("meta"), "seq").Int64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	set := func(id int64, params string, want error) {
		t.Helper()
		before, changes := sp.Task(t, id), seq()
		states, outcomes, err := sp.Store.SetParams(t.Context(), []int64{id, 9}, params, tasks.Note{Writer: "m", Text: "set by me"})
		if err != nil || states[0] != before.State || !errors.Is(outcomes[0].Err, want) || states[1] != "" || !errors.Is(outcomes[1].Err, task.ErrDamaged) {
			t.Fatalf("%v, %v, %v", states, outcomes, err)
		}
		after, same := sp.Task(t, id), before.Fields["params"] == params
		if same != (outcomes[0].Result == statemachine.Repeated) || (after.Rev != before.Rev) != (want == nil && !same) ||
			seq()-changes != after.Rev-before.Rev {
			t.Errorf("%+v, rev %d -> %d", outcomes[0], before.Rev, after.Rev)
		}
		if want == nil && after.Fields["params"] != params || want != nil && after.Fields["params"] != before.Fields["params"] {
			t.Errorf("%q is %q", params, after.Fields["params"])
		}
		if strings.Count(after.Fields["log"], "set by me") != strings.Count(before.Fields["log"], "set by me")+int(after.Rev-before.Rev) {
			t.Errorf("log %q", after.Fields["log"])
		}
	}
	set(1, `{"n":2}`, nil)
	set(1, `{"n":2}`, nil)
	set(2, `{"of":"a task with the fields of its creation alone"}`, nil)
	set(1, "", nil)
	set(1, `{"n":9007199254740993}`, nil)
	if _, _, err := sp.Store.SetParams(t.Context(), []int64{1}, "", tasks.Note{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	claimed := sp.Claim(t, "w", 2)
	if got := string(claimed[0].Spec.Params) + string(claimed[1].Spec.Params); got != `{"n":9007199254740993}{"of":"a task with the fields of its creation alone"}` {
		t.Errorf("the worker has %s", got)
	}
	set(1, `{"n":9007199254740993}`, nil) // as it was sent before
	set(1, `{"n":3}`, task.ErrBegun)
	sp.Report(t, &claimed[0], "", "")
	set(1, `{"n":3}`, task.ErrBegun)
}
