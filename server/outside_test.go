package server_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/server"
)

// lines are what a logger writes, line by line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default: // nobody reads any more
	}
	return len(line), nil
}

// A program runs a server of its own: it logs where the program wants it to,
// until the program ends it, and is of no use then.
func TestServerInAProgram(t *testing.T) {
	t.Parallel()
	site, err := tdf.Connect(t.Context(), tdf.Config{
		Addr: redistest.Shared(t).Socket(), Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = site.Close() }()
	logged := make(lines, 100)
	s, err := server.New(site, server.Options{
		Name: "own", Logger: slog.New(slog.NewTextHandler(logged, nil)).With("part", "server"),
		Settings: server.Settings{RoundDuration: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for !strings.Contains(wait.Receive(t, time.Minute, logged, "it logs no pass"), "msg=processed part=server interval=1 tasks=0") {
	}
	stop()
	if err := wait.Receive(t, time.Minute, ended, "it does not end"); err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, server.ErrStarted) {
		t.Errorf("run again: %v", err)
	}
}
