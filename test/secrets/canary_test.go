package secrets

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// canary is the password that is looked for everywhere.
const canary = "Canary-7f3a9c"

// inSource is a password that somebody wrote into the source of a task, which
// stays there, in Redis, and is shown nowhere.
const inSource = "Canary-5e1b2d"

// show is a program that shows all it knows, and then waits to be looked at.
const show = `env; tr '\0' '\n' < /proc/self/environ; tr '\0' ' ' < /proc/$PPID/cmdline; cat /proc/$PPID/environ 2>/dev/null
echo shown; while [ ! -e "$1" ]; do sleep 0.05; done`

// The password is nowhere but in its file or variable: not in what the programs
// say or print, in command lines, in what children get, in Redis, nor in what is
// written to disk. Failing logins and sources change nothing about that.
func TestCanary(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"file": "password_file=%s", "environment": "", "TLS": "tls=true\nca_file=%[2]s\npassword_file=%[1]s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := caged(t, name, source)
			r.crew()
			sign := filepath.Join(r.dir, "sign")
			id := r.submit("show", `set -- `+sign+"\n"+show)
			lost := r.submit("lost", "exit 1", "--max-fails", "0")
			hidden := r.openFrom("p", "http://user:"+inSource+"@127.0.0.1:1/p.zip")
			said := r.unreachable()
			r.becomes(lost, "failed")
			r.becomes(hidden, "failed")
			wait.Eventually(t, patience, func() bool { return len(r.children()) > 0 }, "no program runs")
			r.becomes(id, "running")
			r.searchProcesses()
			r.file("sign", "", 0o600)
			r.becomes(id, "succeeded")
			for _, args := range [][]string{
				{"show", id}, {"show", id, "--json"}, {"logs", id}, {"ls"}, {"verify"}, {"doctor"}, {"doctor", "--json"},
				{"worker", "show", "w"}, {"--print-config"}, {"--check"},
			} {
				got := r.verb("manager", args...)
				said[strings.Join(args, " ")] = got.out + got.err
			}
			if !strings.Contains(said["logs "+id], "shown") {
				t.Errorf("the program showed nothing: %q", said["logs "+id])
			}
			for _, d := range r.daemons {
				said[filepath.Base(d.Path)] = d.Log.String()
			}
			r.searchSource(hidden, said)
			r.search(said)
			r.search(r.values())
			r.searchFiles()
		})
	}
}

// caged makes a rig with a user whose password is the canary.
func caged(t *testing.T, name, source string) *rig {
	t.Helper()
	var r *rig
	var c *certificates
	var options []redistest.Option
	if name == "TLS" {
		c = issue(t)
		options = c.server(false)
	}
	srv := redistest.Start(t, options...)
	r = newRig(t, srv, func(string) string {
		place := "host=" + srv.Socket()
		if c != nil {
			place = fmt.Sprintf("host=localhost\nport=%d", c.port)
		}
		lines := place + "\nusername=caged"
		if source == "" {
			return lines
		}
		ca := ""
		if c != nil {
			ca = c.ca
		}
		if strings.Contains(source, "[2]") {
			return lines + "\n" + fmt.Sprintf(source, filepath.Join(r.dir, "secret"), ca)
		}
		return lines + "\n" + fmt.Sprintf(source, filepath.Join(r.dir, "secret"))
	})
	r.file("secret", canary+"\n", 0o600)
	if source == "" {
		r.env = []string{"TDF_REDIS_PASSWORD=" + canary}
	}
	srv.Do(t, "ACL", "SETUSER", "caged", "on", ">"+canary, "~*", "&*", "+@all")
	return r
}

// unreachable makes programs fail: a password that is refused, a setting that is
// wrong, and a Redis that is not there. The wrong password is the canary as well,
// with something behind it.
func (r *rig) unreachable() map[string]string {
	r.t.Helper()
	said := map[string]string{}
	old := r.env
	r.env = []string{"TDF_REDIS_PASSWORD=" + canary + "-wrong"}
	for name, args := range map[string][]string{
		"refused": {"stats"}, "no such db": {"--set", "redis.db=99", "stats"}, "nobody there": {"--set", "redis.host=/nowhere", "stats"},
		"bad value": {"--set", "redis.port=x", "stats"},
	} {
		got := r.verb("manager", args...)
		if got.code == 0 {
			r.t.Errorf("%s: %v succeeded: %s", name, args, got.out)
		}
		said[name] = got.out + got.err
	}
	if !strings.Contains(said["refused"], "refused") {
		r.t.Errorf("a refused password is reported as %q", said["refused"])
	}
	r.env = old
	return said
}

// submitFrom opens a task with that source, which has one try.
func (r *rig) submitFrom(program, source string) string {
	r.t.Helper()
	return regexp.MustCompile(`\d+`).FindString(r.must("manager", "submit", "--program", program, "--source", source, "--max-fails", "0"))
}

// searchSource looks for the password of a source in what the daemons have said,
// and in all of its task but the source.
func (r *rig) searchSource(id string, said map[string]string) {
	r.t.Helper()
	for _, args := range [][]string{{"show", id}, {"show", id, "--json"}, {"ls", "--json"}} {
		said[strings.Join(args, " ")] = r.must("manager", args...)
	}
	for name, text := range said {
		if text == "" || strings.Contains(text, inSource) {
			r.t.Errorf("%s says nothing or has the password of a source: %q", name, text)
		}
	}
	fields, _ := r.srv.Do(r.t, "HGETALL", r.ns+":task:"+id).([]any)
	refusal := ""
	for i := 0; i+1 < len(fields); i += 2 {
		name, text := fmt.Sprint(fields[i]), fmt.Sprint(fields[i+1])
		if name != "source" && strings.Contains(text, inSource) {
			r.t.Errorf("field %s has the password of the source: %q", name, text)
		}
		if name == "0:error" {
			refusal = text
		}
	}
	if !strings.Contains(refusal, "netrc") {
		r.t.Errorf("a source with a password is refused with %q", refusal)
	}
}

// search looks for the canary in texts.
func (r *rig) search(texts map[string]string) {
	r.t.Helper()
	for name, text := range texts {
		if i := strings.Index(text, canary); i >= 0 {
			r.t.Errorf("%s has the password: ...%q", name, text[max(0, i-60):min(len(text), i+40)])
		}
	}
}

// values are all that is in Redis, by key.
func (r *rig) values() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	keys, _ := r.srv.Do(r.t, "KEYS", "*").([]any)
	for _, k := range keys {
		key := fmt.Sprint(k)
		all["key "+key] = key + fmt.Sprint(r.value(key))
	}
	if len(all) < 10 {
		r.t.Errorf("only %d keys in Redis", len(all))
	}
	return all
}

func (r *rig) value(key string) any {
	r.t.Helper()
	switch r.srv.Do(r.t, "TYPE", key) {
	case "hash":
		return r.srv.Do(r.t, "HGETALL", key)
	case "list":
		return r.srv.Do(r.t, "LRANGE", key, "0", "-1")
	case "set":
		return r.srv.Do(r.t, "SMEMBERS", key)
	case "zset":
		return r.srv.Do(r.t, "ZRANGE", key, "0", "-1")
	case "stream":
		return r.srv.Do(r.t, "XRANGE", key, "-", "+")
	default:
		return r.srv.Do(r.t, "GET", key)
	}
}

// children are the processes below the daemons, of all generations.
func (r *rig) children() (pids []int) {
	r.t.Helper()
	parents := map[int]bool{}
	for _, d := range r.daemons {
		parents[d.Process.Pid] = true
	}
	for grown := true; grown; {
		grown = false
		entries, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, stat := range entries {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			if parent := parentOf(stat); !parents[pid] && parents[parent] {
				parents[pid], grown = true, true
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// parentOf reads the second field after the name, which is in brackets.
func parentOf(stat string) int {
	text, _ := os.ReadFile(stat)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[1])
	return pid
}

// searchProcesses looks at command lines of all, and at the environments of the
// children: that of a daemon may have the password, if it was given there.
func (r *rig) searchProcesses() {
	r.t.Helper()
	found := map[string]string{}
	read := func(file string) {
		text, err := os.ReadFile(file)
		if err == nil {
			found[file] = string(text)
		}
	}
	for _, d := range r.daemons {
		read(fmt.Sprintf("/proc/%d/cmdline", d.Process.Pid))
	}
	for _, pid := range r.children() {
		read(fmt.Sprintf("/proc/%d/cmdline", pid))
		read(fmt.Sprintf("/proc/%d/environ", pid))
	}
	if len(found) < 4 {
		r.t.Errorf("only %d files of processes could be read", len(found))
	}
	r.search(found)
}

// searchFiles looks at all that the programs have written: programs, spool, and
// their working directories, where a core would be.
func (r *rig) searchFiles() {
	r.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), "core"):
			r.t.Errorf("there is a core: %s", path)
		case e.Type().IsRegular() && path != filepath.Join(r.dir, "secret"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[path] = string(text)
		}
		return nil
	})
	if err != nil || len(found) < 5 {
		r.t.Errorf("%d files, %v", len(found), err)
	}
	r.search(found)
}

// openFrom is submitFrom for a source that submit refuses, as another client may open it.
func (r *rig) openFrom(program, source string) string {
	r.t.Helper()
	out := r.must("manager", "submit", "--program", program, "--hold", "--pin", "off", "--source", "rsync:/x/run.sh", "--max-fails", "0")
	id := regexp.MustCompile(`\d+`).FindString(out)
	r.srv.Do(r.t, "HSET", r.ns+":task:"+id, "source", source)
	r.must("manager", "release", id)
	return id
}
