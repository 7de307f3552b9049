package verbs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// lines of input, and what their programs write.
var oddPrograms = []struct {
	input string
	worktest.Result
}{
	{"plain", worktest.Result{Output: "plain\n"}},
	{`two  words, "quoted"`, worktest.Result{Output: "a, \"b\"\r\nc\n\n d"}},
	{"größe ☃", worktest.Result{Output: "größe <☃>\u2028\x00\x1b[31m\n"}},
	{"fail", worktest.Result{Output: "half\n", Error: "no, \"air\"\nat all\n"}},
	{"bytes", worktest.Result{Output: "a\xff\xfeb\n"}},
	{"quiet", worktest.Result{}},
}

// odd is a bench on which oddPrograms have run.
func odd(t *testing.T, flags ...string) *bench {
	t.Helper()
	b := newBench(t)
	in, results := "", map[string]worktest.Result{}
	for _, p := range oddPrograms {
		in += p.input + "\n"
		results[p.input] = p.Result
	}
	args := append([]string{"submit", "--program", "p", "--source", "rsync:run.sh", "--max-fails", "0", "--end-before", "inf", "--each-line", "-"}, flags...)
	if r := b.runWith(t.Context(), in, args...); r.code != 0 {
		t.Fatal(r)
	}
	worktest.Drain(t, b.store, func(c *tasks.Claimed) worktest.Result { return results[c.Spec.Input] })
	return b
}

func (b *bench) rows(args ...string) []map[string]string {
	b.t.Helper()
	table, err := csv.NewReader(strings.NewReader(b.must(append([]string{"results", "--csv"}, args...)...))).ReadAll()
	if err != nil {
		b.t.Fatal(err)
	}
	var rows []map[string]string
	for _, cells := range table[1:] {
		row := map[string]string{}
		for i, name := range table[0] {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		one, _ := oneValue(t, line).(map[string]any)
		all = append(all, one)
	}
	return all
}

// The values are those of the tasks, whatever has to be quoted, in the order of the ids.
func TestResultsCSV(t *testing.T) {
	t.Parallel()
	b := odd(t)
	b.srv.Do(t, "HSET", b.ns+":task:4", "0:exit_code", "3")
	rows := b.rows("all")
	if len(rows) != len(oddPrograms) {
		t.Fatalf("%d rows", len(rows))
	}
	for i, p := range oddPrograms {
		row, state := rows[i], "succeeded"
		if p.Error != "" {
			state = "failed"
		}
		output := strings.ReplaceAll(p.Output, "\r\n", "\n") // as the reader has it
		if row["base64"] == returned.Output {
			bytes, err := base64.StdEncoding.DecodeString(row[returned.Output])
			if output = string(bytes); err != nil || output != p.Output {
				t.Errorf("task %d: %q, %v", i+1, output, err)
			}
		} else if row[returned.Output] != output {
			t.Errorf("task %d: output %q, want %q", i+1, row[returned.Output], output)
		}
		if row["id"] != fmt.Sprint(i+1) || row["words"] != p.input || row["error"] != p.Error || row["state"] != state || row["worker"] != "w" || row["partial"] != "" {
			t.Errorf("task %d: %q", i+1, row)
		}
	}
	if rows[3]["exit_code"] != "3" || rows[4]["base64"] != returned.Output {
		t.Errorf("%q", rows[3:5])
	}
	wantText(t, b.must("results", "2", "--csv"), "\"two  words, \"\"quoted\"\"\"", "\"a, \"\"b\"\"\r\nc\n\n d\"")
	stamps, _ := roundOf(t, b.value(0, "show", "1"), 0)["stamps"].(map[string]any)
	took := instant(t, stamps["executed"]).Sub(instant(t, stamps["running"])).Seconds()
	if rows[0]["start"] != stamps["running"] || rows[0]["wall_time"] != fmt.Sprint(took) {
		t.Errorf("%q: want %v s from %v", rows[0], took, stamps["running"])
	}
}

// What cannot be in JSON as it is, is in base64.
func TestResultsJSONL(t *testing.T) {
	t.Parallel()
	b := odd(t)
	b.must("submit", "--program", "p", "--source", "rsync:run.sh", "--key", "k", "--end-before", "inf", "--", "a b", "", "c")
	worktest.Drain(t, b.store, worktest.Echo)
	all := objects(t, b.must("results", "--jsonl"))
	for i, p := range oddPrograms {
		one := all[i]
		if coded, is := one["base64"].(map[string]any); is {
			if text, _ := coded[returned.Output].(string); text != base64.StdEncoding.EncodeToString([]byte(p.Output)) || one[returned.Output] != nil {
				t.Errorf("%v", one)
			}
		} else if one[returned.Output] != p.Output {
			t.Errorf("%q, want %q", one[returned.Output], p.Output)
		}
	}
	want := map[string]any{
		"id": 7.0, "key": "k", "program": "p", "words": []any{"a b", "", "c"}, "state": "succeeded", "worker": "w", "output": "\n", "error": "",
	}
	got := all[6]
	delete(got, "start")
	delete(got, "wall_time")
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(all[1]["words"]) != `[two words, "quoted"]` {
		t.Errorf("%v, want %v", got, want)
	}
	wantText(t, b.must("results", "3", "--jsonl"), "größe <☃>")
	if all[4]["base64"] == nil {
		t.Error("nothing is in base64: the test proves little")
	}
}

// A task says the same while it waits for a manager, when it is archived, and when it has left Redis.
func TestResultsAlike(t *testing.T) {
	t.Parallel()
	b := odd(t, "--archive", "manager")
	const by = "{index}-{word1}"
	read := func(args ...string) (lines []string, files map[string]string) {
		args = append([]string{"results", "1-6"}, args...)
		lines = strings.SplitAfter(b.must(append(args, "--jsonl")...), "\n")
		slices.Sort(lines)
		return lines, untar(t, b.must(append(args, "--tar", "-", "--name", by)...))
	}
	waiting, files := read()
	b.archiveAll()
	archived, archivedFiles := read()
	dir := filepath.Join(t.TempDir(), "archive")
	b.retire(dir)
	gone, goneFiles := read("--archive", dir)
	if len(waiting) != 7 || !slices.Equal(archived, waiting) || !slices.Equal(gone, waiting) {
		t.Errorf("waiting %q\narchived %q\ngone %q", waiting, archived, gone)
	}
	same(t, "archived", archivedFiles, files)
	same(t, "gone", goneFiles, files)
	r := b.run("results", "1-7")
	wantText(t, r.err, "no such task: 1-7", "task 1 has left Redis", "--archive")
	if r.code != 1 || r.out != "" {
		t.Errorf("%+v", r)
	}
	r = b.run("results", "5-7", "--archive", dir, "--csv")
	wantText(t, r.err, "not in the archive: 7")
	if r.code != 1 || strings.Count(r.out, "\n") < 3 {
		t.Errorf("%+v", r)
	}
	if r := b.run("results", "--archive", dir, "--dir", "/proc/no/x"); r.code != 2 || !strings.Contains(r.err, "tdf-manager: --dir: ") {
		t.Errorf("%+v", r)
	}
}

// What is not all there is said, and makes the exit code.
func TestResultsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := played(t) // 5 is open
	b.must("retry", "2")
	b.must("submit", "--program", "p", "--source", "rsync:run.sh", "--hold")
	b.srv.Do(t, "HSET", b.ns+":task:1", "0:output_bytes", "1000", "0:output_sha256", "abc")
	b.srv.Do(t, "HSET", b.ns+":task:3", "0:dropped", "1")
	b.srv.Do(t, "HSET", b.ns+":task:4", "rev", "x")
	r := b.run("results", "--jsonl", "1-7,9,11")
	wantText(t, r.err, "1 retried, by tasks of their own (retried_by): 2\n", "3 not ended yet: blocked 1  open 2\n",
		"3 not whole (output_limit, keep_rounds, file_retention, or damaged): 1,3-4\n", "no such task: 9,11\n")
	if r.code != 1 {
		t.Errorf("ended with %d", r.code)
	}
	all := objects(t, r.out)
	for i, want := range []string{"[output]", "<nil>", "[output error]", "[record]", "<nil>", "<nil>", "<nil>"} {
		if got := fmt.Sprint(all[i]["partial"]); got != want {
			t.Errorf("task %d: partial %s, want %s", i+1, got, want)
		}
	}
	if all[1]["retried_by"] != 6.0 || all[4]["state"] != "open" || all[4]["start"] != nil || all[6]["state"] != "blocked" {
		t.Errorf("%v", all)
	}
	if r := b.run("results", "2"); r.code != 0 || !strings.Contains(r.out, "one ...") || strings.Contains(r.out, "half") {
		t.Errorf("%+v", r)
	}
	if r := b.run("results", "--queue", "none"); r.code != 2 {
		t.Errorf("%+v", r)
	}
	if r := b.run("results", "--program", "none", "--csv"); r.code != 0 || r.err != "no task fits\n" || strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

// shortWriter is a disk with room for a few bytes.
type shortWriter struct{ room int }

func (s *shortWriter) Write(p []byte) (int, error) {
	if s.room -= len(p); s.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// An output that cannot be written is an error, in every form.
func TestResultsWriteErrors(t *testing.T) {
	t.Parallel()
	b := odd(t)
	for _, form := range []string{"", "--csv", "--jsonl", "--tar=-"} {
		var errs bytes.Buffer
		args := append(fields("--config "+b.file+" results all"), fields(form)...)
		if code := executeTo(t.Context(), "", &shortWriter{100}, &errs, args...); code != cli.ExitTaskFailed || !strings.Contains(errs.String(), "write: ") || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: ended with %d: %s", form, code, errs.String())
		}
	}
	for args, want := range map[string]string{
		"--name x": "add --dir or --tar", "--csv --jsonl": "none of the others", "--dir=": "--dir is empty", "--tar /proc/no/x": "--tar",
		"--dir /proc/no": "--dir", "--tar x --name {foo}": "{foo}", "--tar x --name a}": "brace",
	} {
		if r := b.run(append([]string{"results"}, fields(args)...)...); r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// roundTrips counts what a client sends.
type roundTrips struct{ n atomic.Int64 }

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { r.n.Add(1); return next(ctx, cmd) }
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { r.n.Add(1); return next(ctx, cmds) }
}

// Tasks are found in pages of 500 and read in pages of 50, each in one trip.
func TestResultsTrips(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 1020
	b.runWith(t.Context(), strings.Repeat("x\n", n), "submit", "--program", "p", "--source", "rsync:run.sh", "--end-before", "inf", "--each-line", "-")
	worktest.Drain(t, b.store, worktest.Echo)
	site := b.site()
	s := &session{site: site, store: site.Internal.Store, manager: manager.New(site, "m", manager.Options{})}
	if _, err := s.manager.Count(t.Context()); err != nil { // it is connected now
		t.Fatal(err)
	}
	sent := &roundTrips{}
	s.store.Redis.AddHook(sent)
	r := &results{}
	for _, visit := range []func(*task.Task){nil, (&folderNames{}).add} {
		before := sent.n.Load()
		w := &wholeTasks{s: s, choice: &r.choice, sel: manager.Selection{IDs: []manager.IDRange{{First: 1, Last: n}}}}
		if err := w.find(t.Context(), visit); err != nil {
			t.Fatal(err)
		}
		rows := &counted{}
		if err := r.each(t.Context(), w, rows); err != nil || rows.n != n {
			t.Errorf("%d rows, %v", rows.n, err)
		}
		if got := sent.n.Load() - before; got != 3+21 {
			t.Errorf("%d trips, want 24", got)
		}
	}
}

// counted is a sink that counts.
type counted struct{ n int }

func (c *counted) take(*resultRow) error { c.n++; return nil }
func (*counted) close(error) error       { return nil }

// returns makes a task return files, as a worker does, and returns their hash.
func (b *bench) returns(id int64, files map[string]string) string {
	b.t.Helper()
	dir := b.t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o755)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	packed, err := disk.NewScratch("")
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	count, _, err := fetch.PackFiles(b.t.Context(), packed, dir, "", []string{"."})
	f := task.Files{SHA256: packed.SHA256(), Bytes: packed.Size(), Count: count}
	if err == nil {
		err = b.store.PutFiles(b.t.Context(), f.SHA256, f.Bytes, packed, true)
	}
	if err == nil {
		err = b.store.Redis.HSet(b.t.Context(), fmt.Sprintf("%s:task:%d", b.ns, id), "0:files", f.Text()).Err()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return f.SHA256
}

// What tasks have returned lies in their folders, with its directories and whether it can be executed; the other forms and show say
// how many files that are. What Redis keeps no longer is missing, and so is what has another hash.
func TestResultsFiles(t *testing.T) {
	t.Parallel()
	b := odd(t)
	b.returns(1, map[string]string{"out/a.csv": "1,2\n", "output": "another\n"})
	gone := b.returns(2, map[string]string{"x": "2"})
	broken := b.returns(3, map[string]string{"x": "3"})
	b.store.Redis.ZAdd(t.Context(), b.ns+":files", redis.Z{Member: gone, Score: 1})
	if _, n, err := b.store.Sweep(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	size := b.store.Redis.StrLen(t.Context(), b.ns+":file:"+broken+":0").Val()
	b.store.Redis.Set(t.Context(), b.ns+":file:"+broken+":0", strings.Repeat("x", int(size)), 0)
	dir := filepath.Join(t.TempDir(), "out")
	hostile := task.Files{SHA256: "67a1790dca55b8803ad024ee28f616a284df5dd7b8ba5f68b4b252a5e925af79", Bytes: 3, Count: 1}
	if err := b.store.PutFiles(t.Context(), hostile.SHA256, 3, strings.NewReader("foo"), true); err != nil {
		t.Fatal(err)
	}
	b.srv.Do(t, "HSET", b.ns+":task:4", "0:files", hostile.Text())
	r := b.run("results", "--dir", dir, "1-4")
	if r.code != 1 || !strings.Contains(r.err, "3 not whole (output_limit, keep_rounds, file_retention, or damaged): 2-4") {
		t.Errorf("ended with %d: %s", r.code, r.err)
	}
	archive := filepath.Join(t.TempDir(), "out.tar")
	b.run("results", "--tar", archive, "1-4")
	unpacked := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", unpacked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dir := range []string{dir, unpacked} {
		got := tree(t, dir)
		maps.DeleteFunc(got, func(name, _ string) bool { return !strings.Contains(name, "/files") })
		want := map[string]string{"1/files/out/a.csv": "1,2\n", "1/files/output": "another\n"}
		same(t, "the files", got, want)
		if info, err := os.Stat(filepath.Join(dir, "1/files/output")); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%v, %v, want that it can be executed", info, err)
		}
	}
	rows := b.rows("1-4")
	if got := []string{rows[0]["files"], rows[1]["files"], rows[3]["files"]}; !slices.Equal(got, []string{"2", "1", "1"}) {
		t.Errorf("the column files is %q", got)
	}
	if one := objects(t, b.must("results", "--jsonl", "1"))[0]["files"].(map[string]any); one["count"] != 2.0 {
		t.Errorf("files are %v", one)
	}
	for id, want := range map[string]string{"1": "files (2, ", "2": "kept no longer (file_retention)"} {
		if out := b.must("show", id); !strings.Contains(out, want) {
			t.Errorf("show %s lacks %q:\n%s", id, want, out)
		}
	}
}

// Files that were returned to a directory are read there, from an archive too, and links nowhere; of others is said where they are.
func TestResultsReturnedTo(t *testing.T) {
	t.Parallel()
	b := odd(t)
	shared := t.TempDir()
	other := t.TempDir()
	for id, to := range map[string]string{"1": "file:" + shared, "2": "file:" + shared, "3": "file:" + shared, "4": "rsync://me:canary@host/m"} {
		b.srv.Do(t, "HSET", b.ns+":task:"+id, "return", `["out"]`, "return_to", to, "0:files", task.Files{Bytes: 4, Count: 1}.Text())
	}
	for name, text := range map[string]string{filepath.Join(shared, "1.0", "out", "a.csv"): "1,2\n", filepath.Join(other, "x"): "secret"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"2.0": other, "3.0": "1.0"} {
		if err := os.Symlink(target, filepath.Join(shared, name)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "out")
	r := b.run("results", "--dir", dir, "1-4")
	for _, want := range []string{
		"2 whose files or output cannot be read here: they were returned to file:" + shared + ": 2-3",
		"they were returned to rsync://***@host/m: 4",
	} {
		if r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("ended with %d, without %q: %s", r.code, want, r.err)
		}
	}
	if strings.Contains(r.err, "not whole") {
		t.Errorf("it says that something is lost: %s", r.err)
	}
	got := tree(t, dir)
	maps.DeleteFunc(got, func(name, _ string) bool { return !strings.Contains(name, "/files") })
	same(t, "the files", got, map[string]string{"1/files/out/a.csv": "1,2\n"})
	if one := objects(t, b.must("results", "--jsonl", "1"))[0]["files"].(map[string]any); one["to"] != "file:"+shared+"/1.0" {
		t.Errorf("files are %v", one)
	}
	for id, want := range map[string]string{"1": "files (1, 4 bytes; at file:" + shared + "/1.0)", "4": "at rsync://***@host/m/4.0)"} {
		if out := b.must("show", id); !strings.Contains(out, want) || strings.Contains(out, "canary") {
			t.Errorf("show %s lacks %q:\n%s", id, want, out)
		}
	}
	if out := b.must("show", "--json", "4"); strings.Contains(out, "canary") {
		t.Errorf("show has the password: %s", out)
	}
	if err := os.Remove(filepath.Join(shared, "1.0", "out", "a.csv")); err != nil {
		t.Fatal(err)
	}
	if r := b.run("results", "--dir", dir+"2", "1"); r.code != 1 || !strings.Contains(r.err, "whose files or output cannot be read here") {
		t.Errorf("ended with %d: %s", r.code, r.err)
	}
}

// Output that lies at a destination is read where that is the same directory here; else logs, results and show say where it is.
func TestOutputReturnedTo(t *testing.T) {
	t.Parallel()
	b := odd(t)
	shared := t.TempDir()
	for id, to := range map[string]string{"1": "file:" + shared, "2": "rsync://me:canary@host/m", "3": "file:" + shared + "/none"} {
		b.srv.Do(t, "HSET", b.ns+":task:"+id, "return_to", to, "0:whole", task.Files{Bytes: 3000, Count: 1}.Text(), "0:output", "excerpt",
			"0:output_bytes", "3000", "0:output_sha256", "a")
	}
	whole := strings.Repeat("all of it\n", 300)
	there := filepath.Join(shared, "1.0.logs", "output")
	if err := errors.Join(os.Mkdir(filepath.Dir(there), 0o755), os.WriteFile(there, []byte(whole), 0o600)); err != nil {
		t.Fatal(err)
	}
	if r := b.run("logs", "1"); r.out != whole || r.err != "" || r.code != 0 {
		t.Errorf("%+.200v", r)
	}
	if r := b.run("logs", "2"); r.out != "excerpt" ||
		r.err != "tdf-manager: this is an excerpt of the 3000 bytes; more is at rsync://***@host/m/2.0.logs, which cannot be read here\n" {
		t.Errorf("%+v", r)
	}
	want := "1 whose output cannot be read here: it was returned to file:" + shared + "/none: 3\n" +
		"1 whose output cannot be read here: it was returned to rsync://***@host/m: 2\n"
	if r := b.run("logs", "1-3"); r.err != want || !strings.Contains(r.out, whole) {
		t.Errorf("%.200q, %s", r.out, r.err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	r := b.run("results", "--dir", dir, "1-3")
	if r.code != 1 || !strings.Contains(r.err, "1 whose files or output cannot be read here: they were returned to rsync://***@host/m: 2\n") ||
		strings.Contains(r.err, "not whole") {
		t.Errorf("ended with %d: %s", r.code, r.err)
	}
	got := tree(t, dir)
	maps.DeleteFunc(got, func(name, _ string) bool { return !strings.HasSuffix(name, "/output") })
	same(t, "output", got, map[string]string{"1/output": whole, "2/output": "excerpt", "3/output": "excerpt"})
	if r := b.run("results", "--jsonl", "2"); !strings.Contains(r.out, `"whole":[{"bytes":3000,"count":1,"to":"rsync://***@host/m/2.0.logs"}]`) ||
		!strings.Contains(r.err, "not whole") {
		t.Errorf("%+v", r)
	}
	wantText(t, b.must("show", "2"), "output (3000 bytes, an excerpt; more is at rsync://***@host/m/2.0.logs, sha256 a)")
}

// Streams that the record has an excerpt of are written whole where Redis keeps them, by logs and into folders; the other forms have
// the excerpt, and say so.
func TestWholeStreams(t *testing.T) {
	t.Parallel()
	b := odd(t)
	dir := t.TempDir()
	files := map[string]*os.File{}
	texts := map[string]string{"output": strings.Repeat("all of it\n", 300), "error": strings.Repeat("no\x1b\n", 50)}
	cut := b.returns(2, map[string]string{"output.cut": "most of it"})
	b.srv.Do(t, "HSET", b.ns+":task:2", "0:whole", task.Files{SHA256: cut, Bytes: 1, Count: 1}.Text(), "0:output", "part", "0:output_bytes", "99",
		"0:output_sha256", "a")
	b.srv.Do(t, "HDEL", b.ns+":task:2", "0:files")
	if r := b.run("logs", "2"); r.out != "most of it" || !strings.Contains(r.err, "only a part of the 99 bytes is kept") {
		t.Errorf("%+v", r)
	}
	if r := b.run("results", "--dir", filepath.Join(dir, "cut"), "2"); r.code != 1 || tree(t, filepath.Join(dir, "cut"))["2/output"] != "most of it" {
		t.Errorf("%+v", r)
	}
	second := b.returns(2, map[string]string{"error": "all on stderr"}) // each in a blob of its own
	both := task.Files{SHA256: cut, Bytes: 1, Count: 1}.Text() + " " + task.Files{SHA256: second, Bytes: 1, Count: 1}.Text()
	b.srv.Do(t, "HSET", b.ns+":task:2", "0:whole", both, "0:error", "some", "0:error_bytes", "13", "0:error_sha256", "a")
	b.srv.Do(t, "HDEL", b.ns+":task:2", "0:files")
	for flag, want := range map[string]string{"--round=0": "most of it", "--stderr": "all on stderr"} {
		if r := b.run("logs", "2", flag); r.out != want {
			t.Errorf("logs 2 %s: %+v", flag, r)
		}
	}
	if b.run("results", "--dir", filepath.Join(dir, "both"), "2"); tree(t, filepath.Join(dir, "both"))["2/error"] != "all on stderr" {
		t.Errorf("%q", tree(t, filepath.Join(dir, "both")))
	}
	for name, text := range texts { // and both in one, as in older records
		file, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			_, err = file.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		files[name] = file
	}
	packed, err := disk.NewScratch("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	f := task.Files{Count: 2}
	if err = fetch.PackNamed(t.Context(), packed, files); err == nil {
		f.SHA256, f.Bytes = packed.SHA256(), packed.Size()
		err = b.store.PutFiles(t.Context(), f.SHA256, f.Bytes, packed, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.srv.Do(t, "HSET", b.ns+":task:1", "0:whole", f.Text(), "0:output", "all...it", "0:output_bytes", "3000", "0:output_sha256", "a",
		"0:error", "no\n[tdf: 196 bytes left out]\no\nexit status 3", "0:error_bytes", "200", "0:error_sha256", "b")
	own := map[string]string{"--stderr": "exit status 3\n"} // what TDF says itself is not in the stream
	for flag, want := range map[string]string{"--round=0": texts["output"], "--stderr": texts["error"]} {
		if r := b.run("logs", "1", flag); r.out != want || r.err != own[flag] || r.code != 0 {
			t.Errorf("logs %s: %d bytes, %+.200v", flag, len(r.out), r)
		}
	}
	if r := b.run("logs", "1,3"); !strings.HasPrefix(r.out, "==> task 1 <==\n"+texts["output"]+"\n==> task 3 <==\n") || r.err != "" {
		t.Errorf("%+.200v", r)
	}
	out := filepath.Join(dir, "out")
	if r := b.run("results", "--dir", out, "1"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	archive := b.must("results", "--tar", "-", "1")
	for what, got := range map[string]map[string]string{"folders": tree(t, out), "archive": untar(t, archive)} {
		if got["1/output"] != texts["output"] || got["1/error"] != texts["error"] || !strings.Contains(got["1/task.json"], `"partial":["output","error"]`) {
			t.Errorf("%s: %.300q", what, got)
		}
	}
	if r := b.run("results", "--csv", "1"); r.code != 1 || !strings.Contains(r.out, "all...it") {
		t.Errorf("%+v", r)
	}
	wantText(t, b.must("show", "1"), "output (3000 bytes, an excerpt; logs prints what is kept of it, sha256 a)")
	b.store.Redis.ZAdd(t.Context(), b.ns+":files", redis.Z{Member: f.SHA256, Score: 1})
	if _, n, err := b.store.Sweep(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if r := b.run("logs", "1"); r.out != "all...it" || !strings.Contains(r.err, "only a part of the 3000 bytes is kept") {
		t.Errorf("%+v", r)
	}
	if r := b.run("results", "--dir", filepath.Join(dir, "later"), "1"); r.code != 1 || tree(t, filepath.Join(dir, "later"))["1/output"] != "all...it" {
		t.Errorf("%+v", r)
	}
}
