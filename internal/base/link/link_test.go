package link

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// The pauses double up to a limit, and start anew after an answer.
func TestBackoff(t *testing.T) {
	t.Parallel()
	l := New(slog.New(slog.DiscardHandler))
	for range 2 {
		want := shortestBackoff
		for range 40 {
			got := l.Failed(errors.New("down"))
			if got < want/2 || got > want {
				t.Fatalf("pause %v, want %v to %v", got, want/2, want)
			}
			want = min(2*want, longestBackoff)
		}
		l.Answered()
	}
}

// An outage is said once when it begins and once when it is over.
func TestOutageIsSaidOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&out, nil)))
	l.Answered()
	for range 3 {
		l.Failed(fmt.Errorf("claim: %w", task.ErrUnreachable))
	}
	l.Answered()
	l.Failed(errors.New("WRONGTYPE"))
	for text, want := range map[string]int{"lost the connection": 1, "answers again": 1, "refuses a command": 1} {
		if n := strings.Count(out.String(), text); n != want {
			t.Errorf("%q is said %d times, want %d:\n%s", text, n, want, out.String())
		}
	}
}
