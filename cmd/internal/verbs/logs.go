package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// output is the verb logs with its flags.
type output struct {
	round     int
	stderr    bool
	following bool
}

func (a *app) logs() *cobra.Command {
	o := &output{}
	cmd := withJSON(&cobra.Command{
		Use: "logs ID", Short: "Write the output of a round of a task, byte for byte",
		Long: "logs writes the stdout of a task's last round. On a terminal control characters are escaped; into a\n" +
			"file or a pipe every byte is written unchanged.\n\n" +
			"With --follow it writes the output while the program runs, on any host. It waits for a task that has\n" +
			"not begun, continues with the next round, and ends with the task. If a program writes faster than\n" +
			"its output can be sent, a line says how much was left out.",
		Example: "  tdf-manager logs 7\n  tdf-manager logs 7 --stderr --round 0\n  tdf-manager logs -f 7",
		Args:    cobra.ExactArgs(1),
	})
	read, follow := a.withTask(archiveFlag(cmd), o.do), a.withManager(o.follow)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("round") && o.round < 0 {
			return cli.Usagef("--round %d is negative; rounds count from 0", o.round)
		}
		if o.following {
			return follow(cmd, args)
		}
		return read(cmd, args)
	}
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
		s.warn(droppedText, r.Number, t.ID)
	}
	return s.result(written{t.ID, r.Number, r.Output, r.Error, r.Stderr, r.Dropped}, func() {
		text := r.Output
		if o.stderr {
			text = cmp.Or(r.Error, r.Stderr)
		}
		if cli.IsTerminal(s.cmd.OutOrStdout()) {
			text = cli.SafeLines(text)
		}
		s.printf("%s", text)
	})
}

// pick finds the round asked for.
func (o *output) pick(t *task.Task) (*task.Round, error) {
	if o.round < 0 {
		if r := t.Last(); r != nil {
			return r, nil
		}
		return nil, fmt.Errorf("task %d has not been run yet (it is %s)", t.ID, t.State)
	}
	for i := range t.Rounds {
		if r := &t.Rounds[i]; r.Number == o.round {
			return r, nil
		}
	}
	return nil, cli.WithCode(cli.ExitUsage,
		fmt.Errorf("task %d has no round %d; it has %d, counted from 0", t.ID, o.round, len(t.Rounds)))
}

// The two streams of a program, by the fields of a round.
const (
	outputStream = "output"
	errorStream  = "error"
)

const droppedText = "what round %d of task %d wrote is kept no longer (keep_rounds)"

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
	// midLine says that the last byte written was not the end of a line.
	midLine bool
}

func (w *liveWriter) take(o *manager.Output) error {
	switch o.News {
	case manager.OutputWaits:
		w.s.warn("round %d of task %d has not begun (the task is %s); waiting", o.Round, w.id, o.State)
	case manager.OutputNotRun:
		w.s.warn("round %d of task %d did not run", o.Round, w.id)
	case manager.OutputDropped:
		w.s.warn(droppedText, o.Round, w.id)
	case manager.OutputReopened:
		w.s.warn("round %d of task %d is over; the task was opened again", o.Round, w.id)
	case manager.OutputAway:
		w.s.warn("%s; trying again", cli.Safe(o.Err.Error()))
	case manager.OutputBack:
		w.s.warn("redis answers again")
	case manager.OutputOver:
		w.midLine = false
		return w.flush()
	}
	return w.write(o)
}

// write writes a piece. Where something is missing before it, a line says how much.
func (w *liveWriter) write(o *manager.Output) error {
	text := o.Text
	if o.LeftOut > 0 {
		if err := w.flush(); err != nil {
			return err
		}
		text = fmt.Sprintf("[tdf: %d bytes left out]\n", o.LeftOut) + text
		if w.midLine {
			text = "\n" + text
		}
	}
	if text == "" {
		return nil
	}
	w.midLine = text[len(text)-1] != '\n'
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

func (a *app) history() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "history ID", Short: "Show the recorded events of a task", Args: cobra.ExactArgs(1),
		Long: "history prints the events of a task: the time, the number of the change in the namespace, the event,\n" +
			"the states before and after, the round, and who caused it. Redis keeps only the newest events of the\n" +
			"namespace ([server] events), and none of clients in other languages. The log of the task (show) goes\n" +
			"back to its creation.",
		Example: "  tdf-manager history 7\n  tdf-manager history last --json",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			id, err := bulk.ParseID(s.args[0], bulk.Newest(ctx, s.manager))
			if err != nil {
				return err
			}
			h, err := readHistory(ctx, s.store, id)
			if err != nil {
				return err
			}
			return s.result(h, func() { h.print(s.out) })
		}),
	})
}

// taskHistory are the events of one task.
type taskHistory struct {
	ID int64 `json:"id"`
	// From is the number of the oldest change of the namespace that is recorded.
	From   int64         `json:"from"`
	Events []eventObject `json:"events"`
}

// eventObject is an event as it is printed: the time is in seconds, as Redis has it.
type eventObject struct {
	task.Event

	At string `json:"at"`
}

// readHistory goes through all events, since Redis keeps no list for each task.
func readHistory(ctx context.Context, s *store.Store, id int64) (*taskHistory, error) {
	const most = 1000
	h := &taskHistory{ID: id, Events: []eventObject{}}
	for next := int64(0); ; {
		events, err := s.Events(ctx, next, most)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			next = e.Seq + 1
			if h.From == 0 {
				h.From = e.Seq
			}
			if e.ID == id && e.Err == nil { // of others verify tells
				h.Events = append(h.Events, eventObject{e, task.Stamp(e.At).Text()})
			}
		}
		if len(events) < most {
			break
		}
	}
	if len(h.Events) > 0 {
		return h, nil
	}
	_, err := s.Task(ctx, id)
	return h, err
}

func (h *taskHistory) print(out *cli.Output) {
	if len(h.Events) == 0 {
		if h.From == 0 {
			out.Printf("no events are recorded\n")
		} else {
			out.Printf("no events of task %d are recorded, from change %d of the namespace on\n", h.ID, h.From)
		}
		return
	}
	if first := &h.Events[0]; first.Event.Event != statemachine.Create {
		out.Printf("... what came before change %d is not recorded\n", first.Seq)
	}
	for i := range h.Events {
		e := &h.Events[i].Event
		by := string(e.Actor)
		if e.By != "" {
			by += " " + e.By
		}
		out.Printf("%s  #%-8d %-12s %-26s round %d  %s\n",
			moment(task.Stamp(e.At)), e.Seq, cli.Safe(string(e.Event)), stepOf(e), e.Round, cli.Safe(by))
	}
}

// stepOf is where the task went from and to.
func stepOf(e *task.Event) string {
	from, to := e.From, e.To
	if from == statemachine.None {
		from = "-"
	}
	if to == statemachine.None {
		to = "-"
	}
	return cli.Safe(fmt.Sprintf("%s -> %s", from, to))
}
