// Package redisd runs a private redis-server for a benchmark: on a unix socket, without persistence, stopped by its
// process id.
package redisd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// Server is a redis-server that nobody else uses.
type Server struct {
	// DB is a client of its own for the benchmark, with one connection.
	DB  *redis.Client
	cmd *exec.Cmd
	dir string
}

// Start starts a server with further settings, as in "--hash-max-listpack-entries", "512"; a first one without dashes is
// a redis.conf to read before all of them. The caller stops it.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "tdf-bench-redis-")
	if err != nil {
		return nil, fmt.Errorf("directory for redis-server: %w", err)
	}
	s := &Server{dir: dir}
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
	if err := s.awaitPing(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Client makes a client with one connection, to the socket of the server or of somebody who passes on what it gets.
func (s *Server) Client(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: "unix", Addr: socket, PoolSize: 1, MaxRetries: -1, DisableIdentity: true, Protocol: 2,
		ReadTimeout: time.Minute,
	})
}

// Socket is the path of its unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "redis.sock") }

func (s *Server) awaitPing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.DB.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server did not answer within %s: %w", startWait, err)
		case <-tick.C:
		}
	}
}

// Stop ends the server by its process id and removes its directory.
func (s *Server) Stop() {
	_ = s.DB.Close()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(s.dir)
}

// Prefer lets the server have a processor whenever it wants one, as on a host of its own, and reports whether this user
// may do that. Without it, what Redis says a script took holds the time of others.
func (s *Server) Prefer() bool { return prefer(s.cmd.Process.Pid) } // the thread that carries out commands

// prefer lets a thread run before all others; 0 is the calling one.
func prefer(thread int) bool {
	realtime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	return unix.SchedSetAttr(thread, &realtime, 0) == nil
}

// CPU returns the CPU seconds the server has used so far.
func (s *Server) CPU(ctx context.Context) (float64, error) {
	user, err := s.info(ctx, "cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := s.info(ctx, "cpu", "used_cpu_sys")
	return user + system, err
}

// ScriptTime is how long scripts have run so far, on the clock.
func (s *Server) ScriptTime(ctx context.Context) (time.Duration, error) {
	text, err := s.DB.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("INFO commandstats: %w", err)
	}
	_, rest, _ := strings.Cut(text, "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec=")
	us, _, found := strings.Cut(rest, ",")
	if !found {
		return 0, nil // none has run
	}
	n, err := strconv.ParseInt(us, 10, 64)
	return time.Duration(n) * time.Microsecond, err
}

// Reads is how often the server has read from a connection so far. A client that does not send several commands at once
// is read once for each of them; commands of scripts do not count.
func (s *Server) Reads(ctx context.Context) (float64, error) {
	return s.info(ctx, "stats", "total_reads_processed")
}

// Connections is how many clients are connected, this one included.
func (s *Server) Connections(ctx context.Context) (float64, error) {
	return s.info(ctx, "clients", "connected_clients")
}

// Memory returns the bytes the server has allocated.
func (s *Server) Memory(ctx context.Context) (float64, error) {
	return s.info(ctx, "memory", "used_memory")
}

func (s *Server) info(ctx context.Context, section, name string) (float64, error) {
	figures, err := s.Figures(ctx, section)
	if err != nil {
		return 0, err
	}
	value, there := figures[name]
	if !there {
		return 0, fmt.Errorf("INFO %s has no %s", section, name)
	}
	return value, nil
}

// Figures are the numbers of some sections of INFO, by name.
func (s *Server) Figures(ctx context.Context, sections ...string) (map[string]float64, error) {
	figures := map[string]float64{}
	for _, section := range sections {
		text, err := s.DB.Info(ctx, section).Result()
		if err != nil {
			return nil, fmt.Errorf("INFO %s: %w", section, err)
		}
		for line := range strings.SplitSeq(text, "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				figures[name] = n
			}
		}
	}
	return figures, nil
}

// Pauses are the times at which a thread that only looks at the clock, with the priority that [Server.Prefer] gives,
// did not get on: the machine stood still, or somebody outside of it had the processor. What Redis says a script
// took holds such times too.
type Pauses struct {
	Limit   time.Duration // shorter ones are not counted
	Watched time.Duration
	Count   int
	Longest time.Duration
}

// Linux stops threads of that priority when they have used 95 % of a second. The watch rests before.
const (
	watchSpell = 200 * time.Millisecond
	watchRest  = 50 * time.Millisecond
)

// Watch looks for pauses for a while, of which a fifth is rest, or until ctx ends, but once at least.
func (p *Pauses) Watch(ctx context.Context, span time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with its priority
		prefer(0)
		for again := true; again; again = ctx.Err() == nil {
			p.spell()
			timing.Pause(ctx, watchRest)
		}
	}()
	<-done
}

func (p *Pauses) spell() {
	began := time.Now()
	last := began
	for last.Sub(began) < watchSpell {
		now := time.Now()
		gap := now.Sub(last)
		p.Longest = max(p.Longest, gap)
		if gap > p.Limit {
			p.Count++
		}
		last = now
	}
	p.Watched += last.Sub(began)
}

// Expected is how many pauses fall into a time.
func (p *Pauses) Expected(in time.Duration) float64 { return p.scale(p.Count, in) }

// Chance is how many may: who has seen none in a span has to reckon with three in the next one.
func (p *Pauses) Chance(in time.Duration) float64 { return p.scale(p.Count+3, in) }

func (p *Pauses) scale(count int, in time.Duration) float64 {
	if p.Watched == 0 {
		return 0
	}
	return float64(count) * in.Seconds() / p.Watched.Seconds()
}
