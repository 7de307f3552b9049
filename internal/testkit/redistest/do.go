package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

const (
	callLimit = 5 * time.Second
	pollEvery = 5 * time.Millisecond
)

// Do sends one command as the default user over the unix socket and returns the
// answer: a string, int64, []any or nil. An error answer ends the test.
func (s *Server) Do(tb testing.TB, args ...string) any {
	tb.Helper()
	answer, err := s.call(args...)
	if err != nil {
		tb.Fatalf("redis %v: %v", args, err)
	}
	return answer
}

// call sends one command on a connection of its own, after AUTH if there is a
// password.
func (s *Server) call(args ...string) (any, error) {
	dialer := net.Dialer{Timeout: callLimit}
	conn, err := dialer.DialContext(context.Background(), "unix", s.Socket())
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(callLimit)); err != nil {
		return nil, fmt.Errorf("setting a deadline: %w", err)
	}
	r := bufio.NewReader(conn)
	if s.settings.password != "" {
		if _, err := exchange(conn, r, "AUTH", s.settings.password); err != nil {
			return nil, err
		}
	}
	return exchange(conn, r, args...)
}

func exchange(conn net.Conn, r *bufio.Reader, args ...string) (any, error) {
	if _, err := conn.Write(encode(args...)); err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}
	v, err := readValue(r)
	if err != nil {
		return nil, fmt.Errorf("receiving: %w", err)
	}
	answer := v.decode()
	if failed, ok := answer.(*ReplyError); ok {
		return nil, failed
	}
	return answer, nil
}

// awaitPong waits until the process answers PING, ends, or runs out of time.
func (s *Server) awaitPong(p *process) error {
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if _, err := s.call("PING"); err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("redis-server ended at once: %v", p.cmd.ProcessState)
		case <-limit.C:
			return fmt.Errorf("redis-server did not answer PING within %v", startLimit)
		case <-tick.C:
		}
	}
}
