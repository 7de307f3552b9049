package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/contend"
)

// startRedis runs a redis-server of our own on a free loopback port, without
// persistence, and returns its address. It ends with stop.
func startRedis(ctx context.Context, dir string) (addr string, stop func(), err error) {
	addr, err = freeAddr(ctx)
	if err != nil {
		return "", nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, err
	}
	// CommandContext kills it too, but only when ctx ends.
	cmd := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting redis-server (scripts/setup-test.sh installs it): %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := contend.Poll(ctx, func() bool { return answers(ctx, addr) }); err != nil {
		stop()
		return "", nil, fmt.Errorf("redis-server at %s does not answer: %w", addr, err)
	}
	return addr, stop, nil
}

func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// answers tells whether a Redis is there.
func answers(ctx context.Context, addr string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "+PONG")
}
