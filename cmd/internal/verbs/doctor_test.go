package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/access"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// findings runs doctor and returns its findings by check.
func (b *bench) findings(code int) map[string]map[string]any {
	b.t.Helper()
	list, _ := b.value(code, "doctor").([]any)
	by := map[string]map[string]any{}
	for _, entry := range list {
		if f, _ := entry.(map[string]any); by[fmt.Sprint(f["check"])] == nil || f["severity"] != "ok" {
			by[fmt.Sprint(f["check"])] = f
		}
	}
	return by
}

// A new namespace on the Redis of the tests: each subject is there, and what is
// wrong is found, until a server is there that keeps things in order.
func TestDoctor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.srv = redistest.Start(t, redistest.WithAppendOnly())
	b.file = writeConfig(t, b.srv.Socket(), b.ns)
	by := b.findings(1)
	for check, severity := range map[string]string{
		"version": "warn", "memory": "warn", "persistence": "ok", "durability": "ok", "replication": "ok", "clock": "ok", "latency": "ok",
		"login": "warn", "network": "ok", "secrets": "ok", "server": "fail", "workers": "warn", "nodes": "ok", "history": "ok", "tasks": "ok",
		"disk": "skip",
	} {
		if check != "latency" && by[check]["severity"] != severity {
			t.Errorf("%s: %v, want %s", check, by[check], severity)
		}
	}
	wantText(t, fmt.Sprint(by["login"]["found"], by["version"]["found"], by["persistence"]["found"]), "administrator", "Redis 7.", "always")
	b.srv.Do(t, "HSET", b.ns+":meta", "server_seen", now(t, b))
	b.srv.Do(t, "HSET", b.ns+":set_aside", "7", "{}")
	if by := b.findings(0); by["server"]["severity"] != "ok" || by["tasks"]["severity"] != "warn" {
		t.Errorf("%v, %v", by["server"], by["tasks"])
	}
	wantText(t, b.must("doctor"), "SEVERITY", "-> start tdf-worker", "1 damaged tasks")
	b.srv.Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if by := b.findings(1); by["memory"]["severity"] != "fail" || by["durability"]["severity"] != "fail" {
		t.Errorf("%v, %v", by["memory"], by["durability"])
	}
	b.srv.Stop(t)
	if r := b.run("doctor"); r.code != 3 {
		t.Errorf("without Redis it ends with %d: %s%s", r.code, r.out, r.err)
	}
}

func now(t *testing.T, b *bench) string {
	t.Helper()
	words, _ := b.srv.Do(t, "TIME").([]any)
	return fmt.Sprint(words[0]) + ".0"
}

// A viewer may ask the doctor: what it may not see is not checked.
func TestDoctorOfViewer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.srv = redistest.Start(t)
	u := access.User{Role: access.Viewer, Namespace: b.ns, PasswordHash: access.Hash("secret")}
	rules, err := u.Rules()
	if err != nil {
		t.Fatal(err)
	}
	b.srv.Do(t, append([]string{"ACL", "SETUSER", u.Login()}, rules...)...)
	b.must("--set", "redis.host="+b.srv.Socket(), "stats") // loads the scripts
	b.file = filepath.Join(t.TempDir(), "viewer.cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\nusername=%s\npassword=secret\n[tdf]\nnamespace=%s\n[worker]\nprogram_dir=%s\n",
		b.srv.Socket(), u.Login(), b.ns, t.TempDir())
	if err := os.WriteFile(b.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(b.file, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	by := b.findings(1)
	wantText(t, fmt.Sprint(by["login"]), "no administrator", u.Login())
	wantText(t, fmt.Sprint(by["secrets"]), "fail", b.file)
	wantText(t, fmt.Sprint(by["disk"]), "program_dir", "free")
	for check, says := range map[string]string{"persistence": "appendfsync not checked", "latency": "slow log not checked"} {
		if f := by[check]; f["severity"] == "skip" {
			wantText(t, fmt.Sprint(f["found"]), says)
		} else if check == "latency" || f["severity"] == "ok" {
			t.Errorf("%s says not what was not checked: %v", check, f)
		}
	}
}

func TestACL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := b.must("acl", "worker", "--user", "w", "--password-file", file)
	wantText(t, line, "user w reset resetchannels on "+access.Hash("canary")+" ", "~"+b.ns+":task:*", "+evalsha")
	if strings.Contains(line, "canary") || strings.Count(line, "\n") != 1 {
		t.Errorf("line %q", line)
	}
	wantText(t, b.must("acl", "viewer"), "user tdf-viewer-"+b.ns+" ", access.Placeholder)
	wantText(t, b.must("acl", "viewer", "--setuser"), `ACL SETUSER "tdf-viewer-`+b.ns+`" "reset" `, `"(~`+b.ns+`:* `)
	wantText(t, b.must("acl", "worker", "--load-scripts"), "+script|load")
	if old := b.must("acl", "worker", "--redis", "6.2"); strings.Contains(old, "(") {
		t.Errorf("rules of Redis 7: %s", old)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, say := range map[string]string{file + ".not": "no such file", t.TempDir(): "is a directory", empty: "the file is empty; write"} {
		r := b.run("acl", "worker", "--password-file", name)
		if r.code != 2 || !strings.HasPrefix(r.err, fmt.Sprintf("tdf-manager: --password-file %q: ", name)) || strings.Count(r.err, name) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		wantText(t, r.err, say, "; ")
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	wantText(t, b.run("acl", "worker", "--password-file", file).err, file+" can be read by every user", "chmod 600")
	for _, args := range [][]string{
		{"acl"}, {"acl", "king"}, {"acl", "worker", "--redis", "5"}, {"acl", "worker", "--user", "a b"},
		{"acl", "worker", "--password-file", file + ".not"}, {"acl", "worker", "--password-file", t.TempDir()},
	} {
		if r := b.run(args...); r.code != 2 || strings.Contains(r.err, "canary") {
			t.Errorf("%v ended with %d: %s", args, r.code, r.err)
		}
	}
}
