package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	callLimit = 5 * time.Second
	pollEvery = 5 * time.Millisecond
)

// Do sends one command as the default user over the unix socket and returns the
// answer: a string, int64, []any or nil. An error answer ends the test.
func (s *Server) Do(tb testing.TB, args ...string) any {
	tb.Helper()
	answer, err := s.Call(args...)
	if err != nil {
		tb.Fatalf("redis %v: %v", args, err)
	}
	return answer
}

// Call is [Server.Do] for a server that may be down: it returns the error.
func (s *Server) Call(args ...string) (any, error) {
	client := redis.NewClient(&redis.Options{
		Network: "unix", Addr: s.Socket(), Password: s.settings.password, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		DialerRetries: 1, DialTimeout: callLimit, ReadTimeout: callLimit, WriteTimeout: callLimit,
	})
	defer func() { _ = client.Close() }()
	words := make([]any, len(args))
	for i, arg := range args {
		words[i] = arg
	}
	answer, err := client.Do(context.Background(), words...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("redis answers: %w", err)
	}
	return answer, nil
}

// awaitPong waits until the process answers PING, ends, or runs out of time.
func (s *Server) awaitPong(p *process) error {
	for limit := time.After(startLimit); ; {
		if _, err := s.Call("PING"); err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("redis-server ended at once: %v", p.cmd.ProcessState)
		case <-limit:
			return fmt.Errorf("redis-server did not answer PING within %v", startLimit)
		case <-time.After(pollEvery):
		}
	}
}

// Reports tells whether the answer to a command such as "INFO replication" has all
// of these lines, each name:value. A server that does not answer reports nothing.
func (s *Server) Reports(command string, lines ...string) bool {
	answer, err := s.Call(strings.Fields(command)...)
	text, _ := answer.(string)
	found := strings.Split(text, "\r\n")
	return err == nil && !slices.ContainsFunc(lines, func(line string) bool { return !slices.Contains(found, line) })
}

// Monitor calls each with the words of every command that a client sends, from now on
// until the test ends; what scripts do is left out. It runs in one goroutine, and Redis waits for it.
func (s *Server) Monitor(tb testing.TB, each func(words []string)) {
	tb.Helper()
	conn, err := (&net.Dialer{}).DialContext(tb.Context(), "unix", s.Socket())
	if err == nil {
		_, err = conn.Write([]byte("MONITOR\r\n"))
	}
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewReaderSize(conn, 1<<20)
	if _, err := lines.ReadString('\n'); err != nil { // its OK
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			// +1795289774.123456 [0 unix:/path] "word" "word"
			_, words, _ := strings.Cut(strings.TrimSpace(line), "] ")
			if !strings.Contains(line, " lua] ") {
				each(strings.Split(strings.Trim(words, `"`), `" "`))
			}
		}
	}()
	tb.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
}

// Blocks gives the seconds for which clients block at lists, command by command, as
// [Server.Monitor] sees them.
func (s *Server) Blocks(tb testing.TB) <-chan string {
	tb.Helper()
	found := make(chan string, 1<<16)
	s.Monitor(tb, func(words []string) {
		if strings.EqualFold(words[0], "blpop") {
			found <- words[len(words)-1]
		}
	})
	return found
}

// ErrNotInstalled says that there is no redis-server on this machine.
var ErrNotInstalled = errors.New(
	"redis-server is not installed: run `make test` once (it installs it), or put redis-server in PATH")

// errDown is returned for a server that was stopped or killed.
var errDown = errors.New("redis-server is not running")
