package redistest

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Option changes how a redis-server is started.
type Option func(*settings)

// settings are what the options of one server add up to.
type settings struct {
	config   []string
	environ  []string
	password string
	// sentinel says that the server watches others.
	sentinel bool
	// base is a redis.conf that is read first; empty for none.
	base string
	// program is the redis-server that is run; empty for the one in PATH.
	program string
	// wrapper are the words before those of redis-server.
	wrapper []string
}

// WithAppendOnly makes every write durable (appendfsync always), so that the
// data survives [Server.Kill] and [Server.Restart]. Default: nothing is kept.
func WithAppendOnly() Option {
	return func(s *settings) {
		s.config = append(s.config, "--appendonly", "yes", "--appendfsync", "always")
	}
}

// WithConfig sets one directive of redis.conf, for example
// WithConfig("maxmemory-policy", "allkeys-lru").
func WithConfig(directive string, values ...string) Option {
	return func(s *settings) {
		s.config = append(s.config, "--"+directive)
		s.config = append(s.config, values...)
	}
}

// WithConfigFile lets the server read a redis.conf, of which only its place (address, directory, log) is set otherwise.
// Default: none, nothing is kept, and nothing evicted.
func WithConfigFile(path string) Option {
	return func(s *settings) { s.base = path }
}

// WithEnv adds NAME=value entries to the environment of redis-server, for
// example LD_PRELOAD. Default: that of the test binary.
func WithEnv(entries ...string) Option {
	return func(s *settings) { s.environ = append(s.environ, entries...) }
}

// WithRedis62 runs the redis-server of Redis 6.2 that TDF_TEST_REDIS62 names. Without it, the one in PATH.
func WithRedis62() Option {
	return func(s *settings) { s.program = os.Getenv("TDF_TEST_REDIS62") }
}

// WithPassword makes the default user need a password. Default: none.
func WithPassword(password string) Option {
	return func(s *settings) {
		s.password = password
		s.config = append(s.config, "--requirepass", password)
	}
}

// Replicated makes a server one of a group: it keeps everything, written each second,
// and its replicas get it by the disk; else one that is in sync gets no commands for a second.
func Replicated() Option {
	return func(s *settings) {
		s.config = append(s.config, "--appendonly", "yes", "--appendfsync", "everysec",
			"--repl-diskless-sync", "no", "--repl-diskless-sync-delay", "0")
	}
}

// AsSentinel makes the server one that watches others.
func AsSentinel() Option {
	return func(s *settings) { s.sentinel = true }
}

// WithWrapper starts redis-server by a command that runs what follows these words in
// its own process.
func WithWrapper(words ...string) Option {
	return func(s *settings) { s.wrapper = words }
}

// command starts redis-server. Its directives are in a file, which is made at the first start:
// what a group makes of its members (master or replica) is written back there, and holds after a restart.
func (s *settings) command(binary, dir, port, socket string) ([]string, error) {
	file := s.file(dir)
	if _, err := os.Stat(file); err != nil {
		if err := os.WriteFile(file, []byte(lines(s.directives(dir, port, socket))), 0o600); err != nil {
			return nil, fmt.Errorf("configuration of redis-server: %w", err)
		}
	}
	command := append(slices.Clone(s.wrapper), binary, file)
	if s.sentinel {
		command = append(command, "--sentinel")
	}
	return command, nil
}

// file is the configuration file of a server in dir.
func (s *settings) file(dir string) string { return filepath.Join(dir, "redis.conf") }

func (s *settings) directives(dir, port, socket string) []string {
	var all []string
	if s.base != "" {
		all = []string{"--include", s.base}
	} else if !s.sentinel {
		all = []string{"--save", "", "--maxmemory-policy", "noeviction", "--databases", "16"}
	}
	all = append(all, "--bind", "127.0.0.1", "--port", port, "--unixsocket", socket, "--dir", dir,
		"--logfile", filepath.Join(dir, "redis.log"))
	return append(all, s.config...)
}

// lines writes directives of the command line as a file has them.
func lines(directives []string) string {
	var text strings.Builder
	for _, word := range directives {
		if name, ok := strings.CutPrefix(word, "--"); ok {
			text.WriteString("\n" + name)
			continue
		}
		text.WriteString(" " + strconv.Quote(word))
	}
	return text.String() + "\n"
}

//go:embed preload/clock.c
var clockSource string

// Clock is the wall clock of one redis-server, which can be set while it runs.
type Clock struct{ dir string }

// NewClock makes a clock that is right. It needs a C compiler, as the race
// detector does.
func NewClock(tb testing.TB) *Clock {
	tb.Helper()
	c := &Clock{dir: tb.TempDir()}
	cc := exec.CommandContext(tb.Context(), "cc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", c.path("clock.so"), "-")
	cc.Stdin = strings.NewReader(clockSource)
	if out, err := cc.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s", cc.Args, err, out)
	}
	c.Set(tb, 0)
	return c
}

func (c *Clock) path(name string) string { return filepath.Join(c.dir, name) }

// Set makes the clock show the true time and d. It takes effect at once.
func (c *Clock) Set(tb testing.TB, d time.Duration) {
	tb.Helper()
	f, err := os.OpenFile(c.path("offset"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var us [8]byte
	binary.NativeEndian.PutUint64(us[:], uint64(d.Microseconds()))
	if _, err := f.WriteAt(us[:], 0); err != nil {
		tb.Fatal(err)
	}
}

// WithClock makes a redis-server run by that clock.
func WithClock(c *Clock) Option {
	return WithEnv("LD_PRELOAD="+c.path("clock.so"), "CLOCK_FILE="+c.path("offset"))
}
