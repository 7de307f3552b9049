package redistest

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	// form says how the directives are given, and to what.
	form form
	// base is a redis.conf that is read first; empty for none.
	base string
	// program is the redis-server that is run; empty for the one in PATH.
	program string
	// disk is the size of a file system for the append-only file; empty for none.
	disk string
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

// form is how a redis-server is given its directives.
type form int

const (
	// onCommandLine is for servers of one process: each start is like the first.
	onCommandLine form = iota
	// inFile is for a member of a group: what its group makes of it (master or
	// replica) is written back into the file, so that it holds after a restart.
	inFile
	// asSentinel is inFile for a sentinel.
	asSentinel
)

// file is the configuration file of a server in dir.
func (s *settings) file(dir string) string { return filepath.Join(dir, "redis.conf") }

// arguments are those of redis-server: the directives, or the file that has them,
// which is made at the first start.
func (s *settings) arguments(dir, port, socket string) ([]string, error) {
	directives := s.directives(dir, port, socket)
	if s.form == onCommandLine {
		return directives, nil
	}
	file := s.file(dir)
	if err := writeOnce(file, lines(directives)); err != nil {
		return nil, err
	}
	if s.form == asSentinel {
		return []string{file, "--sentinel"}, nil
	}
	return []string{file}, nil
}

func (s *settings) directives(dir, port, socket string) []string {
	all := []string{
		"--bind", "127.0.0.1", "--port", port, "--unixsocket", socket,
		"--dir", s.dataDir(dir), "--logfile", filepath.Join(dir, "redis.log"),
	}
	if s.base != "" {
		all = append([]string{s.base}, all...)
	} else if s.form != asSentinel {
		all = append(all, "--save", "", "--maxmemory-policy", "noeviction", "--databases", "16")
	}
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
	return strings.TrimPrefix(text.String(), "\n") + "\n"
}

func writeOnce(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("configuration of redis-server: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("configuration of redis-server: %w", err)
	}
	return nil
}

// WithSmallDisk puts the append-only file, which is written each second, on a file
// system of that size ("8m") of its own, which ends with the process. Mounting it
// needs root; see [CanMount].
func WithSmallDisk(size string) Option {
	return func(s *settings) {
		s.disk = size
		s.config = append(s.config, "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	}
}

// CanMount skips the test where [WithSmallDisk] is not possible.
func CanMount(tb testing.TB) {
	tb.Helper()
	try := exec.CommandContext(tb.Context(), "unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", tb.TempDir())
	if out, err := try.CombinedOutput(); err != nil {
		tb.Skipf("needs the right to mount a small tmpfs: %v %s", err, out)
	}
}

// dataDir is where a server keeps its data.
func (s *settings) dataDir(dir string) string {
	if s.disk == "" {
		return dir
	}
	return filepath.Join(dir, "disk")
}

// wrapper is the command that starts redis-server where it needs a disk of its own.
func (s *settings) wrapper(dir string) []string {
	if s.disk == "" {
		return nil
	}
	return []string{
		"unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mkdir -p "$1" && mount -t tmpfs -o "size=$2" tmpfs "$1" && shift 2 && exec "$@"`, "sh", s.dataDir(dir), s.disk,
	}
}

// FillDisk fills the disk of [WithSmallDisk].
func (s *Server) FillDisk(tb testing.TB) {
	tb.Helper()
	file, err := os.Create(s.filler())
	if err != nil {
		tb.Fatalf("filling the disk of redis-server: %v", err)
	}
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
	if err := file.Close(); err != nil && !strings.Contains(err.Error(), "no space") {
		tb.Fatalf("filling the disk of redis-server: %v", err)
	}
}

// FreeDisk makes room again.
func (s *Server) FreeDisk(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(s.filler()); err != nil {
		tb.Fatalf("making room for redis-server: %v", err)
	}
}

// filler is the file that fills the disk, as it is seen from outside.
func (s *Server) filler() string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", s.PID()), s.settings.dataDir(s.dir), "filler")
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
