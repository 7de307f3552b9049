package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

// changing are calls of verbs that change something, the text of each entry behind them; submissions leave none.
var changing = [][2]string{
	{"submit --program p -- SECRET", ""},
	{"submit -e A=SECRET -- echo x", ""},
	{"hold 2-3 --reason late", "hold 2-3 *2 late"},
	{"release j2", "release 2 (j2) *1"},
	{"attr 2 b=SECRET a=SECRET", "attr 2 (set a,b) *1"},
	{`params 2 {"a":"SECRET"}`, "params 2 *1"},
	{"cancel --queue default --state open --reason x", "cancel 2 (all state=open queue=default) *1 x"},
	{"retry 1", "retry 1 *1"},
	{"replay 1 --no-wait", "replay 1 *1"},
	{"queue add q threads=2", "queue add q (set threads) *1"},
	{"queue set q threads=3", "queue set q (set threads) *1"},
	{"queue pause q default", "queue pause default,q *2"},
	{"queue resume q", "queue resume q *1"},
	{"queue rm q", "queue rm q *1"},
	{"node set n9 maxthreads=2", "node set n9 (set maxthreads) *1"},
	{"node rm n9", "node rm n9 *1"},
	{"worker drain w1 w2", "worker drain w1,w2 *2"},
	{"worker undrain w1", "worker undrain w1 *1"},
	{"worker stop all", "worker stop w1,w2 *2"},
	{"plan submit PLAN", ""},
	{"plan hold 4 --reason late", "plan hold j4 *1 late"},
	{"plan resume 4", "plan resume j4 *1"},
	{"cancel j4", "cancel 6 (j4) *1"},
	{"plan retry 4", "plan retry j4 *1"},
	{"plan cancel 4", "plan cancel j4 *1"},
	{"series add s --every 1h --start 2100-01-01T00:00:00Z -- echo SECRET", "series add s (set every,start) *1"},
	{"series set s overlap=queue", "series set s (set overlap) *1"},
	{"series pause s", "series pause s *1"},
	{"series resume s", "series resume s *1"},
	{"series run s", "series run s *1"},
	{"series rm s", "series rm s *1"},
	{"token add ci --role read", "token add ci *1"},
	{"token add cd --role read", "token add cd *1"},
	{"token rm ci cd", "token rm cd,ci *2"},
	{"flush --yes", "flush NAMESPACE *1"},
}

// reading are the other verbs: they change nothing in the namespace, or, as run, what servers and workers change all the time.
const reading = "ls show history logs results why stats top jobs wait changes run export verify doctor acl version completion help " +
	"queue-ls queue-show node-ls node-show worker-ls worker-show program-ls program-show plan-ls plan-show plan-check series-ls series-show token-ls " +
	"plan-run program-rm program-gc" // plan submit with a wait; errands, which take workers: the acceptance tests have some

// Each verb that changes something leaves one entry; a dry run leaves none, and neither do verbs that read.
func TestEachVerbLeavesAnEntry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte("steps: {a: {source: 'command:echo', input: SECRET}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.worker("w1").beat("ready", 0, 0, "")
	b.worker("w2").beat("ready", 0, 0, "")
	b.must("submit", "--program", "p", "--timeout", "60")
	worktest.Drain(t, b.store, worktest.Echo)
	var want []string
	words := strings.NewReplacer("PLAN", plan, "NAMESPACE", b.ns)
	for _, c := range changing {
		args := fields(words.Replace(c[0]))
		if verb, _, _ := New(Manager).Find(args); verb.Flags().Lookup(dryRunName) != nil {
			b.unchanged(slices.Insert(slices.Clone(args), len(fields(verb.CommandPath()))-1, "-n")...)
		}
		b.must(args...)
		if c[1] != "" {
			want = append(want, operator()+": "+words.Replace(c[1]))
		}
		if said := b.said(); !slices.Equal(said, want) {
			t.Fatalf("%s left %q, want %q", c[0], said, want[max(0, len(want)-1):])
		}
	}
	out := b.must("changes", "--limit", "2", "--by", operator())
	wantText(t, out, "WHEN", operator(), "flush", "token rm  cd,ci")
	if all := b.must("changes", "--json", "--limit", "100"); strings.Contains(all, "SECRET") {
		t.Error(all)
	}
	if list := b.value(0, "changes", "--on", "w2", "--since", "1h").([]any); len(list) != 2 {
		t.Errorf("%v", list)
	}
	if r := b.run("changes", "--since", "then"); r.code != 2 || !strings.Contains(r.err, "how long ago") {
		t.Errorf("%+v", r)
	}
	known := fields(reading)
	for _, c := range changing {
		known = append(known, strings.Join(fields(c[0])[:2], "-"), fields(c[0])[0])
	}
	for _, name := range leaves(New(Manager), "") {
		if !slices.Contains(known, name) {
			t.Errorf("no case for %s", name)
		}
	}
}

// said are the entries of the log of changes, the oldest first.
func (b *bench) said() (list []string) {
	b.t.Helper()
	found, err := b.store.ChangesBefore(b.t.Context(), 0, 100)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range found {
		e := &found[i]
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s: %s %s *%d %s", e.By, e.What, onText(e), e.Count, e.Reason)))
	}
	slices.Reverse(list)
	return list
}

// leaves are the verbs that do something, as "queue-add".
func leaves(cmd *cobra.Command, prefix string) (names []string) {
	for _, sub := range cmd.Commands() {
		if sub.HasSubCommands() {
			names = append(names, leaves(sub, prefix+sub.Name()+"-")...)
			continue
		}
		names = append(names, prefix+sub.Name())
	}
	return names
}
