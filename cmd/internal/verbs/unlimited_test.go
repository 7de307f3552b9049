package verbs

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever is counted, unlimited is the word for no limit. Records keep the words of
// TDF and Disbatch, which are understood too.
func TestUnlimited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, words := range [][3]string{{"unlimited", "unlimited", "unlimited"}, {"none", "null", "inf"}} {
		b.must("queue", "add", "q", "threads=1", "maxthreads=1", "default_max_fails=1")
		b.must("queue", "set", "q", "threads="+words[0], "maxthreads="+words[1], "default_max_fails="+words[2])
		b.must("node", "set", "node-1", "maxthreads="+words[0])
		for _, c := range [][3]string{
			{"queue:q", "threads", "none"}, {"queue:q", "maxthreads", "none"}, {"queue:q", "default_max_fails", "inf"},
			{"node:node-1", "maxthreads", "none"},
		} {
			if got := b.srv.Do(t, "HGET", b.ns+":"+c[0], c[1]); got != c[2] {
				t.Errorf("%s: %s of %s is %v, want %s", words, c[1], c[0], got, c[2])
			}
		}
		wantText(t, b.must("queue", "show", "q"), "threads            unlimited\n", "maxthreads         unlimited\n", "default_max_fails  unlimited\n")
		wantText(t, b.must("node", "show", "node-1"), "maxthreads  unlimited (set)")
		b.must("queue", "rm", "q")
	}
	limits := []string{"max_fails", "max_timeouts", "max_losses", "max_faults"}
	flags, object, step := []string{"submit", "--program", "p"}, `{"program":"p"`, `steps: {a: {program: p, source: "rsync:run.sh"`
	for _, name := range limits {
		flags = append(flags, "--"+strings.ReplaceAll(name, "_", "-"), "unlimited")
		object += `,"` + name + `":"unlimited"`
		step += ", " + name + ": unlimited"
	}
	b.must(flags...)
	for text, args := range map[string][]string{object + "}\n": {"submit", "--from-json", "-"}, step + "}}\n": {"plan", "submit", "-"}} {
		if r := b.runWith(t.Context(), text, args...); r.code != 0 {
			t.Fatalf("%s: %+v", text, r)
		}
	}
	for id := range 3 {
		for _, name := range limits {
			if got := b.srv.Do(t, "HGET", fmt.Sprintf("%s:task:%d", b.ns, id+1), name); got != "inf" {
				t.Errorf("task %d: %s is %v", id+1, name, got)
			}
		}
	}
	wantText(t, b.must("show", "1"), "fails        0 (unlimited)\n")
	r := b.run("submit", "--program", "p", "--max-fails", "infinite")
	if r.code != 2 || !strings.Contains(r.err, "unlimited") {
		t.Errorf("another word: %+v", r)
	}
}
