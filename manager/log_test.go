package manager

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

// Who changes something and why is in the log, also where no record has a place for it.
func TestChangesAreLoggedWithTheirReason(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	m := newManager(t, redistest.Namespace(t), withLogger(slog.New(slog.NewTextHandler(&text, nil))))
	o := ChangeOptions{By: "ann", Reason: "maintenance"}
	mustOpen(t, m, 1, spec())
	_, cancelled := m.Cancel(t.Context(), []int64{1}, o)
	_, retried := m.Retry(t.Context(), []int64{1}, RetryOptions{ChangeOptions: o})
	_, set := m.SetNode(t.Context(), "n1", setNode("maxthreads", "1"), o)
	if err := errors.Join(cancelled, retried, set, m.RemoveNode(t.Context(), "n1", o)); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"retried task", "changed node", "removed node"} {
		if !regexp.MustCompile(what + `.* by=ann reason=maintenance\n`).MatchString(text.String()) {
			t.Errorf("%s: want who and why in\n%s", what, text.String())
		}
	}
}

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
