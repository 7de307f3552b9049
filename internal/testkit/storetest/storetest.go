// Package storetest helps tests that need a store on a real Redis: a namespace
// of their own, a user who may touch nothing else, a clock that can be set, and
// a second connection that sees the raw keys as a stranger does.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Space is one namespace of one test.
type Space struct {
	// Server is the Redis, Namespace the name, Where how a daemon reaches it.
	Server    *redistest.Server
	Namespace string
	Where     config.Redis
	// Store works in the namespace, as a user who may use no other.
	Store *store.Store
	// Raw is a connection without TDF, for reading and planting keys.
	Raw *redis.Client
}

// clockScript is TIME with one that a test may set in meta.
const clockScript = `
local function time()
  local us = tonumber(redis.call('HGET', KEYS[1], 'test_clock') or '')
  if us then return math.floor(us / 1000000), us % 1000000 end
  local t = redis.call('TIME')
  return tonumber(t[1]), tonumber(t[2])
end
`

// New makes a namespace on the Redis shared by the package's tests. At the end
// of the test it fails if anything outside the namespace was touched.
func New(tb testing.TB, opts ...conn.Option) *Space {
	tb.Helper()
	return On(tb, redistest.Shared(tb), opts...)
}

// On is New on a given Redis.
func On(tb testing.TB, server *redistest.Server, opts ...conn.Option) *Space {
	tb.Helper()
	return Named(tb, server, redistest.Namespace(tb), opts...)
}

// Named is On with a namespace that another Redis has too.
func Named(tb testing.TB, server *redistest.Server, ns string, opts ...conn.Option) *Space {
	tb.Helper()
	user := server.Limited(tb, ns)
	where := Where(server)
	where.Username, where.Password = user.Name, user.Password
	sp := &Space{Server: server, Namespace: ns, Where: where}
	sp.Store = sp.Dial(tb, opts...)
	sp.Raw = redis.NewClient(&redis.Options{
		Addr: server.Socket(), Password: server.Password(), Protocol: 2, DisableIdentity: true,
	})
	tb.Cleanup(func() {
		user.EnsureEmptyACLLog(tb)
		_ = sp.Raw.Close()
	})
	return sp
}

// Where returns the settings that reach the server as the default user.
func Where(server *redistest.Server) config.Redis {
	return config.Redis{
		Host: server.Socket(), Password: server.Password(),
		DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
	}
}

// Dial makes another store on the same namespace, as another process would.
func (sp *Space) Dial(tb testing.TB, opts ...conn.Option) *store.Store {
	tb.Helper()
	st, err := store.Dial(sp.Where, sp.Namespace, append([]conn.Option{conn.WithClock(clockScript)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = st.Close() })
	return st
}

// Key is the name of a key of the namespace.
func (sp *Space) Key(name string) string { return sp.Namespace + ":" + name }

// SetClock sets the time of the namespace, also back: it knows of no other any more.
func (sp *Space) SetClock(tb testing.TB, at statemachine.Time) {
	tb.Helper()
	if err := sp.Raw.HDel(tb.Context(), sp.Key("meta"), "clock").Err(); err != nil {
		tb.Fatal(err)
	}
	sp.StepClock(tb, at)
}

// StepClock sets the TIME of Redis that the scripts of this namespace see.
func (sp *Space) StepClock(tb testing.TB, at statemachine.Time) {
	tb.Helper()
	if err := sp.Raw.HSet(tb.Context(), sp.Key("meta"), "test_clock", int64(at)).Err(); err != nil {
		tb.Fatal(err)
	}
}

// Spec is a task with every default, changed by the given functions.
func Spec(change ...func(*task.Definition)) task.Definition {
	d := Define("program", "p", "source", "s", "input", "1 2")
	for _, f := range change {
		f(&d)
	}
	return d
}

// Define is a task with the given texts, names and texts in turn, and else every default.
func Define(pairs ...string) task.Definition {
	d, err := task.Define(&task.Spec{Program: "p"})
	if err != nil {
		panic(err)
	}
	Set(&d, pairs...)
	return d
}

// Set changes fields of a task: names and texts in turn.
func Set(d *task.Definition, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if err := d.Set(pair[0], pair[1]); err != nil {
			panic(err)
		}
	}
}

// SetBucket makes the task one of a bucket.
func SetBucket(d *task.Definition, b task.Bucket) {
	for _, name := range []string{"queue", "env", "labels", "resources", "class", "priority"} {
		Set(d, name, "")
	}
	Set(d, b.Fields()...)
}

// SetArgv gives the task a list of words; nil leaves it as it is.
func SetArgv(d *task.Definition, words ...string) {
	if words == nil {
		return
	}
	text, err := json.Marshal(words)
	if err != nil {
		panic(err)
	}
	Set(d, "argv", string(text))
}

// Open opens one task a definition and returns the ids.
func (sp *Space) Open(tb testing.TB, specs ...task.Definition) []int64 {
	tb.Helper()
	ids, err := sp.Store.Open(tb.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs})
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

// AddQueue makes a queue.
func (sp *Space) AddQueue(tb testing.TB, q task.QueueSpec) {
	tb.Helper()
	if err := sp.Store.AddQueue(tb.Context(), q); err != nil {
		tb.Fatal(err)
	}
}

// Claim claims up to n tasks of the default bucket in the name of a worker.
func (sp *Space) Claim(tb testing.TB, worker string, n int) []tasks.Claimed {
	tb.Helper()
	r, err := sp.Store.Claim(tb.Context(), tasks.ClaimRequest{
		Worker: worker, Request: conn.NewToken(), Candidates: Free(task.Bucket{}), Max: n,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return r.Tasks
}

// Report hands in a result for a claimed task and returns what became of it.
func (sp *Space) Report(tb testing.TB, t *tasks.Claimed, output, errText string) tasks.Outcome {
	tb.Helper()
	m, err := statemachine.Decide(&t.Task, statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker, Claim: t.Task.Current.Claim, Round: t.Task.Round, Failed: errText != "",
	}, 0)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := sp.Store.Apply(tb.Context(), tasks.Commit{Move: m, Writer: "w", Bucket: t.Bucket, Fields: []string{
		statemachine.RoundField(t.Task.Round, "output"), output, statemachine.RoundField(t.Task.Round, "error"), errText,
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return out[0]
}

// Apply makes decided moves by the calls that are for them: Apply, AskStop or, as a manager without a lease does, Take.
func Apply(ctx context.Context, st *store.Store, commits ...tasks.Commit) ([]tasks.Outcome, error) {
	var all []tasks.Outcome
	for len(commits) > 0 {
		kind := func(o tasks.Commit) [2]bool { return [2]bool{o.AskStop, o.To == statemachine.Archived} }
		n := slices.IndexFunc(commits, func(o tasks.Commit) bool { return kind(o) != kind(commits[0]) })
		if n < 0 {
			n = len(commits)
		}
		out, err := callFor(st, &commits[0])(ctx, commits[:n]...)
		if err != nil {
			return all, err
		}
		all, commits = append(all, out...), commits[n:]
	}
	return all, nil
}

func callFor(st *store.Store, o *tasks.Commit) func(context.Context, ...tasks.Commit) ([]tasks.Outcome, error) {
	switch {
	case o.AskStop:
		return st.AskStop
	case o.To != statemachine.Archived:
		return st.Apply
	}
	return func(ctx context.Context, commits ...tasks.Commit) ([]tasks.Outcome, error) {
		t := tasks.TakeRequest{Writer: commits[0].Writer}
		for i := range commits {
			t.Archive = append(t.Archive, commits[i].Move)
		}
		reply, err := st.Take(ctx, &t)
		return reply.Archived, err
	}
}

// Task reads a task, which must be there.
func (sp *Space) Task(tb testing.TB, id int64) *tasks.TaskHeader {
	tb.Helper()
	t, err := sp.Store.Task(context.WithoutCancel(tb.Context()), id)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// Stamps are the moments of a round of a task, by name.
func Stamps(t *tasks.TaskHeader, round int) map[string]statemachine.Time {
	stamps := map[string]statemachine.Time{}
	for field, text := range t.Fields {
		n, name, ok := statemachine.ParseRoundField(field)
		stamp := statemachine.State(name).Valid() ||
			name == statemachine.StampTimeout || name == statemachine.StampFailure
		if at, err := statemachine.ParseTime(text); ok && n == round && stamp && err == nil {
			stamps[name] = at
		}
	}
	return stamps
}

// Sets names the state sets that list the id, in the order of a task's life.
func (sp *Space) Sets(tb testing.TB, id int64) []statemachine.State {
	tb.Helper()
	states := statemachine.States()
	found, _ := sp.Raw.Pipelined(tb.Context(), func(p redis.Pipeliner) error { // the error is that of a set without it
		for _, st := range states {
			p.ZScore(tb.Context(), sp.Key(string(st)), strconv.FormatInt(id, 10))
		}
		return nil
	})
	var in []statemachine.State
	for i, st := range states {
		if found[i].Err() == nil {
			in = append(in, st)
		}
	}
	return in
}

// Pattern matches every key of a namespace, whatever characters its name has.
func Pattern(namespace string) string {
	escape := strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`, `^`, `\^`)
	return escape.Replace(namespace) + ":*"
}

// Registration is a worker of the given name; each name is a process of its own.
func Registration(name string) task.Registration {
	return task.Registration{
		Name: name, Node: "node-1", Host: "host.example", PID: 42, Identity: "start of " + name, Version: "v1",
		Containment: "group", Slots: 2, Labels: []string{"gpu=1"}, Classes: []string{}, MaxThreads: task.Unlimited,
	}
}

// Register begins the session of a worker, which must succeed.
func (sp *Space) Register(tb testing.TB, name string) fleet.Session {
	tb.Helper()
	r, err := sp.Store.Register(tb.Context(), Registration(name))
	if err != nil || len(r.Former) > 0 {
		tb.Fatalf("registered %+v, error %v", r, err)
	}
	return r.Session
}

// ClaimUnder claims up to n tasks of the default bucket under a session, all but one of them ahead.
func (sp *Space) ClaimUnder(tb testing.TB, w fleet.Session, n int) []tasks.Claimed {
	tb.Helper()
	r, err := sp.Store.Claim(tb.Context(), tasks.ClaimRequest{
		Worker: w.Name, Request: conn.NewToken(), Candidates: Free(task.Bucket{}), Max: n, Ahead: n - 1,
		Incarnation: w.Incarnation, Node: "node-1", MaxThreads: task.Unlimited,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return r.Tasks
}

// Both are scripts, so that programs that are at work never see half of it.
const (
	saveScript = `local all = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  all[#all + 1], all[#all + 2], all[#all + 3] = key, redis.call('DUMP', key), math.max(0, redis.call('PTTL', key))
end
return all`
	restoreScript = `for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end
for i = 2, #ARGV, 3 do redis.call('RESTORE', ARGV[i], ARGV[i + 2], ARGV[i + 1]) end`
)

// Snapshot keeps what the namespace holds now. The result puts that back in place of
// what is there then, in one moment: as a failover does that loses the last
// writes, or a restored backup.
func (sp *Space) Snapshot(tb testing.TB) (back func()) {
	tb.Helper()
	saved, err := sp.Raw.Eval(tb.Context(), saveScript, nil, Pattern(sp.Namespace)).Slice()
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		tb.Helper()
		args := append([]any{Pattern(sp.Namespace)}, saved...)
		if err := sp.Raw.Eval(tb.Context(), restoreScript, nil, args...).Err(); err != nil && !isNil(err) {
			tb.Fatal(err)
		}
	}
}

// Anew empties the namespace, its history too, and gives the space a Store that has
// seen nothing of it.
func (sp *Space) Anew(tb testing.TB) {
	tb.Helper()
	if keys := sp.Raw.Keys(tb.Context(), Pattern(sp.Namespace)).Val(); len(keys) > 0 {
		if err := sp.Raw.Del(tb.Context(), keys...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	sp.Store = sp.Dial(tb)
}

// All is what a list gives, or the error that ends it is fatal.
func All[T any](tb testing.TB, list iter.Seq2[T, error]) []T {
	tb.Helper()
	var all []T
	for one, err := range list {
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

// Renew makes a heartbeat, which must be accepted.
func (sp *Space) Renew(tb testing.TB, w fleet.Session) fleet.Renewal {
	tb.Helper()
	r, err := sp.Store.Renew(tb.Context(), w, fleet.Heartbeat{State: task.WorkerReady})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// Wait waits as an idle worker does, and claims nothing behind that. It returns what has woken it.
func Wait(ctx context.Context, st *store.Store, w tasks.WaitFor, d time.Duration) (tasks.WakeUp, error) {
	got := st.WaitAndClaim(ctx, w, d, tasks.ClaimRequest{Worker: w.Worker, Request: conn.NewToken(), Max: 1})
	return got.Woken, errors.Join(got.Err, got.Claimed)
}

// Free are candidates of queues without attributes, for claims that no rule restricts.
func Free(buckets ...task.Bucket) []task.Candidate {
	byQueue := map[string]int{}
	var found []task.Candidate
	for _, b := range buckets {
		name := b.QueueName()
		at, known := byQueue[name]
		if !known {
			at, byQueue[name] = len(found), len(found)
			found = append(found, task.Candidate{Queue: task.ParseQueue(name, nil)})
		}
		found[at].Buckets = append(found[at].Buckets, b)
	}
	return found
}
