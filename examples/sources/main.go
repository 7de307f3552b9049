// Command sources runs a small program from every kind of source there is: the
// bare script and all kinds of archives, from a local path and over HTTP, and
// two sources that cannot work. It does so twice, the second time without
// fetching again, and prints what was expected beside what has happened.
//
//	sources [-pause SECONDS] manager.cfg
//
// It makes the archives itself and serves them on this machine, so the worker
// must run here too. Whatever is in the namespace named by manager.cfg is
// deleted first. The exit code is 1 if an outcome is not the expected one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tdf-go/tdf/manager"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "sources:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// run does the whole work and writes the table to out, complaints to stderr.
func run(ctx context.Context, args []string, out, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	// Only what needs attention: the table says the rest.
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	m, err := manager.New(ctx, "sources", o.config, manager.WithLogger(log))
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	if _, err := m.Flush(ctx); err != nil {
		return err
	}
	site, err := openSite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.close()) }()
	return tryTwice(ctx, m, out, site, o)
}

func tryTwice(ctx context.Context, m *manager.Manager, out io.Writer, site *site, o options) error {
	wrong := 0
	for pass := 1; pass <= 2; pass++ {
		n, err := try(ctx, m, out, trials(site, o, pass), pass)
		if err != nil {
			return err
		}
		wrong += n
	}
	if wrong > 0 {
		return fmt.Errorf("%d outcomes are not as expected", wrong)
	}
	return nil
}
