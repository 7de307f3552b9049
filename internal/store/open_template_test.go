package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// TestOpenTogether: tasks opened in one call, where what they share goes once, are those that calls of one open: every field, set, bucket,
// deadline, event, key and answer.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random, inPlan := rand.New(rand.NewPCG(seed, 0)), seed%3 == 0
			specs := make([]task.Definition, 1+random.IntN(30))
			for i := range specs {
				specs[i] = randomSpec(random, i, inPlan)
			}
			together, alone := storetest.New(t), storetest.New(t)
			var plan task.PlanID
			for _, sp := range []*storetest.Space{together, alone} {
				sp.SetClock(t, noon)
				succeeded(t, sp)
				sp.AddQueue(t, task.ParseQueue("q", nil))
				if inPlan {
					plan = newPlan(t, sp, "")
				}
			}
			want := make([]task.Opened, len(specs))
			for i := range specs {
				one := specs[i]
				one.Needs = slices.Clone(one.Needs)
				for k, n := range one.Needs {
					one.Needs[k] = task.Need{Task: want[n.Index].ID, On: n.On}
				}
				want[i] = openThem(t, alone, plan, one)[0]
			}
			if got := openThem(t, together, plan, specs...); !slices.Equal(got, want) {
				t.Errorf("opened %+v together, %+v alone", got, want)
			}
			sameDump(t, withoutRequests(dump(t, alone)), withoutRequests(dump(t, together)), "opened together")
		})
	}
}

func openThem(t *testing.T, sp *storetest.Space, plan task.PlanID, specs ...task.Definition) []task.Opened {
	t.Helper()
	opened, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func withoutRequests(all map[string]string) map[string]string {
	for name := range all {
		if strings.HasPrefix(name, "request:") {
			delete(all, name)
		}
	}
	return all
}

// randomSpec is a task of a few kinds, so that some share a template and others do not.
func randomSpec(random *rand.Rand, i int, inPlan bool) task.Definition {
	some := func(field string, texts ...string) []string { return []string{field, texts[random.IntN(len(texts))]} }
	pairs := slices.Concat(
		some("input", "1", "2 3", fmt.Sprint(i)), some("program", "p", "p", "other"), some("queue", "", "", "q"),
		some("priority", "", "", "5"), some("timeout", "", "60"), some("max_losses", "", "", "7"), some("comment", "", "a note", "another"),
		some("meta", "", "", `{"tenant":"a"}`, `{"tenant":"b"}`), some("labels", "", "", "zone=eu"), some("class", "", "", "resize"),
		some("start_after", "", "", "1", noon.Add(3*second).Text(), noon.Add(-3*second).Text()),
		some("end_before", "", "", noon.Add(50*second).Text(), noon.Add(60*second).Text()),
	)
	if inPlan {
		d := storetest.Define(append(pairs, "program", "p", "source", "s", "step", fmt.Sprint("step", i%3))...)
		for range min(i, random.IntN(4)) {
			n := random.IntN(i)
			d.Needs = append(d.Needs, task.Need{Index: n, On: []task.When{"", task.NeedsAny, task.NeedsFailure}[n%3]})
		}
		d.Grows = random.IntN(4) == 0
		return d
	}
	pairs = append(pairs, some("hold", "", "", "", "look first", "another reason")...)
	d := storetest.Define(pairs...)
	if key := some("key", "", "", "k1", "k2", fmt.Sprint(i)); key[1] != "" { // tasks of one key do the same
		key[1] += strings.Join([]string{d.Text("program"), d.Text("input"), d.Text("class")}, " ")
		d = storetest.Define(append(append(pairs, key...), some("key_until", "", "end")...)...)
	}
	switch random.IntN(8) {
	case 0:
		d.RetryOf = 1
	case 1:
		d.ReplayOf, d.ReplayRound = 1, i
	}
	return d
}

// TestOpenCosts: what opening costs Redis, exactly. A change that makes it dearer raises a limit here, and says why.
func TestOpenCosts(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	for _, c := range []struct {
		size, commands, bytes int // of the call: commands in the script but for events, bytes of the request
	}{
		{size: 1, commands: 18 + 1, bytes: 920},
		{size: 100, commands: 18 + 100, bytes: 2_800},
	} {
		specs := make([]task.Definition, c.size)
		for i := range specs {
			specs[i] = storetest.Spec(func(s *task.Definition) {
				storetest.Set(s, "input", fmt.Sprintf("--part %04d", i), "end_before", "4000000000", "timeout", "3600")
			})
		}
		sp.Open(t, specs...) // the bucket is known from now on
		sp.Server.Do(t, "CONFIG", "RESETSTAT")
		sp.Open(t, specs...)
		used := commandsOf(t, sp)
		for _, frame := range []string{"xadd", "evalsha", "config|resetstat", "info", "hello"} {
			delete(used, frame)
		}
		commands := 0
		for _, n := range used {
			commands += n
		}
		if commands != c.commands {
			t.Errorf("a call for %d tasks makes %d commands, want %d: %v", c.size, commands, c.commands, used)
		}
		sp.Server.Do(t, "CONFIG", "RESETSTAT")
		sp.Open(t, specs...)
		if bytes := bytesIn(t, sp); bytes > c.bytes {
			t.Errorf("a call for %d tasks takes %d bytes, want at most %d", c.size, bytes, c.bytes)
		}
	}
}

// commandsOf are the commands Redis has carried out, and how often.
func commandsOf(t *testing.T, sp *storetest.Space) map[string]int {
	t.Helper()
	used := map[string]int{}
	text, _ := sp.Server.Do(t, "INFO", "commandstats").(string)
	for line := range strings.Lines(text) {
		var n int
		name, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(rest, "calls=%d,", &n); err == nil {
			used[strings.TrimPrefix(name, "cmdstat_")] = n
		}
	}
	return used
}

// bytesIn is how much Redis has read.
func bytesIn(t *testing.T, sp *storetest.Space) (n int) {
	t.Helper()
	text, _ := sp.Server.Do(t, "INFO", "stats").(string)
	_, rest, _ := strings.Cut(text, "total_net_input_bytes:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
