package store_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What scripts do for many tasks in one call leaves the same behind as calls for one task each: they gather what they write to
// sets, counters and records of nodes.
func TestManyInACallAsOneEach(t *testing.T) {
	t.Parallel()
	together, alone := newBatchLife(t, 100), newBatchLife(t, 1)
	for _, outcomes := range []string{"gbggbbbg gggg", "bbbbggb bg", "gggggggggggg"} {
		for _, l := range []*batchLife{together, alone} {
			l.round(t, outcomes)
		}
		if got, want := together.state(t), alone.state(t); !slices.Equal(got, want) {
			t.Fatalf("after %q: together, and not alone:\n%s\nalone, and not together:\n%s", outcomes,
				strings.Join(without(got, want), "\n"), strings.Join(without(want, got), "\n"))
		}
	}
	for _, line := range []string{"evidence:q node-1 = ", "node:node-1 probe = passed"} {
		if !strings.Contains(strings.Join(alone.state(t), "\n"), line) {
			t.Errorf("nothing says %q: the comparison lacks that", line)
		}
	}
}

// A task that moves twice in one call is where the second move brings it.
func TestTwoMovesOfATaskInACall(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id := sp.Open(t, storetest.Spec())[0]
	seen := sp.Task(t, id)
	commits := make([]tasks.Commit, 0, 2)
	for _, event := range []statemachine.Event{statemachine.Hold, statemachine.Unblock} {
		m, err := statemachine.Decide(&seen.Task, statemachine.Occurrence{Event: event, Actor: statemachine.Manager}, 0)
		if err != nil {
			t.Fatal(err)
		}
		commits = append(commits, tasks.Commit{Move: m, Writer: "m", Bucket: seen.Bucket})
		seen.State, seen.Rev = m.To, seen.Rev+1
	}
	outcomes, err := storetest.Apply(t.Context(), sp.Store, commits...)
	if err != nil || outcomes[0].Err != nil || outcomes[1].Err != nil {
		t.Fatalf("%+v, error %v", outcomes, err)
	}
	if sets, want := sp.Sets(t, id), []statemachine.State{statemachine.Open}; !slices.Equal(sets, want) {
		t.Errorf("the task is in %v, want %v", sets, want)
	}
}

// batchLife is a namespace whose tasks are moved so many in a call.
type batchLife struct {
	*storetest.Space
	size    int
	session fleet.Session
}

func newBatchLife(t *testing.T, size int) *batchLife {
	t.Helper()
	l := &batchLife{Space: storetest.New(t), size: size}
	l.SetClock(t, noon)
	if err := l.Store.PublishQuarantine(t.Context(), "on"); err != nil {
		t.Fatal(err)
	}
	l.session = l.Register(t, "w")
	return l
}

// round opens a task for each letter, and takes all from there to an outcome: good or bad, as the letter says; a space stands for
// another program.
func (l *batchLife) round(t *testing.T, outcomes string) {
	t.Helper()
	var bad []bool
	program := "p"
	for _, c := range outcomes {
		if c == ' ' {
			program = "q"
			continue
		}
		n := len(bad)
		bad = append(bad, c == 'b')
		l.Open(t, storetest.Spec(func(s *task.Definition) {
			storetest.Set(s, "program", program, "max_fails", fmt.Sprint(n%2))
			if n%3 == 0 {
				storetest.Set(s, "end_before", "4000000000")
			}
		}))
	}
	held := l.claimAll(t, len(bad))
	if !slices.Contains(bad, true) { // a node that was set aside meanwhile, and one of these is its probe
		l.Raw.HSet(t.Context(), l.Key("node:node-1"), "quarantined", "1", "probe", held[5].Task.ID)
	}
	l.applyEach(t, l.reports(t, held, bad))
	l.moveAll(t, statemachine.Executed, statemachine.Server, statemachine.Settle)
	l.moveAll(t, statemachine.Succeeded, statemachine.Manager, statemachine.Archive)
}

func (l *batchLife) claimAll(t *testing.T, n int) (held []tasks.Claimed) {
	t.Helper()
	for len(held) < n {
		got := l.ClaimUnder(t, l.session, min(l.size, n-len(held)))
		if len(got) == 0 {
			t.Fatalf("claimed %d of %d tasks", len(held), n)
		}
		held = append(held, got...)
	}
	return held
}

func (l *batchLife) reports(t *testing.T, held []tasks.Claimed, bad []bool) []tasks.Commit {
	t.Helper()
	commits := make([]tasks.Commit, len(held))
	for i := range held {
		m, err := statemachine.Decide(&held[i].Task, statemachine.Occurrence{
			Event: statemachine.Report, Actor: statemachine.Worker, Claim: held[i].Task.Current.Claim, Round: held[i].Task.Round,
			Failed: bad[i],
		}, 0)
		if err != nil {
			t.Fatal(err)
		}
		commits[i] = tasks.Commit{Move: m, Writer: "w", Bucket: held[i].Bucket, Node: tasks.NodeGood}
		if bad[i] {
			commits[i].Node = tasks.NodeBad
		}
	}
	return commits
}

func (l *batchLife) moveAll(t *testing.T, from statemachine.State, actor statemachine.Actor, event statemachine.Event) {
	t.Helper()
	batch, err := l.Store.Listed(t.Context(), from, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	commits := make([]tasks.Commit, len(batch.Tasks))
	for i := range batch.Tasks {
		task := &batch.Tasks[i]
		m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: event, Actor: actor}, batch.Now)
		if err != nil {
			t.Fatal(err)
		}
		commits[i] = tasks.Commit{Move: m, Writer: "s", Bucket: task.Bucket}
	}
	l.applyEach(t, commits)
}

func (l *batchLife) applyEach(t *testing.T, commits []tasks.Commit) {
	t.Helper()
	for part := range slices.Chunk(commits, l.size) {
		outcomes, err := storetest.Apply(t.Context(), l.Store, part...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
		}
	}
}

var claimID = regexp.MustCompile(`e1-\w+\.\d+`)

// state is all that the namespace holds, but what is called otherwise in each: the namespace, claims, requests.
func (l *batchLife) state(t *testing.T) (lines []string) {
	t.Helper()
	for _, key := range l.Raw.Keys(t.Context(), l.Key("*")).Val() {
		name := strings.TrimPrefix(key, l.Namespace+":")
		if strings.HasPrefix(name, "claim:") || strings.HasPrefix(name, "request:") {
			continue
		}
		for _, line := range l.content(t, key) {
			line = strings.ReplaceAll(line, l.Namespace, "<namespace>")
			lines = append(lines, name+" "+claimID.ReplaceAllString(line, "<claim>"))
		}
	}
	slices.Sort(lines)
	return lines
}

// events are those of all tasks, whether or not they share entries.
func (l *batchLife) events(t *testing.T) []task.Event {
	t.Helper()
	all, err := l.Store.Events(t.Context(), 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (l *batchLife) content(t *testing.T, key string) (lines []string) {
	t.Helper()
	ctx := t.Context()
	switch kind := l.Raw.Type(ctx, key).Val(); kind {
	case "hash":
		all := l.Raw.HGetAll(ctx, key).Val()
		delete(all, "lives") // of the connections
		delete(all, "server_seen")
		for _, field := range slices.Sorted(maps.Keys(all)) {
			lines = append(lines, field+" = "+all[field])
		}
	case "set":
		lines = l.Raw.SMembers(ctx, key).Val()
	case "zset":
		for _, z := range l.Raw.ZRangeWithScores(ctx, key, 0, -1).Val() {
			lines = append(lines, fmt.Sprintf("%v at %.6f", z.Member, z.Score))
		}
	case "list":
		lines = l.Raw.LRange(ctx, key, 0, -1).Val()
	case "stream":
		for _, e := range l.events(t) {
			lines = append(lines, fmt.Sprint(e))
		}
	default:
		lines = []string{kind + " " + l.Raw.Get(ctx, key).Val()}
	}
	return lines
}

// without are the lines of one that the other lacks.
func without(lines, others []string) (rest []string) {
	for _, line := range lines {
		if !slices.Contains(others, line) {
			rest = append(rest, line)
		}
	}
	return rest
}
