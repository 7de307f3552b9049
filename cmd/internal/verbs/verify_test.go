package verbs

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/server"
)

func TestVerifySays(t *testing.T) {
	t.Parallel()
	b := played(t)
	wantText(t, b.must("verify"), "5 opened = 5 in a state + 0 dead letters + 0 left out + 0 taken but never written",
		"history: ", "from change 2 on; 5 of 5 tasks from their beginning")
	object := b.value(0, "verify").(map[string]any)
	if account := object["account"].(map[string]any); account["opened"] != 5.0 || account["in_states"] != 5.0 || account["missing"] != 0.0 {
		t.Errorf("JSON: %v", object)
	}
	for _, line := range []string{"verify -n", "verify --repair", "verify --wait-repaired=-1s", "verify x"} {
		if r := b.run(fields(line)...); r.code != 2 {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// TestVerifyWaits: without a server it says that one is missing. A server repairs what it can; a damaged task becomes a dead letter and is
// still reported.
func TestVerifyWaits(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.srv.Do(t, "ZADD", b.ns+":ready:default:::0", "1", "a1")
	r := b.run("verify", "--wait-repaired")
	wantText(t, r.out, "task 1: index", "1 VIOLATIONS")
	if r.code != 1 || !strings.Contains(r.err, "no server runs: start a tdf-server") {
		t.Errorf("no server: %+v", r)
	}
	srv, err := server.New(b.site(), server.Options{Settings: server.Settings{RepairInterval: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	b.background(srv.Run)
	wait.Eventually(t, limit, func() bool {
		seen, err := b.store.ServerSeen(t.Context())
		return err == nil && seen > 0
	}, "the server says nothing")
	wantText(t, b.must("verify", "--wait-repaired"), "no violations")

	b.srv.Do(t, "ZADD", b.ns+":ready:default:::0", "1", "a1")
	b.srv.Do(t, "HDEL", b.ns+":task:2", "start_after")
	b.srv.Do(t, "ZADD", b.ns+":open", "0", "1")
	report := b.value(1, "verify", "--wait-repaired=1m").(map[string]any)
	if left := report["violations"].([]any); len(left) != 1 || left[0].(map[string]any)["kind"] != "set_aside" {
		t.Errorf("JSON: %v", report)
	}
	wantText(t, b.must("history", "1"), "repair")
}

func TestHistory(t *testing.T) {
	t.Parallel()
	b := played(t)
	out := b.must("history", "1")
	wantText(t, out, "create", "- -> open", "claim", "open -> running", "running -> executed", "executed -> succeeded", "succeeded -> archived", "worker w")
	if n := strings.Count(out, "\n"); n != 5 || strings.Contains(out, " \n") {
		t.Errorf("%d events, or blanks at the end of lines:\n%s", n, out)
	}
	object := b.value(0, "history", "1").(map[string]any)
	first := object["events"].([]any)[0].(map[string]any)
	if object["id"] != 1.0 || object["from"] != 2.0 || first["event"] != "create" || first["seq"] != 2.0 || object["events"].([]any)[2].(map[string]any)["by"] != "w" || !strings.Contains(first["at"].(string), ".") {
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
