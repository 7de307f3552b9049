package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/ops/cold"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// output is the verb logs with its flags.
type output struct {
	choice    choice
	round     int
	stderr    bool
	following bool
	away      elsewhere
}

func (a *app) logs() *cobra.Command {
	o := &output{away: elsewhere{}}
	cmd := withJSON(&cobra.Command{
		Use: "logs [TASKS]", Short: "Write the output of a round of tasks, byte for byte",
		Long: "logs writes the stdout of a task's last round. On a terminal control characters are escaped; into a\n" +
			"file or a pipe every byte is written unchanged. Of several tasks each has a header, and --json prints\n" +
			"a list; it ends with 1 if some have no such round. If a task was retried,\n" +
			retriedHelp + "\n\n" +
			"With --follow it writes the output while the program runs, on any host. It waits for a task that has\n" +
			"not begun, continues with the next round, and ends with the task. If a program writes faster than\n" +
			"its output can be sent, a line says how much was left out.\n\n" + selectorHelp,
		Example: "  tdf-manager logs 7\n  tdf-manager logs 7 --stderr --round 0\n  tdf-manager logs -f 7\n" +
			"  tdf-manager logs --state failed --stderr",
	})
	dirs := archiveFlag(cmd)
	read, follow := a.withTask(dirs, o.do), a.withManager(o.follow)
	several := a.anywhere(dirs, o.several)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("round") && o.round < 0 {
			return cli.Usagef("--round %d is negative; rounds count from 0", o.round)
		}
		one := len(args) == 1 && !o.choice.Narrow() && bulk.NamesOne(args[0], o.following)
		switch {
		case len(args) == 0 && !o.choice.Narrow():
			return cli.Usagef(whichTasks)
		case o.following && !one:
			return cli.Usagef("--follow takes one task; name it by its id, or last")
		case o.following:
			return follow(cmd, args)
		case one:
			return read(cmd, args)
		default:
			return several(cmd, args)
		}
	}
	o.choice.flags(cmd)
	flags := cmd.Flags()
	flags.IntVar(&o.round, "round", -1, "number of the round, from 0 (default: the last one begun); with --follow the present one, to its end")
	flags.Lookup("round").DefValue = "0" // the text says it
	flags.BoolVar(&o.stderr, "stderr", false, "stderr of the round, or the error that TDF recorded")
	flags.BoolVarP(&o.following, "follow", "f", false, "write output as it comes, until the task has ended")
	cmd.MarkFlagsMutuallyExclusive("stderr", jsonName) // the JSON value has both
	cmd.MarkFlagsMutuallyExclusive("follow", jsonName)
	cmd.MarkFlagsMutuallyExclusive("follow", archiveName)
	return cmd
}

// written is what a round wrote.
type written struct {
	ID      int64  `json:"id"`
	Round   int    `json:"round"`
	Output  string `json:"output"`
	Error   string `json:"error"`
	Stderr  string `json:"stderr"`
	Dropped bool   `json:"dropped"`
}

func (o *output) do(s *session, t *task.Task) error {
	r, err := o.pick(t)
	if err != nil {
		return err
	}
	if r.Dropped && !s.json {
		s.warn("%s", returned.Dropped(t.ID, r.Number))
	}
	var notRead error
	cut, missing := returned.Cut(r, o.stream()), int64(0)
	err = s.result(writtenBy(t, r), func() { missing, notRead = o.print(s.cmd.Context(), s, t.ID, r) })
	err = errors.Join(err, notRead)
	switch {
	case err != nil || s.json:
	case len(o.away) > 0:
		s.warn("this is an excerpt of the %d bytes; more is at %s, which cannot be read here", cut, cli.Safe(returned.Place(r.Whole)))
	case missing > 0:
		s.warn("only a part of the %d bytes is kept ([worker] output_limit, output_max)", missing)
	}
	if other := o.unseen(r); err == nil && other != "" && !s.json {
		s.note("nothing on stdout; --stderr shows its %d bytes", len(other))
	}
	return err
}

func writtenBy(t *task.Task, r *task.Round) written {
	return written{t.ID, r.Number, r.Output, r.Error, r.Stderr, r.Dropped}
}

// print writes the stream that is asked for. If there is only a part of it, it returns how long it was, unless away says where more is.
func (o *output) print(ctx context.Context, s *session, id int64, r *task.Round) (cut int64, err error) {
	if cut = returned.Cut(r, o.stream()); cut > 0 {
		printed, full, err := o.printWhole(ctx, s, r)
		if full {
			cut = 0
		}
		if printed || err != nil {
			return cut, err
		}
		if place := returned.Place(r.Whole); place != "" {
			o.away.add(place, id)
			cut = 0
		}
	}
	text := returned.Text(r, o.stream())
	if cli.IsTerminal(s.cmd.OutOrStdout()) {
		text = cli.SafeLines(text)
	}
	s.printf("%s", text)
	return cut, nil
}

// printWhole writes what is kept of the stream beside its record. It reports whether that is anything, and all.
func (o *output) printWhole(ctx context.Context, s *session, r *task.Round) (printed, full bool, err error) {
	out := s.cmd.OutOrStdout()
	t := &terminal{w: out}
	if cli.IsTerminal(out) {
		out = t
	}
	printed, full, err = s.returned(ctx).Stream(r, o.stream(), out)
	if err == nil {
		err = t.Flush()
	}
	// What TDF itself says stands behind the excerpt, and not in the stream.
	if own := strings.Trim(capture.Behind(r.Error, r.ErrorBytes), "\n"); err == nil && printed && o.stderr && own != "" {
		s.note("%s", cli.SafeLines(own))
	}
	return printed, full, err
}

// stream is the one that is asked for.
func (o *output) stream() string {
	if o.stderr {
		return returned.Error
	}
	return returned.Output
}

// unseen is what the round wrote to stderr if that is all, and was not asked for.
func (o *output) unseen(r *task.Round) string {
	if o.stderr || r.Output != "" {
		return ""
	}
	return returned.Text(r, returned.Error)
}

// pick finds the round asked for.
func (o *output) pick(t *task.Task) (*task.Round, error) {
	r, err := returned.Round(t, o.round)
	switch {
	case err == nil:
		return r, nil
	case o.round < 0:
		return nil, cli.WithCode(cli.ExitTaskFailed, err)
	}
	return nil, cli.WithCode(cli.ExitUsage, err)
}

// follow writes what the program writes, while it writes it.
func (o *output) follow(ctx context.Context, s *session) error {
	id, err := bulk.ParseID(s.args[0], bulk.Newest(ctx, s.manager))
	if err != nil {
		return err
	}
	w := &liveWriter{s: s, id: id, out: s.cmd.OutOrStdout()}
	if cli.IsTerminal(w.out) {
		w.out = &terminal{w: w.out}
	}
	for part, err := range s.manager.Follow(ctx, id, manager.FollowOptions{Stderr: o.stderr, OneRound: o.round >= 0, Round: o.round}) {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", s.cmd.Name(), context.Cause(ctx))
		case errors.Is(err, task.ErrNoRound):
			return cli.WithCode(cli.ExitUsage, fmt.Errorf("--%w", err))
		case err != nil:
			return err
		}
		if err := w.take(&part); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// liveWriter writes output and tells the news.
type liveWriter struct {
	s   *session
	id  int64
	out io.Writer
	// pieces are what was written so far.
	pieces returned.Pieces
}

func (w *liveWriter) take(o *manager.Output) error {
	switch o.News {
	case manager.OutputWaits:
		w.s.warn("round %d of task %d has not begun (the task is %s); waiting", o.Round, w.id, o.State)
	case manager.OutputNotRun:
		w.s.warn("round %d of task %d did not run", o.Round, w.id)
	case manager.OutputDropped:
		w.s.warn("%s", returned.Dropped(w.id, o.Round))
	case manager.OutputReopened:
		w.s.warn("round %d of task %d is over; the task was opened again", o.Round, w.id)
	case manager.OutputAway:
		w.s.warn("%s; trying again", cli.Safe(o.Err.Error()))
	case manager.OutputBack:
		w.s.warn("redis answers again")
	case manager.OutputOver:
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.write(o)
}

// write writes a piece.
func (w *liveWriter) write(o *manager.Output) error {
	if o.LeftOut > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	text := w.pieces.Text(o)
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// flush writes what a terminal still keeps back.
func (w *liveWriter) flush() error {
	if t, ok := w.out.(*terminal); ok {
		return t.Flush()
	}
	return nil
}

// terminal writes text of programs to a terminal, control characters escaped. A
// character that comes in two writes is not taken for garbage: its first bytes
// wait for the others.
type terminal struct {
	w    io.Writer
	rest []byte
}

// Write never writes less than it was given, except with an error.
func (t *terminal) Write(p []byte) (int, error) {
	text := slices.Concat(t.rest, p)
	cut := len(text) - unfinished(text)
	t.rest = text[cut:]
	if _, err := io.WriteString(t.w, cli.SafeLines(string(text[:cut]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what waits: the others do not come.
func (t *terminal) Flush() error {
	text := string(t.rest)
	t.rest = nil
	_, err := io.WriteString(t.w, cli.SafeLines(text))
	return err
}

// unfinished is the number of bytes at the end that may begin a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		last := text[len(text)-n:]
		if utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// manyOutputs is logs of several tasks.
type manyOutputs struct {
	*output

	s       *session
	objects jsonArray
	n       int
	gap     string // before a header
	// without are tasks that have no such round, dropped those whose output is kept no longer, unseen those that wrote to stderr
	// only, cut those whose output was cut.
	without, dropped, unseen, cut []int64
}

// several is logs of the tasks that are meant.
func (o *output) several(ctx context.Context, s *session, a *cold.Archive) error {
	w, err := o.choice.whole(ctx, s, a, nil)
	if err != nil {
		return err
	}
	m := &manyOutputs{output: o, s: s, objects: jsonArray{out: s.out}}
	alone := o.choice.OnlyJob() && len(w.ids) == 1 // as by its id
	for t, err := range w.all(ctx) {
		switch {
		case err != nil:
		case alone:
			return o.do(s, t) //nolint:contextcheck // it is that of the command
		default:
			err = m.take(ctx, t)
		}
		if err != nil {
			return err
		}
	}
	if s.json {
		m.objects.end()
	}
	return m.end(ctx, w)
}

// take writes the output of one.
func (m *manyOutputs) take(ctx context.Context, t *task.Task) error {
	r, err := returned.Round(t, m.round)
	if errors.Is(err, task.ErrNoRound) {
		m.without = append(m.without, t.ID)
		return nil
	}
	if r.Dropped {
		m.dropped = append(m.dropped, t.ID)
	}
	if m.output.unseen(r) != "" {
		m.unseen = append(m.unseen, t.ID)
	}
	m.n++
	if m.s.json {
		return m.objects.add(writtenBy(t, r))
	}
	m.s.printf("%s==> task %d <==\n", m.gap, t.ID)
	m.gap = "\n"
	cut, err := m.print(ctx, m.s, t.ID, r)
	if cut > 0 {
		m.cut = append(m.cut, t.ID)
	}
	return errors.Join(err, m.s.out.Err())
}

// end reports what is missing and returns the exit code.
func (m *manyOutputs) end(ctx context.Context, w *wholeTasks) error {
	if !m.s.json {
		m.s.noteIDs(m.unseen, "without stdout; --stderr shows the error")
		m.away.note(m.s, "output", "it was")
		m.s.noteIDs(m.cut, "cut ([worker] output_limit, output_max)")
		m.s.noteIDs(m.dropped, "whose output is kept no longer (keep_rounds)")
	}
	m.s.noteIDs(m.without, map[bool]string{true: "not run yet", false: "without this round"}[m.round < 0])
	if err := w.tell(ctx, m.n+len(m.without)); err != nil {
		return err
	}
	if len(m.without)+len(w.missing) > 0 {
		return cli.Exit(cli.ExitTaskFailed)
	}
	return nil
}
