package redistest

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

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
