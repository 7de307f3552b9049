package verbs

import (
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
