package verbs

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// What submit and plan submit can read is pinned; what they cannot is not, and they say so, or refuse it if that is asked for.
func TestSubmitPins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const script = "#!/bin/sh\n"
	sum := sha256.Sum256([]byte(script))
	hash := hex.EncodeToString(sum[:])
	pin := task.Pin(hash)
	file := filepath.Join(t.TempDir(), "run.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(file))))
	defer srv.Close()
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := "steps:\n  one:\n    program: p\n    source: " + srv.URL + "/run.sh\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want, says string
	}{
		{"submit --program p --source rsync:" + file, "rsync:" + file + pin, ""},
		{"submit --program p --source " + srv.URL + "/run.sh", srv.URL + "/run.sh" + pin, ""},
		{"submit --program p --pin require --array 1-3 --source " + srv.URL + "/run.sh", srv.URL + "/run.sh" + pin, ""},
		{"submit --program p --pin off --source " + srv.URL + "/run.sh", srv.URL + "/run.sh", ""},
		{"submit --program p --source rsync:run.sh", "rsync:run.sh", ""},
		{"submit --program p --source " + srv.URL + "/none/run.sh", srv.URL + "/none/run.sh", "is not pinned, so each worker runs what it finds there"},
		{"submit --program p", "", ""},
		{"plan submit " + plan, srv.URL + "/run.sh" + pin, ""},
	} {
		r := b.run(fields(c.args)...)
		if r.code != 0 || !strings.Contains(r.err, c.says) || c.says == "" && r.err != "" {
			t.Errorf("%s: ended with %d: %s", c.args, r.code, r.err)
		}
		last, err := b.store.LastID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if one, err := b.store.Task(t.Context(), last); err != nil || one.Fields["source"] != c.want {
			t.Errorf("%s: source %q, %v, want %q", c.args, one.Fields["source"], err, c.want)
		}
	}
	if err := b.store.Blob(t.Context(), hash, io.Discard); err != nil {
		t.Errorf("what was pinned is not kept: %v", err)
	}
	for args, says := range map[string]string{
		"submit --program p --pin require --source rsync:run.sh":                "a relative path means another file at each worker",
		"submit --program p --pin require --source " + srv.URL + "/none/run.sh": "404",
		"submit --program p --pin yes --source rsync:run.sh":                    "--pin \"yes\" is unknown; write auto, require or off",
	} {
		if r := b.unchanged(fields(args)...); r.code != 2 || !strings.Contains(r.err, says) {
			t.Errorf("%s: ended with %d, want 2: %s", args, r.code, r.err)
		}
	}
}
