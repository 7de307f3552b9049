package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
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

// info asks the server for one section of INFO, or of what else answers in lines
// of name:value. It is empty while the server does not answer.
func (s *Server) info(command ...string) map[string]string {
	found := map[string]string{}
	answer, err := s.call(command...)
	if err != nil {
		return found
	}
	for line := range strings.Lines(fmt.Sprint(answer)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found[name] = value
		}
	}
	return found
}

// texts are the elements of a flat answer as text, nil while there is none.
func (s *Server) texts(command ...string) []string {
	answer, err := s.call(command...)
	if err != nil {
		return nil
	}
	list, _ := answer.([]any)
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = fmt.Sprint(e)
	}
	return texts
}

// has reports whether the answer has all of these lines, each name:value.
func has(found map[string]string, lines ...string) bool {
	for _, line := range lines {
		if name, value, _ := strings.Cut(line, ":"); found[name] != value {
			return false
		}
	}
	return true
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

// value is one RESP2 or RESP3 value with the bytes it was read from.
type value struct {
	kind  byte
	raw   []byte
	text  []byte  // simple and bulk values
	elems []value // aggregates
	null  bool
}

// readValue reads one whole value.
func readValue(r *bufio.Reader) (value, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return value{}, err //nolint:wrapcheck // io.EOF must stay io.EOF
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return value{}, fmt.Errorf("%w: %q", errProtocol, line)
	}
	v := value{kind: line[0], raw: line, text: line[1 : len(line)-2]}
	switch v.kind {
	case '$', '=', '!':
		return readBulk(r, v)
	case '*', '~', '>':
		return readElems(r, v, 1)
	case '%', '|':
		return readElems(r, v, 2)
	default:
		return v, nil
	}
}

func readBulk(r *bufio.Reader, v value) (value, error) {
	n, err := length(v)
	if err != nil || n < 0 {
		v.null = true
		return v, err
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return v, fmt.Errorf("reading %d bytes: %w", n, err)
	}
	v.raw = append(v.raw, body...)
	v.text = body[:n]
	return v, nil
}

func readElems(r *bufio.Reader, v value, each int) (value, error) {
	n, err := length(v)
	if err != nil || n < 0 {
		v.null = true
		return v, err
	}
	for range n * each {
		e, err := readValue(r)
		if err != nil {
			return v, err
		}
		v.raw = append(v.raw, e.raw...)
		v.elems = append(v.elems, e)
	}
	return v, nil
}

func length(v value) (int, error) {
	n, err := strconv.Atoi(string(v.text))
	if err != nil {
		return 0, fmt.Errorf("%w: length %q", errProtocol, v.text)
	}
	return n, nil
}

// decode turns a value into string, int64, []any, nil or *ReplyError.
func (v value) decode() any {
	switch {
	case v.null || v.kind == '_':
		return nil
	case v.kind == '-' || v.kind == '!':
		return &ReplyError{Text: string(v.text)}
	case v.kind == ':':
		n, _ := strconv.ParseInt(string(v.text), 10, 64)
		return n
	case v.kind == '*' || v.kind == '~' || v.kind == '>' || v.kind == '%':
		list := make([]any, 0, len(v.elems))
		for _, e := range v.elems {
			list = append(list, e.decode())
		}
		return list
	default:
		return string(v.text)
	}
}

// encode writes a command as an array of bulk strings.
func encode(args ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.Bytes()
}

// ErrNotInstalled says that there is no redis-server on this machine.
var ErrNotInstalled = errors.New(
	"redis-server is not installed: run `make test` once (it installs it), or put redis-server in PATH")

// errDown is returned for a server that was stopped or killed.
var errDown = errors.New("redis-server is not running")

// errProtocol is returned for bytes that are not RESP.
var errProtocol = errors.New("not RESP")

// ReplyError is an error that Redis answered with, for example
// "NOPERM this user has no permissions".
type ReplyError struct {
	// Text is the reply without its leading minus.
	Text string
}

// Error returns the text of the reply.
func (e *ReplyError) Error() string { return fmt.Sprintf("redis answered: %s", e.Text) }
