// The command handler is the manager of the chaos test: it writes one line a
// task into a ledger, before the task is archived.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tdf-go/tdf/manager"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config, ledger string) error {
	f, err := os.OpenFile(ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer f.Close() //nolint:errcheck // lines are written unbuffered
	m, err := manager.New(ctx, "chaos", config)
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	defer func() { _ = m.Close() }()
	note := func(_ context.Context, _ *manager.Manager, t *manager.Task) error {
		_, err := fmt.Fprintf(f, "%d %s %d\n", t.ID, t.State, t.Round)
		return err //nolint:wrapcheck // the handler's error is only logged
	}
	if err := m.Run(ctx, manager.Handlers{Succeeded: note, Failed: note, TimedOut: note, Expired: note, Orphaned: note}); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}
