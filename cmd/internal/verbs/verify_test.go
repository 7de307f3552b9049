package verbs

import (
	"strings"
	"testing"
)

func TestVerifySays(t *testing.T) {
	t.Parallel()
	b := played(t)
	wantText(t, b.must("verify"), "5 opened = 5 in a state + 0 set aside + 0 left out + 0 taken but never written",
		"history: ", "from change 1 on; 5 of 5 tasks from their beginning")
	object := b.value(0, "verify").(map[string]any)
	if account := object["account"].(map[string]any); account["opened"] != 5.0 || account["in_states"] != 5.0 || account["missing"] != 0.0 {
		t.Errorf("JSON: %v", object)
	}
	for _, line := range []string{"verify -n", "verify --set-aside", "verify x"} {
		if r := b.run(fields(line)...); r.code != 2 {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// TestVerifyRepairs: sets are put right and nothing is left; a dry run changes nothing,
// and a damaged task is left, or set aside on request.
func TestVerifyRepairs(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.srv.Do(t, "ZADD", b.ns+":ready:default:::0", "1", "a1")
	r := b.run("verify", "--repair", "-n")
	wantText(t, r.out, "would be repaired: task 1: index", "1 would be repaired, 0 left")
	if r.code != 0 || b.run("verify").code != 1 {
		t.Errorf("dry run: %+v", r)
	}
	wantText(t, b.must("verify", "--repair"), "repaired: task 1: index", "1 repaired, 0 left", "no violations")

	b.srv.Do(t, "ZADD", b.ns+":ready:default:::0", "1", "a1")
	b.srv.Do(t, "HDEL", b.ns+":task:2", "start_after")
	r = b.run("verify", "--repair")
	wantText(t, r.out, "repaired: task 1: index", "left: task 2: damaged", "--set-aside", "1 repaired, 1 left", "1 VIOLATIONS")
	if r.code != 1 {
		t.Errorf("%+v", r)
	}
	b.srv.Do(t, "ZADD", b.ns+":open", "0", "1")
	object := b.value(1, "verify", "--repair", "--set-aside").(map[string]any)
	repairs, report := object["repairs"].(map[string]any), object["report"].(map[string]any)
	if len(repairs["done"].([]any)) != 2 || report["account"].(map[string]any)["set_aside"] != 1.0 {
		t.Errorf("JSON: %v", object)
	}
	wantText(t, b.must("history", "1"), "repair")
}

func TestHistory(t *testing.T) {
	t.Parallel()
	b := played(t)
	out := b.must("history", "1")
	wantText(t, out, "create", "- -> open", "claim", "open -> running", "running -> executed", "executed -> succeeded", "worker w")
	if n := strings.Count(out, "\n"); n != 4 || strings.Contains(out, " \n") {
		t.Errorf("%d events, or blanks at the end of lines:\n%s", n, out)
	}
	object := b.value(0, "history", "1").(map[string]any)
	first := object["events"].([]any)[0].(map[string]any)
	if object["id"] != 1.0 || object["from"] != 1.0 || first["event"] != "create" || first["seq"] != 1.0 || object["events"].([]any)[2].(map[string]any)["by"] != "w" || !strings.Contains(first["at"].(string), ".") {
		t.Errorf("JSON: %v", object)
	}
	if r := b.run("history", "77"); r.code != 2 {
		t.Errorf("no such task: %+v", r)
	}
	b.srv.Do(t, "XTRIM", b.ns+":events", "MAXLEN", "1")
	wantText(t, b.must("history", "1"), "no events of task 1 are recorded, from change ")
	b.srv.Do(t, "DEL", b.ns+":events")
	wantText(t, b.must("history", "1"), "no events are recorded")
}
