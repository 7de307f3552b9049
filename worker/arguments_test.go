package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// show is a program that writes its arguments in brackets.
const show = `for a; do printf '[%s]' "$a"; done`

// P04, P05: results come behind the words of the input, in the order of the needs,
// one argument each, the same one as often as it is named. What a program wrote as
// result= is it, whatever it wrote to stdout.
func TestResultsAreArguments(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	a := s.planned(t, plan, s.script(t, "a", `printf 'two  words *\n\n'`))
	b := s.planned(t, plan, s.script(t, "b", `echo noise; echo result=$HOME-less >> $TDF_CONTROL; printf 'result=$x "y"' >> $TDF_CONTROL`))
	empty := s.planned(t, plan, s.script(t, "empty", `echo noise; echo result= > $TDF_CONTROL`))
	c := s.planned(t, plan, s.script(t, "c", show), input("x  y"), needs(b, a, empty, b))
	ready()
	s.start(t)
	checkFields(t, s.finish(t, c, sm.Succeeded), map[string]string{
		"0:output": "[x][y][$x \"y\"][two  words *\n][][$x \"y\"]", "0:result": "-",
	})
	checkFields(t, s.Task(t, a), map[string]string{"0:output": "two  words *\n\n", "0:result": "-"})
	checkFields(t, s.Task(t, b), map[string]string{"0:output": "noise\n", "0:result": `$x "y"`})
	checkFields(t, s.Task(t, empty), map[string]string{"0:output": "noise\n", "0:result": ""})
}

// The files have every byte, and the description names the tasks.
func TestResultsAreFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	a := s.planned(t, plan, s.script(t, "a", `printf '<&\n\tx\000y\n'`))
	b := s.planned(t, plan, s.script(t, "b", `printf '\377\n'`))
	c := s.planned(t, plan, s.script(t, "c", show+`; ls -l "$TDF_ARGS_DIR" | grep -c '^-rw------- '
cd "$TDF_ARGS_DIR"; ls; cat 1 2 3; cat "$TDF_ARGS"; ls -d "$TDF_WORKDIR"/.* | grep -c /.tdf-args`), input("x"), needs(a, b, a), files)
	none := s.planned(t, plan, s.script(t, "none", `echo "${TDF_ARGS-none} ${TDF_ARGS_DIR-at all}"; ls -A "$TDF_WORKDIR"`))
	ready()
	s.start(t)
	want := "[x]3\n1\n2\n3\n<&\n\tx\x00y\xff<&\n\tx\x00y" + fmt.Sprintf(
		`[{"task":%d,"state":"succeeded","result":"<&\n\tx\u0000y"},{"task":%d,"state":"succeeded","base64":"/w=="},`+
			`{"task":%d,"state":"succeeded","result":"<&\n\tx\u0000y"}]`+"\n2\n", a, b, a)
	checkFields(t, s.finish(t, c, sm.Succeeded), map[string]string{"0:output": want})
	checkFields(t, s.finish(t, none, sm.Succeeded), map[string]string{"0:output": "none at all\nrun.sh\n"})
}

// What is no argument is refused with the remedy, before the program starts; and the
// remedy works.
func TestResultsThatAreNoArguments(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	bytes := func(n int, of string) int64 {
		return s.planned(t, plan, s.script(t, "p"+strconv.Itoa(n), fmt.Sprintf(`head -c %d /dev/zero | tr '\0' '%s'`, n, of)))
	}
	count := s.script(t, "count", `echo $# ${#1}; cat "$TDF_ARGS_DIR"/* | wc -c`)
	eight := func(id int64) []int64 { return []int64{id, id, id, id, id, id, id, id} }
	nul, long, longest := bytes(1, `\000`), bytes(longestArgument+1, "x"), bytes(longestArgument, "x")
	cases := []struct {
		needs []int64
		err   string // of words
		words string // output of words
		files string
	}{
		{[]int64{longest}, "", "2 1\n131071\n", "1 1\n131071\n"},
		{eight(longest), "", "9 1\n1048568\n", "1 1\n1048568\n"},
		{[]int64{nul}, fmt.Sprintf("the result of task %d cannot be an argument: it contains a NUL byte", nul), "", "1 1\n1\n"},
		{[]int64{long}, fmt.Sprintf("the result of task %d cannot be an argument: it has 131072 bytes", long), "", "1 1\n131072\n"},
		{append(eight(longest), nul, nul)[:9], "it contains a NUL", "", "1 1\n1048569\n"},
		{append(eight(longest), longest), "they have 1179648 bytes together", "", "1 1\n1179639\n"},
	}
	var words, inFiles []int64
	for _, c := range cases {
		words = append(words, s.planned(t, plan, count, input("w"), needs(c.needs...)))
		inFiles = append(inFiles, s.planned(t, plan, count, input("w"), needs(c.needs...), files))
	}
	ready()
	s.start(t)
	for i, c := range cases {
		checkFields(t, s.finish(t, inFiles[i], sm.Succeeded), map[string]string{"0:output": c.files})
		if c.err == "" {
			checkFields(t, s.finish(t, words[i], sm.Succeeded), map[string]string{"0:output": c.words})
			continue
		}
		task := s.finish(t, words[i], sm.Failed)
		checkContains(t, "error", task.Fields["0:error"], c.err, "set args = files", "$TDF_ARGS_DIR")
		checkFields(t, task, map[string]string{"0:class": "program", "0:output": "", "0:program_sha256": "-"})
	}
}

// More are needed than are read at once.
func TestManyResults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	echo := s.script(t, "echo", `echo $1`)
	var ids []int64
	var want strings.Builder
	for i := range 2*resultsPage + 1 {
		ids = append(ids, s.planned(t, plan, echo, input(strconv.Itoa(i))))
		fmt.Fprintf(&want, "[%d]", i)
	}
	last := s.planned(t, plan, s.script(t, "show", show), input(""), needs(ids...))
	ready()
	s.start(t, func(o *options) { o.Slots = 4 })
	checkFields(t, s.finish(t, last, sm.Succeeded), map[string]string{"0:output": want.String()})
}

// A result that is not what the other task brought is never an argument.
func TestResultsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(s *site, key string) error
		err   string
		class string
	}{
		"cut": {
			func(s *site, key string) error { return s.Raw.HSet(t.Context(), key, "0:output_bytes", "5000").Err() },
			"the output of task 1, which this one needs, was cut at output_limit", "program",
		},
		"gone": {
			func(s *site, key string) error { return s.Raw.Del(t.Context(), key).Err() },
			"task 1, which this one needs, is gone or has not ended", "infrastructure",
		},
		"running": {
			func(s *site, key string) error { return s.Raw.HSet(t.Context(), key, "state", "running").Err() },
			"task 1, which this one needs, is gone or has not ended", "infrastructure",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			plan, ready := s.plan(t)
			a := s.planned(t, plan, s.script(t, "a", `echo 1`))
			b := s.planned(t, plan, s.script(t, "b", show), needs(a))
			ready()
			first := s.start(t)
			s.finish(t, a, sm.Executed, sm.Succeeded)
			first.stop(t)
			s.finish(t, b, sm.Open)
			if err := c.spoil(s, s.Key("task:"+strconv.FormatInt(a, 10))); err != nil {
				t.Fatal(err)
			}
			s.start(t, func(o *options) { o.Name = "second" })
			task := s.await(t, b, sm.Executed)
			checkContains(t, "error", task.Fields["0:error"], c.err)
			checkFields(t, task, map[string]string{"0:class": c.class, "0:output": ""})
		})
	}
}

// Of a task that did not succeed there is what it wrote, and how it ended.
func TestResultOfAFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	a := s.planned(t, plan, s.script(t, "a", `head -c 2000 /dev/zero | tr '\0' x; exit 1`))
	b := s.planned(t, plan, s.script(t, "b", `test "$1" = "$(cat $TDF_ARGS_DIR/1)" && echo ${#1}; cut -c 1-50 $TDF_ARGS; tail -c 14 $TDF_ARGS`),
		input(""), func(sp *task.Definition) { sp.Needs = []task.Need{{Task: a, On: task.NeedsAny}} })
	ready()
	s.start(t, func(o *options) { o.OutputLimit = 1000 })
	task := s.finish(t, b, sm.Succeeded)
	checkFields(t, task, map[string]string{"0:output": "1028\n" +
		(`[{"task":1,"state":"failed","result":"` + strings.Repeat("x", 50))[:50] + "\n" + `,"cut":true}]` + "\n"})
	checkFields(t, s.Task(t, a), map[string]string{"state": "failed"})
}

// Replies that are lost are asked for again.
func TestLostResults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	a := s.planned(t, plan, s.script(t, "a", `echo 1; head -c 3000 /dev/zero`))
	b := s.planned(t, plan, s.script(t, "b", `echo 2`))
	c := s.planned(t, plan, s.script(t, "c", show), input(""), needs(b))
	ready()
	proxy, st := s.behindProxy(t)
	results := func(args []string) bool {
		return args[0] == "hmget" && args[1] == s.Key("task:2") && args[len(args)-1] == "0:output_bytes"
	}
	feeds := func(args []string) bool { return args[0] == "hmget" && args[len(args)-1] == "feeds" }
	var drops []*redistest.Fault
	for range 8 {
		drops = append(drops, proxy.DropReply(results), proxy.DropReply(feeds))
	}
	s.startOn(t, st, func(o *options) { o.OutputLimit = 1000 })
	checkFields(t, s.finish(t, c, sm.Succeeded), map[string]string{"0:output": "[2]"})
	s.finish(t, a, sm.Succeeded)
	for i, d := range drops {
		if !d.Happened() {
			t.Errorf("reply %d was not lost", i)
		}
	}
}

// The private directory belongs to the program's user, who leads the worker nowhere.
func TestArgumentsFollowNoLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := &round{worker: &Worker{opts: s.options(t, s.Store)}, place: place{private: t.TempDir()}, results: []task.Result{{Task: 1, Text: "x"}}}
	r.Claimed = &tasks.Claimed{Spec: task.Spec{Needs: []task.Need{{Task: 1}}}}
	elsewhere := filepath.Join(t.TempDir(), "f")
	if err := os.Symlink(elsewhere, filepath.Join(r.private, argumentsFile)); err != nil {
		t.Fatal(err)
	}
	if err := r.writeArguments(); err == nil {
		t.Error("a link was followed")
	}
	if _, err := os.Stat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("written elsewhere: %v", err)
	}
}

// The files are the program's user's, who would not be able to read root's.
func TestArgumentsAreTheUsers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have several users")
	}
	s := newSite(t)
	o := s.options(t, s.Store)
	var err error
	if o.container, err = shim.New(shim.Options{Want: shim.Group, Name: s.Namespace, RunAs: "nobody"}); err != nil {
		t.Fatal(err)
	}
	uid, gid, _ := o.container.Owner()
	private, err := os.MkdirTemp("", "arguments-test-") //nolint:usetesting // others cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(private) })
	r := &round{worker: &Worker{opts: o}, place: place{private: private}, results: []task.Result{{Task: 1, Text: "x"}}}
	r.Claimed = &tasks.Claimed{Spec: task.Spec{Needs: []task.Need{{Task: 1}}}}
	if err := errors.Join(os.Chown(private, uid, gid), r.writeArguments()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{argumentsFile, argumentsDir, filepath.Join(argumentsDir, "1")} {
		var stat unix.Stat_t
		if err := unix.Lstat(filepath.Join(r.private, name), &stat); err != nil || int(stat.Uid) != uid {
			t.Errorf("%s is user %d's: %v", name, stat.Uid, err)
		}
	}
}
