package manager

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

// A log of a thousand submissions has other news too, and an input may hold secrets.
func TestOpeningIsLoggedWithoutInput(t *testing.T) {
	t.Parallel()
	for level, lines := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 3} {
		var text bytes.Buffer
		m := newManager(t, redistest.Namespace(t), withLogger(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}))))
		for _, spec := range []task.Spec{
			{Program: "p", Source: "s", Input: "canary", Key: "k"}, {Program: "p", Source: "s", Input: "canary", Key: "k"},
			{Program: "p", Source: "s", Argv: []string{"canary"}},
		} {
			if _, err := m.Submit(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
		}
		if got := text.String(); strings.Count(got, "opened") != lines || strings.Contains(got, "canary") {
			t.Errorf("%v: want %d lines without the input:\n%s", level, lines, got)
		}
	}
}
