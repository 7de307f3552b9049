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
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
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
	config, err := tdf.Load(o.config)
	if err != nil {
		return err
	}
	config.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	place, err := tdf.Connect(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = place.Close() }()
	m := manager.New(place, "sources", manager.Options{})
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

var errUsage = errors.New("usage: sources [-pause SECONDS] [-suffix TEXT] manager.cfg")

// options are what the command line says.
type options struct {
	// pause is how many seconds each program takes; empty means 2.
	pause string
	// suffix ends the names of all programs. A program directory remembers its
	// source, and port and directory of the sources are new ones each time; so
	// the names are too, unless told otherwise.
	suffix string
	config string
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("sources", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.pause, "pause", "", "`seconds` that each program takes (default 2)")
	flags.StringVar(&o.suffix, "suffix", fmt.Sprintf("-%04x", rand.N(1<<16)),
		"end of the programs' names; those of an earlier run cannot be used again")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() != 1 {
		return o, fmt.Errorf("expecting 1 argument (%d given)\n%w", flags.NArg(), errUsage)
	}
	o.config = flags.Arg(0)
	if seconds, err := strconv.ParseFloat(o.pause, 64); o.pause != "" && (err != nil || !(seconds >= 0 && seconds <= 60)) {
		return o, fmt.Errorf("-pause=%s: write a number of seconds from 0 to 60\n%w", o.pause, errUsage)
	}
	return o, nil
}

// try opens a task for each trial, waits until all are archived, and prints what
// became of them. It returns how many outcomes are not the expected ones.
func try(ctx context.Context, m *manager.Manager, out io.Writer, all []trial, pass int) (wrong int, err error) {
	opened, err := m.SubmitAll(ctx, specs(all))
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "pass %d: %d tasks opened\n", pass, len(opened))
	got, err := outcomes(ctx, m)
	if err != nil {
		return 0, err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ttask\tprogram\texpected\tactual")
	for i, t := range all {
		mark := "ok"
		if !got[opened[i].ID].meets(t.want) {
			mark = "WRONG"
			wrong++
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%v\t%v\n", mark, opened[i].ID, t.program, t.want, got[opened[i].ID])
	}
	if err := w.Flush(); err != nil {
		return wrong, fmt.Errorf("printing the outcomes: %w", err)
	}
	return wrong, nil
}

func specs(all []trial) func(yield func(task.Spec) bool) {
	return func(yield func(task.Spec) bool) {
		for _, t := range all {
			if !yield(task.Spec{Program: t.program, Source: t.source, Input: t.input}) {
				return
			}
		}
	}
}

// outcomes runs the manager until every task is archived, and returns what
// became of them by their ids.
func outcomes(ctx context.Context, m *manager.Manager) (map[int64]outcome, error) {
	got := map[int64]outcome{}
	note := func(_ context.Context, t *task.Task) error {
		got[t.ID] = outcomeOf(t)
		return nil
	}
	err := m.Run(ctx, manager.Handlers{
		Unhandled: note,
		Stop: func(ctx context.Context, _ int) bool {
			counts, err := m.Count(ctx)
			return err == nil && counts.Unarchived() == 0
		},
	})
	if err == nil && ctx.Err() != nil {
		err = errors.New("stopped before the end")
	}
	return got, err
}

// trial is a source, and what should become of a task that uses it.
type trial struct {
	program, source, input string
	want                   outcome
}

// outcome is what became of a task.
type outcome struct {
	state string
	// lines is how many lines the program wrote to stdout.
	lines int
	// fetched is whether the worker tried to fetch the program.
	fetched bool
	// reason is the error, or a part of it where an outcome is expected.
	reason string
}

// trials are the tasks of one pass. The programs of the first pass are still
// there in the second, except those that could not be fetched.
func trials(s *site, o options, pass int) []trial {
	good := outcome{state: "succeeded", lines: 2, fetched: pass == 1}
	var all []trial
	for _, k := range kinds() {
		all = append(all, trial{"source-rsync--" + k.name, s.file(k.file), o.pause, good})
	}
	for _, k := range kinds() {
		all = append(all, trial{"source-http--" + k.name, s.web(k.file), o.pause, good})
	}
	bad := func(reason string) outcome { return outcome{state: "failed", fetched: true, reason: reason} }
	all = append(all,
		trial{"source-rsync--invalid", "rsync:this/path/is/invalid/program.wrongExtension", o.pause,
			bad("invalid type of archive / program")},
		trial{"source-rsync--non-existing", "rsync:this/path/does/not/exist/blafasel.zip", o.pause,
			bad("no such file or directory")})
	for i := range all {
		all[i].program += o.suffix
	}
	return all
}

// outcomeOf reads it from a task that has ended.
func outcomeOf(t *task.Task) outcome {
	return outcome{
		state:   string(t.EndState()),
		lines:   strings.Count(t.Output(), "\n"),
		fetched: strings.Contains(t.Fields["log"], "attempting to fetch program"),
		reason:  strings.TrimSpace(t.Failure()),
	}
}

// meets tells whether an outcome is as expected.
func (o outcome) meets(want outcome) bool {
	if !strings.Contains(o.reason, want.reason) || (o.reason == "") != (want.reason == "") {
		return false
	}
	o.reason = want.reason
	return o == want
}

// String is for the table: "succeeded, fetched, 2 lines".
func (o outcome) String() string {
	if o.state == "" {
		return "nothing"
	}
	fetch := "present"
	if o.fetched {
		fetch = "fetched"
	}
	if o.state == "failed" && o.reason != "" {
		return fmt.Sprintf("failed: %s", o.reason)
	}
	return fmt.Sprintf("%s, %s, %d lines", o.state, fetch, o.lines)
}
