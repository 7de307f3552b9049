package acceptance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A program is repacked at the same address between two submissions: every task runs the version of its own, on workers
// that have run the program before and on others, and its record names it.
func TestRepackedBetweenSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	s := newShelf(t, w, nil)
	w.server(t)
	for _, name := range []string{"warm-1", "warm-2"} {
		w.worker(t, name)
	}
	pack := func(text string) {
		t.Helper()
		run := entry{name: "run.sh", body: "#!/bin/sh\nsleep 0.05\necho " + text + " $1\n", mode: 0o755}
		w.file(t, filepath.Join("shelf", "p.tar"), string(tarOf(t, run)), 0o644)
	}
	submit := func(hold ...string) []int64 {
		t.Helper()
		args := slices.Concat([]string{"submit", "--program", "p", "--source", s.url + "/p.tar", "--array", "1-20"}, hold)
		var ids []int64
		list, _ := w.object(t, 0, args...)["ids"].([]any)
		for _, id := range list {
			n, _ := id.(float64)
			ids = append(ids, int64(n))
		}
		return ids
	}
	pack("first")
	first := submit()
	for _, id := range first {
		w.await(t, id, sm.Succeeded)
	}
	late := submit("--hold") // of the first version too
	pack("second")
	second := submit()
	w.worker(t, "cold-1")
	w.worker(t, "cold-2")
	versions := map[string]string{}
	check := func(ids []int64, want string) {
		t.Helper()
		for i, id := range ids {
			got := w.await(t, id, sm.Succeeded)
			checkFields(t, got, map[string]string{"0:output": fmt.Sprintf("%s %d\n", want, i+1)})
			version := got.Fields["0:program_sha256"]
			if known := versions[want]; known == "" {
				versions[want] = version
			} else if known != version {
				t.Errorf("task %d ran version %s, others of its submission %s", id, version, known)
			}
			if source := got.Fields["source"]; !strings.HasSuffix(source, task.Pin(version)) {
				t.Errorf("task %d has the source %q, and ran %s", id, source, version)
			}
		}
	}
	check(first, "first")
	check(second, "second")
	if len(versions) != 2 || versions["first"] == versions["second"] {
		t.Errorf("versions %v", versions)
	}
	// What the address has no longer, Redis has; and what that has no longer is never another version.
	w.manage(t, 0, "release", "all")
	check(late, "first")
	w.manage(t, 0, "submit", "--program", "p", "--source", s.url+"/p.tar"+task.Pin(strings.Repeat("0a", 32)))
	gone := late[len(late)-1] + int64(len(second)) + 1
	wait.Eventually(t, patience, func() bool {
		return strings.Contains(w.text(t, "why", id2text(gone)), "no worker had version 0a0a")
	}, "why does not name the version that nobody has")
	contains(t, "log", w.await(t, gone, sm.Open).Fields["log"], "redis does not keep sha256 0a0a", "checksum mismatch")
}
