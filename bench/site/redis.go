package site

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/timing"
)

// startWait bounds how long a redis-server may take to answer.
const startWait = time.Minute

// Redis is a private redis-server on a unix socket, without persistence.
type Redis struct {
	// DB is a client of its own for the benchmark, with one connection.
	DB  *redis.Client
	cmd *exec.Cmd
	dir string
}

// StartRedis starts a server with further settings, as in "--hash-max-listpack-entries", "512"; a first one without dashes is
// a redis.conf to read before all of them. The caller stops it.
func StartRedis(ctx context.Context, settings ...string) (*Redis, error) {
	dir, err := os.MkdirTemp("", "tdf-bench-redis-")
	if err != nil {
		return nil, fmt.Errorf("directory for redis-server: %w", err)
	}
	s := &Redis{dir: dir}
	args := []string{"--port", "0", "--unixsocket", s.Socket(), "--save", "", "--appendonly", "no", "--dir", dir}
	if len(settings) > 0 && !strings.HasPrefix(settings[0], "--") {
		args = append(settings[:1:1], args...)
		settings = settings[1:]
	}
	s.cmd = exec.Command("redis-server", append(args, settings...)...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // ^C is ours
	s.DB = s.Client(s.Socket())
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		s.Stop()
		return nil, fmt.Errorf("starting redis-server (scripts/setup-test.sh installs it): %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("redis-server did not answer within %s", startWait))
	defer cancel()
	if err := Await(ctx, 5*time.Millisecond, func() (bool, error) { return s.DB.Ping(ctx).Err() == nil, nil }); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Await looks every so often whether something is so, until it is or there is an error.
func Await(ctx context.Context, every time.Duration, so func() (bool, error)) error {
	for {
		if done, err := so(); done || err != nil {
			return err
		}
		if !timing.Pause(ctx, every) {
			return context.Cause(ctx)
		}
	}
}

// Client makes a client with one connection, to the socket of the server or of a proxy before it.
func (s *Redis) Client(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: "unix", Addr: socket, PoolSize: 1, MaxRetries: -1, DisableIdentity: true, Protocol: 2,
		ReadTimeout: time.Minute,
	})
}

// Socket is the path of its unix socket.
func (s *Redis) Socket() string { return filepath.Join(s.dir, "redis.sock") }

// Stop ends the server by its process id and removes its directory.
func (s *Redis) Stop() {
	_ = s.DB.Close()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(s.dir)
}

// Prefer gives the server a real-time priority, so that it has a processor whenever it wants one, as on a host of its own,
// and reports whether this user may do that. Without it, what Redis says a script took holds the time of others.
func (s *Redis) Prefer() bool {
	realtime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	return unix.SchedSetAttr(s.cmd.Process.Pid, &realtime, 0) == nil // the thread that carries out commands
}

// Figures are the numbers of INFO, by name.
func (s *Redis) Figures(ctx context.Context) (map[string]float64, error) {
	text, err := s.DB.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("INFO: %w", err)
	}
	figures := map[string]float64{}
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			figures[name] = n
		}
	}
	return figures, nil
}

// Usage is what Redis and this process have used so far, or in a time.
type Usage struct {
	At time.Time
	// Own and Redis are seconds of processor time: of this process with the children it has waited for, and of Redis.
	Own, Redis float64
	// Reads is how often Redis has read from a connection. A client that does not send several commands at once is read once
	// for each of them; commands of scripts do not count.
	Reads float64
	// Memory is the bytes that Redis has allocated, Clients how many are connected, this one included.
	Memory, Clients float64
}

// Usage looks at both.
func (s *Redis) Usage(ctx context.Context) (Usage, error) {
	info, err := s.Figures(ctx)
	return Usage{
		At: time.Now(), Own: ProcessorTime().Seconds(), Redis: info["used_cpu_user"] + info["used_cpu_sys"],
		Reads: info["total_reads_processed"], Memory: info["used_memory"], Clients: info["connected_clients"],
	}, err
}

// Since is what was used from before to u, without the look itself; memory and clients stay those of u.
func (u Usage) Since(before Usage) Usage {
	u.Own, u.Redis, u.Reads = u.Own-before.Own, u.Redis-before.Redis, u.Reads-before.Reads-1
	return u
}

// Rest waits until all have come to rest, watches them for a span, and returns what they use a second.
func (s *Redis) Rest(ctx context.Context, settle, span time.Duration) (Usage, error) {
	if !timing.Pause(ctx, settle) {
		return Usage{}, context.Cause(ctx)
	}
	before, err := s.Usage(ctx)
	if err != nil {
		return Usage{}, err
	}
	if !timing.Pause(ctx, span) {
		return Usage{}, context.Cause(ctx)
	}
	after, err := s.Usage(ctx)
	used, seconds := after.Since(before), after.At.Sub(before.At).Seconds()
	used.Own, used.Redis, used.Reads = used.Own/seconds, used.Redis/seconds, used.Reads/seconds
	return used, err
}

// ProcessorTime is that of this process and of all descendants that were waited for.
func ProcessorTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		_ = unix.Getrusage(who, &usage) // it fails only for another who
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum
}
