package verbs

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	b := played(t)
	wantText(t, b.must("retry", "--failed", "--match", "^one\ntwo"), "opened 1 again: 6\n")
	wantText(t, b.must("retry", "--failed"), "opened 1 again: 7, 1 were opened again before: 6\n")
	wantText(t, b.must("show", "6"), "retry_of     task 2", "input        fail")
	wantText(t, b.must("show", "2"), "retried_by   task 6")
	wantText(t, b.must("retry", "2", "--again"), "opened 1 again: 8\n")
	r := b.run("retry", "1,5,99")
	wantText(t, r.out, "opened 1 again: 9, 1 were open (unchanged), 1 not found\n", "task 5 is open: it has not ended", "no such task: 99")
	if r.code != 1 {
		t.Errorf("ended with %d, want 1", r.code)
	}
	object := b.value(0, "retry", "3").(map[string]any)
	one := object["existing"].([]any)[0].(map[string]any)
	if one["id"] != 3.0 || one["new"] != 7.0 || len(object["opened"].([]any)) != 0 {
		t.Errorf("JSON: %v", object)
	}
	object = b.value(0, "retry", "4", "--dry-run").(map[string]any)
	if one := object["opened"].([]any)[0].(map[string]any); one["id"] != 4.0 || one["new"] != nil || object["dry_run"] != true {
		t.Errorf("JSON of a dry run: %v", object)
	}
}

// A task that was retried no longer counts as failed: its retry stands for it. What goes on with failed tasks still finds it.
func TestRetriedIsNotFailed(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.must("retry", "2")
	check := func(archived string, dirs ...string) {
		t.Helper()
		list := func(args string) string {
			t.Helper()
			var got []string
			for _, one := range b.value(0, append([]string{"ls"}, append(fields(args), dirs...)...)...).([]any) {
				got = append(got, ids(one.(map[string]any)["id"]))
			}
			slices.Sort(got)
			return strings.Join(got, " ")
		}
		for args, want := range map[string]string{
			"--state failed": "", "--state failed,timed_out": "3", "2-3 --state failed,timed_out --limit 0": "3", "--state archived": archived, "2": "2",
		} {
			if got := list(args); got != want {
				t.Errorf("ls %s %v: %q, want %q", args, dirs, got, want)
			}
		}
		wantText(t, b.must(append([]string{"ls", "2-3"}, dirs...)...), "2   failed (retried)  0", "3   timed_out  ")
		if out := b.run(append([]string{"results", "--csv", "--state", "failed"}, dirs...)...).out; strings.Count(out, "\n") != 1 {
			t.Errorf("results: %s", out)
		}
	}
	check("1 2 3 4")
	wantText(t, b.must("stats"), "failed      0      0\n", "timed_out   0      1\n", "retried            1\n")
	if object := b.value(0, "stats").(map[string]any); object["retried"] != 1.0 || object["ended"].(map[string]any)["failed"] != nil {
		t.Errorf("JSON: %v", object)
	}
	wantText(t, b.must("queue", "show", "default"), "succeeded 2  timed_out 1  retried 1\n")
	top := b.must("top", "--once")
	if wantText(t, top, "done 4\n", "failures 1\n"); strings.Contains(top, "six") {
		t.Errorf("top has the failure of a task that was retried:\n%s", top)
	}
	wantText(t, b.must("retry", "--state", "failed"), "1 were opened again before: 6\n")
	b.must("cancel", "5,6", "--yes")
	check("1 2 3 4 5 6", "--archive", b.exported())
}

// exported is a copy of all that is archived.
func (b *bench) exported() string {
	b.t.Helper()
	dir := b.t.TempDir()
	b.must("export", "--archive", dir)
	return dir
}

func TestRetryEndBefore(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.must("retry", "2", "--end-before", "+1h")
	wantText(t, b.must("retry", "--state", "timed_out", "--end-before", "inf"), "opened 1 again: 7\n")
	if object := b.value(0, "show", "6").(map[string]any); instant(t, object["end_before"]).Before(time.Now()) {
		t.Errorf("end_before %v", object["end_before"])
	}
	r := b.unchanged("retry", "4", "--end-before", "10")
	if r.code != 1 || !strings.Contains(r.out, "end_before") {
		t.Errorf("an end that has passed: %+v", r)
	}
}

func TestRetryRefuses(t *testing.T) {
	t.Parallel()
	b := played(t)
	for args, say := range map[string]string{
		"--match x": "--failed or --state", "--failed --state failed": "none of the others", "2 --end-before soon": "end_before",
		"2 --end-before=": "empty", "--failed --match [": "regular expression", "0": "3-9", "": "which tasks?",
	} {
		r := b.unchanged(append([]string{"retry"}, fields(args)...)...)
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%q: %+v, want 2 and %q", args, r, say)
		}
	}
}
