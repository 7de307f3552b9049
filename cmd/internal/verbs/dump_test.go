package verbs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dump is everything the namespace holds, by key.
func (b *bench) dump() map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{b.ns + ":*", "{" + b.ns + "}:*"} {
		keys, _ := b.srv.Do(b.t, "KEYS", pattern).([]any)
		for _, key := range keys {
			name := fmt.Sprint(key)
			if !strings.HasSuffix(name, ":meta") {
				all[name] = fmt.Sprintf("%q", b.srv.Do(b.t, "DUMP", name))
				continue
			}
			fields, _ := b.srv.Do(b.t, "HGETALL", name).([]any)
			for i := 0; i+1 < len(fields); i += 2 {
				if field := fmt.Sprint(fields[i]); field != "clock" { // kept fresh by each call that comes a second after the one before
					all[name+" "+field] = fmt.Sprint(fields[i+1])
				}
			}
		}
	}
	if len(all) == 0 {
		b.t.Fatal("the namespace is empty: the test would prove nothing")
	}
	return all
}

// unchanged runs a verb that must not change anything, and returns its result.
func (b *bench) unchanged(args ...string) result {
	b.t.Helper()
	before := b.dump()
	r := b.run(args...)
	if diff := cmp.Diff(before, b.dump()); diff != "" {
		b.t.Errorf("%q changed the namespace:\n%s", args, diff)
	}
	return r
}

// Nothing that has --dry-run changes anything with it, and all end with 0.
func TestDryRunsChangeNothing(t *testing.T) {
	t.Parallel()
	b := played(t)
	w := b.worker("w1")
	b.must("queue", "add", "q1", "threads=3")
	b.must("submit", "--program", "p", "--hold", "--start-after", "4000000000")
	w.beat("ready", 0, 0, "")
	for _, c := range []struct {
		args string
		say  string
	}{
		{"cancel all", "would cancel 2: 5-6\n"},
		{"cancel 5 --reason x", "would cancel 1: 5\n"},
		{"hold 5", "would hold 1: 5\n"},
		{"release all", "would release 1: 6\n"},
		{"retry --failed", "would open 2 again: "},
		{"retry 1", "would open 1 again: 1\n"},
		{"replay 1", "would run task 1 once more"},
		{"queue add q2 maxthreads=2", "would add queue q2: maxthreads unlimited -> 2"},
		{"queue set q1 threads=unlimited paused=true", "would change queue q1: threads 3 -> unlimited, paused false -> true"},
		{"queue pause q1 default", "queue q1: would pause"},
		{"queue resume q1", "it is not paused"},
		{"queue rm q1", "would remove queue q1"},
		{"node set node-1 maxthreads=3", "would change node node-1: maxthreads"},
		{"node set elsewhere maxthreads=3", "maxthreads"},
		{"submit --program p --queue q1 --array 1-3", "would open 3 tasks, from p 1 to p 3"},
		{"submit --program p --key k a b", "would open a task: p a b"},
		{"worker drain w1", "would drain"},
		{"worker stop all", "would stop"},
		{"cancel all --yes", "would cancel 2"},
		{"flush --yes", "would delete all 6 tasks"},
		{"flush", "would delete all 6 tasks of namespace " + b.ns},
	} {
		for _, flag := range []string{"--dry-run", "-n"} {
			r := b.unchanged(append(fields(c.args), flag)...)
			if r.code != 0 {
				t.Errorf("%s: ended with %d: %s", c.args, r.code, r.err)
			}
			wantText(t, r.out, c.say)
		}
	}
}
