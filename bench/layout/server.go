package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// startWait bounds how long a redis-server may take to answer.
const startWait = 10 * time.Second

// server is a private redis-server on a unix socket, without persistence.
type server struct {
	cmd *exec.Cmd
	dir string
	db  *redis.Client
}

// startServer starts one; the caller stops it.
func startServer(ctx context.Context, lim limits) (*server, error) {
	dir, err := os.MkdirTemp("", "tdf-layout-")
	if err != nil {
		return nil, fmt.Errorf("directory for redis-server: %w", err)
	}
	socket := filepath.Join(dir, "redis.sock")
	args := []string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir}
	s := &server{cmd: exec.Command("redis-server", append(args, lim.args...)...), dir: dir}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting redis-server (is it installed?): %w", err)
	}
	s.db = redis.NewClient(&redis.Options{
		Network: "unix", Addr: socket, PoolSize: 1, MaxRetries: -1, DisableIdentity: true, Protocol: 2,
		ReadTimeout: time.Minute,
	})
	if err := s.awaitPing(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) awaitPing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.db.Ping(ctx).Err()
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

// stop ends the server by its process id and removes its directory.
func (s *server) stop() {
	_ = s.db.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// cpu returns the CPU seconds the server has used so far.
func (s *server) cpu(ctx context.Context) (float64, error) {
	user, err := s.info(ctx, "cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := s.info(ctx, "cpu", "used_cpu_sys")
	return user + system, err
}

// memory returns the bytes the server has allocated.
func (s *server) memory(ctx context.Context) (float64, error) {
	return s.info(ctx, "memory", "used_memory")
}

func (s *server) info(ctx context.Context, section, name string) (float64, error) {
	text, err := s.db.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("INFO %s: %w", section, err)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, name)
}
