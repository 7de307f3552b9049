package acceptance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

const (
	exitUsage = 2
	exitRedis = 3
)

// secret is the password of every configuration here; no message may hold it.
const secret = "sesame-open"

// refusal is what a program must be refused, and how.
type refusal struct {
	// change is applied to the good configuration: old and new text in turn.
	change []string
	code   int
	// want are parts of the message: section, key, value, remedy.
	want []string
	// only names the programs it is about, all if empty.
	only []string
}

// refused are wrong configurations, by what is wrong with them.
func refused(away, unfit string) map[string]refusal {
	const host = "host=SOCKET"
	return map[string]refusal{
		"unknown key":          {[]string{host, host + "\nprot=1"}, exitUsage, []string{"[redis] prot", "unknown", "port"}, nil},
		"unknown section":      {[]string{"[tdf]", "[rdis]\n[tdf]"}, exitUsage, []string{"[rdis]", "redis"}, nil},
		"twice":                {[]string{"db=0", "db=0\ndb=1"}, exitUsage, []string{"db", "twice"}, nil},
		"not a number":         {[]string{"db=0", "db=zero"}, exitUsage, []string{`[redis] db = "zero"`, "not a whole number"}, nil},
		"out of range":         {[]string{"db=0", "port=70000"}, exitUsage, []string{`[redis] port = "70000"`, "65535"}, nil},
		"negative":             {[]string{"[server]", "[server]\nround_duration=-1"}, exitUsage, []string{`[server] round_duration = "-1"`}, []string{"tdf-server"}},
		"NaN":                  {[]string{"[server]", "[server]\ntimeout_grace=NaN"}, exitUsage, []string{`[server] timeout_grace = "NaN"`}, []string{"tdf-server"}},
		"infinite":             {[]string{"[worker]", "[worker]\nkill_grace=inf"}, exitUsage, []string{`[worker] kill_grace = "inf"`}, []string{"tdf-worker"}},
		"start after end":      {[]string{"[task_defaults]", "[task_defaults]\nstart_after=10\nend_before=9"}, exitUsage, []string{"[task_defaults]", "start_after", "end_before"}, []string{"tdf-manager"}},
		"no [tdf]":             {[]string{"[tdf]\nnamespace=NS", ""}, exitUsage, []string{"[tdf]", "missing", "namespace=MyProject"}, nil},
		"no [redis]":           {[]string{"[redis]\n", "", host, "", "db=0", "", "password=PASSWORD", ""}, exitUsage, []string{"[redis]", "missing", "host=localhost"}, nil},
		"no namespace":         {[]string{"namespace=NS", ""}, exitUsage, []string{"[tdf] namespace", "required", "write namespace=MyProject"}, nil},
		"namespace with slash": {[]string{"namespace=NS", "namespace=a/b"}, exitUsage, []string{`[tdf] namespace = "a/b"`, "MyProject"}, nil},
		"control character":    {[]string{"namespace=NS", "namespace=a\x1bb"}, exitUsage, []string{"namespace", "control character"}, nil},
		"no INI file":          {[]string{"[redis]", "redis:"}, exitUsage, []string{":1: "}, nil},
		"Redis away":           {[]string{host, "host=" + away}, exitRedis, []string{"[redis] host, port", away, "redis-server runs there"}, nil},
		"port without Redis":   {[]string{host, "host=127.0.0.1\nport=1"}, exitRedis, []string{"[redis] host, port", "127.0.0.1:1", "redis-server runs there"}, nil},
		"wrong password":       {[]string{"password=PASSWORD", "password=" + secret + "-not"}, exitRedis, []string{"[redis] password", "TDF_REDIS_PASSWORD"}, nil},
		"no password":          {[]string{"password=PASSWORD", "password=None"}, exitRedis, []string{"[redis] password", "password_file"}, nil},
		"wrong db":             {[]string{"db=0", "db=999"}, exitRedis, []string{"[redis] db = 999", "16 databases"}, nil},
		"memory policy":        {[]string{host, "host=" + unfit}, exitUsage, []string{"maxmemory-policy", "allkeys-lru", "set it to noeviction"}, nil},
	}
}

// commands are ways to start each program with a configuration.
var commands = map[string][]string{
	"tdf-server":  {"CFG"},
	"tdf-worker":  {"w", "CFG"},
	"tdf-manager": {"--config", "CFG", "run"},
}

// The bad input of the first issue, and A44: whatever is wrong with the
// configuration or with Redis, each program says section, key, value and remedy
// in its last words, and ends with 2 or 3.
func TestRefusedConfigurations(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithPassword(secret))
	unfit := redistest.Start(t, redistest.WithPassword(secret), redistest.WithConfig("maxmemory-policy", "allkeys-lru"))
	const good = "[redis]\nhost=SOCKET\npassword=PASSWORD\ndb=0\n[tdf]\nnamespace=NS\n[server]\n[worker]\n[manager]\n[task_defaults]\n"
	fill := strings.NewReplacer("SOCKET", srv.Socket(), "PASSWORD", secret, "NS", "n")
	for name, r := range refused(filepath.Join(t.TempDir(), "no.sock"), unfit.Socket()) {
		for command, args := range commands {
			if len(r.only) > 0 && !slices.Contains(r.only, command) {
				continue
			}
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Parallel()
				text := strings.NewReplacer(r.change...).Replace(good)
				if text == good {
					t.Fatalf("%q changes nothing", r.change)
				}
				refuse(t, command, args, fill.Replace(text), r)
			})
		}
	}
}

func refuse(t *testing.T, command string, args []string, text string, r refusal) {
	t.Helper()
	dir := t.TempDir()
	cfg := filepath.Join(dir, "bad.cfg")
	if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args = strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "CFG", cfg), "\n")
	out, stderr, code := run(t, dir, append([]string{program(t, command)}, args...)...)
	if code != r.code {
		t.Errorf("ended with %d, want %d", code, r.code)
	}
	contains(t, "the message", stderr, r.want...)
	if strings.Contains(out+stderr, secret) {
		t.Errorf("the password is shown:\n%s%s", out, stderr)
	}
	if strings.Contains(stderr, "goroutine ") || strings.Contains(stderr, "\x1b") {
		t.Errorf("not a message:\n%s", stderr)
	}
}

// A48, and names and files that cannot be: exit code 2, usage on stderr.
func TestUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"expecting 1 or 2 arguments (0 given)", []string{"tdf-server"}},
		{"expecting 1 or 2 arguments (3 given)", []string{"tdf-server", "a", w.cfg, "b"}},
		{"expecting 2 arguments (0 given)", []string{"tdf-worker"}},
		{"expecting 2 arguments (1 given)", []string{"tdf-worker", "w"}},
		{"expecting 2 arguments (3 given)", []string{"tdf-worker", "w", w.cfg, "x"}},
		{"verb", []string{"tdf-manager"}},
		{"expecting 1 argument (0 given)", []string{"tdf-manager", "--config", w.cfg, "show"}},
		{"--nonsense", []string{"tdf-server", "--nonsense", w.cfg}},
	} {
		out, stderr, code := run(t, w.dir, append([]string{program(t, c.args[0])}, c.args[1:]...)...)
		if code != exitUsage || out != "" {
			t.Errorf("%v ended with %d, want 2; stdout: %s", c.args, code, out)
		}
		contains(t, "stderr", stderr, c.want, "Usage:", c.args[0])
	}
	for _, name := range []string{"a/b", "a\nb", "", ".."} {
		for _, command := range []string{"tdf-server", "tdf-worker"} {
			_, stderr, code := run(t, w.dir, program(t, command), name, w.cfg)
			if code != exitUsage || !strings.Contains(stderr, "choose a name such as") {
				t.Errorf("%s %q ended with %d: %s", command, name, code, stderr)
			}
		}
	}
	for _, file := range []string{w.dir, filepath.Join(w.dir, "no.cfg"), filepath.Join(w.cfg, "x")} {
		for command, args := range map[string][]string{
			"tdf-server": {file}, "tdf-worker": {"w", file}, "tdf-manager": {"--config", file, "stats"},
		} {
			_, stderr, code := run(t, w.dir, append([]string{program(t, command)}, args...)...)
			if code != exitUsage || !strings.Contains(stderr, file) {
				t.Errorf("%s with file %s ended with %d: %s", command, file, code, stderr)
			}
		}
	}
}

// Every program answers --check and --print-config without showing a password.
func TestPrintedConfiguration(t *testing.T) {
	t.Parallel()
	w := worldOn(t, storetest.New(t))
	for command, args := range commands {
		args = strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "CFG", w.cfg), "\n")
		for flag, want := range map[string]string{"--check": "configuration ok", "--print-config": "namespace=" + w.Namespace} {
			out, stderr, code := run(t, w.dir, append(append([]string{program(t, command)}, args...), flag)...)
			if code != 0 || !strings.Contains(out, want) || strings.Contains(out+stderr, w.Where.Password) {
				t.Errorf("%s %s ended with %d:\n%s%s", command, flag, code, out, stderr)
			}
		}
	}
}
