// The command handler is a manager of the chaos test. It writes into a ledger
// when it begins to handle a task and when it is done with it:
//
//	TASK ROUND start|end NAME TIME PROCESS
//
// TIME is in microseconds since 1970.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

func main() {
	config, ledger, name := os.Args[1], os.Args[2], "chaos"
	if len(os.Args) > 3 {
		name = os.Args[3]
	}
	if err := run(context.Background(), config, ledger, name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config, ledger, name string) error {
	f, err := os.OpenFile(ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer f.Close() //nolint:errcheck // lines are written unbuffered
	place, err := tdf.Load(config)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	site, err := tdf.Connect(ctx, place)
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	defer func() { _ = site.Close() }()
	m := manager.New(site, name, manager.Options{})
	if err := m.Run(ctx, manager.Handlers{Unhandled: book{f, name}.note}); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// takes is how long a handler takes. Most are quick; every eighth is slow enough to be
// killed, and to meet a step of the clock.
func takes(task int64) time.Duration {
	if task%8 == 0 {
		return 600 * time.Millisecond
	}
	return 5 * time.Millisecond
}

// book is the ledger of one manager.
type book struct {
	file io.Writer
	name string
}

// note is the handler.
func (b book) note(_ context.Context, t *task.Task) error {
	if err := b.write(t, "start"); err != nil {
		return err
	}
	<-time.After(takes(t.ID))
	return b.write(t, "end")
}

func (b book) write(t *task.Task, what string) error {
	_, err := fmt.Fprintf(b.file, "%d %d %s %s %d %d\n", t.ID, t.Round, what, b.name, time.Now().UnixMicro(), os.Getpid())
	return err //nolint:wrapcheck // the handler's error is only logged
}
