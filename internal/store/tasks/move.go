package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Commit is a decided move with what goes along with it.
type Commit struct {
	statemachine.Move
	// Writer is the name that stands in the task's log.
	Writer string
	// Bucket is where the task waits if the move opens it, or waited if the move
	// takes it from there. An entry that stays behind does no harm: the next
	// claim that meets it drops it.
	Bucket task.Bucket
	// Lines are put into the task's log before the lines of the move.
	Lines []Line
	// Fields are further hash fields to write, names and values in turn: the
	// record of a round.
	Fields []string
	// Drop are hash fields to delete: what a task keeps no longer of old rounds.
	Drop []string
	// Node says what the move tells of the node of the round, for the judge of
	// nodes: NodeGood, NodeBad, or nothing.
	Node NodeNews
	// Meta are attributes that are set before the move of a worker; see [News].
	Meta map[string]string
	// Cut says that a part of the round's output or files is lost, which its plan or job remembers.
	Cut bool
}

// NodeNews is what the end of a round says of its node.
type NodeNews string

// The news. A round that says neither was ended by somebody else.
const (
	NodeGood NodeNews = "good" // the program succeeded
	NodeBad  NodeNews = "bad"  // it failed, whosever fault it is
)

// Line is a line for a task's log.
type Line struct {
	At   statemachine.Time
	Text string
}

// MaxMoves is the most moves one call of [Tasks.Apply] takes.
const MaxMoves = 1000

// MaxFields is the most texts of one [Commit] in Fields, names and values, and
// the most in Drop. A script cannot pass more than about 8,000 on to a command.
const MaxFields = 4000

// Outcome is what became of one commit.
type Outcome struct {
	ID     int64
	Result statemachine.Result
	// Err is nil unless Result is Refused. Then it matches
	// statemachine.ErrStale, statemachine.ErrConflict (if [Tasks.Take] may not archive it, also [conn.ErrHandled]),
	// statemachine.ErrStopAsked or [task.ErrDamaged].
	Err error
	// Unsettled says of a move that settles that it was made as
	// [statemachine.Move.Unsettled]: a server judges the round.
	Unsettled bool
}

// Apply makes decided moves, each on its own: one that is refused does not
// touch the others. The error is that of the call, also if there are more than
// [MaxMoves] or one is larger than [MaxFields]: then nothing was moved. The
// outcomes are in the order of the commits.
func (s *Tasks) Apply(ctx context.Context, commits ...Commit) ([]Outcome, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	call, err := s.moves(commits)
	if err != nil {
		return nil, err
	}
	v, err := s.Run(ctx, "move", call.Of, call.Args...)
	if err != nil {
		return nil, err
	}
	return s.outcomes(commits, v)
}

// moves is the call that makes the moves.
func (s *Tasks) moves(commits []Commit) (conn.ScriptArgs, error) {
	call, err := s.callOf(commits)
	if err != nil {
		return conn.ScriptArgs{}, err
	}
	args := append([]any{len(commits), len(call.kinds)}, call.args...)
	return conn.ScriptArgs{Name: "move", Of: conn.Subject{More: call.keys}, Args: args}, nil
}

// outcomes reads the answer to that call.
func (s *Tasks) outcomes(commits []Commit, answer any) ([]Outcome, error) {
	r := conn.AsReply(answer)
	if len(commits) == 0 {
		return nil, nil
	}
	if len(r) != len(commits)+1 {
		return nil, fmt.Errorf("move: %d answers for %d moves", len(r)-1, len(commits))
	}
	out := make([]Outcome, len(commits))
	for i := range commits {
		out[i] = moveOutcome(commits[i].ID, r.Number(i))
		s.Memory.Saw(commits[i].ID) // a server may have opened none itself
	}
	return out, nil
}

// movesPage is how many moves one call of [Tasks.ApplyAll] makes: some 2 ms, for which Redis is blocked.
const movesPage = 40

// ApplyAll is [Tasks.Apply] for any number of commits, in calls that do not block Redis for long. With an error it returns the
// outcomes of the calls before it.
func (s *Tasks) ApplyAll(ctx context.Context, commits ...Commit) ([]Outcome, error) {
	all := make([]Outcome, 0, len(commits))
	for page := range slices.Chunk(commits, movesPage) {
		outcomes, err := s.Apply(ctx, page...)
		if err != nil {
			return all, err
		}
		all = append(all, outcomes...)
	}
	return all, nil
}

// check says what of a commit a script cannot take.
func (o *Commit) check() error {
	if o.AskStop {
		return fmt.Errorf("move: task %d: it asks for a stop and moves nothing: want a call of AskStop", o.ID)
	}
	if o.To == statemachine.Archived {
		return fmt.Errorf("move: task %d: it is archived: want a call of Take", o.ID)
	}
	if n := len(o.Fields); n > MaxFields {
		return fmt.Errorf("move: task %d: %d field values in one commit: want at most %d", o.ID, n, MaxFields)
	}
	if n := len(o.Drop); n > MaxFields {
		return fmt.Errorf("move: task %d: %d fields to drop in one commit: want at most %d", o.ID, n, MaxFields)
	}
	return nil
}

// moveOutcome is the one place where the codes of the scripts move, stop, meta, params and take get
// their meaning.
func moveOutcome(id, code int64) Outcome {
	switch code {
	case 1:
		return Outcome{ID: id, Result: statemachine.Moved}
	case 2:
		return Outcome{ID: id, Result: statemachine.Repeated}
	case 3:
		return Outcome{ID: id, Result: statemachine.Moved, Unsettled: true}
	case -1:
		return Outcome{ID: id, Result: statemachine.Refused, Err: fmt.Errorf("task %d: %w", id, statemachine.ErrStale)}
	case -2:
		return Outcome{ID: id, Result: statemachine.Refused, Err: fmt.Errorf("task %d: %w", id, statemachine.ErrConflict)}
	case -4:
		return Outcome{ID: id, Result: statemachine.Refused, Err: fmt.Errorf("task %d: %w", id, statemachine.ErrStopAsked)}
	case -5:
		return Outcome{ID: id, Result: statemachine.Refused, Err: fmt.Errorf("task %d: %w: %w", id, conn.ErrHandled, statemachine.ErrConflict)}
	case -6:
		return Outcome{ID: id, Result: statemachine.Refused, Err: &statemachine.FieldError{
			Field: "meta", Value: fmt.Sprintf("task %d with these attributes", id),
			Want: fmt.Sprintf("a task with at most %d attributes; remove some first", task.MaxMeta),
		}}
	case -7:
		return Outcome{ID: id, Result: statemachine.Refused, Err: fmt.Errorf("task %d: %w", id, task.ErrBegun)}
	default:
		return Outcome{ID: id, Result: statemachine.Refused, Err: &conn.DamageError{ID: id, Reason: "hash is missing or damaged"}}
	}
}

// moveCall is what lib/moves.lua is told: what moves have in common once for each kind, then each move.
type moveCall struct {
	kinds []moveKind
	keys  []string
	args  []any
}

// moveKind is what moves have in common.
type moveKind struct {
	from, to, end statemachine.State
	event         statemachine.Event
	actor         statemachine.Actor
	via           string
	count         statemachine.Counter
	bucket        task.Bucket
	marks, writer string
}

// kindOf returns the kind of a move. Its marks are explained in lib/moves.lua.
func kindOf(o *Commit) moveKind {
	k := moveKind{from: o.From, to: o.To, end: o.End(), event: o.Event, actor: o.Actor, via: o.Via, count: o.Count, writer: o.Writer}
	if o.From == statemachine.Open || o.To == statemachine.Open {
		k.bucket = o.Bucket
	}
	var marks [11]byte
	n := 0
	for _, m := range [...]struct {
		is   bool
		mark byte
	}{
		{o.Fenced, 'f'},
		{o.From == statemachine.Running, 'h'},
		{o.Settles(), 's'},
		{o.NextRound, 'n'},
		{o.To == statemachine.Open, 'o'},
		{o.Deadline != statemachine.Never || o.NotBefore != 0, 't'},
		{len(o.Drop) > 0, 'd'},
		{o.StopAsked || !o.NextRound, 'c'},
		{o.Node == NodeGood, 'g'},
		{o.Node == NodeBad, 'b'},
		{o.Archives, 'a'},
		{o.Cut, 'p'},
	} {
		if m.is {
			marks[n] = m.mark
			n++
		}
	}
	k.marks = string(marks[:n])
	return k
}

// callOf checks the commits and makes keys and arguments of them.
func (s *Tasks) callOf(commits []Commit) (moveCall, error) {
	if len(commits) > MaxMoves {
		return moveCall{}, fmt.Errorf("move: %d moves in one call: want at most %d", len(commits), MaxMoves)
	}
	var c moveCall
	moves := make([]any, 0, argsOf(commits))
	for i := range commits {
		if err := commits[i].check(); err != nil {
			return moveCall{}, err
		}
		moves = commits[i].args(moves, c.index(&commits[i]))
	}
	c.keys = make([]string, 0, 4*len(c.kinds)+len(commits))
	for i := range c.kinds {
		c.add(s.Keys, &c.kinds[i])
	}
	for i := range commits {
		c.keys = append(c.keys, s.Keys.Task(commits[i].ID))
	}
	c.args = append(c.args, moves...)
	return c, nil
}

// argsOf is about how many arguments moves have.
func argsOf(commits []Commit) int {
	n := 12 * len(commits)
	for i := range commits {
		n += len(commits[i].Fields) + len(commits[i].Drop)
	}
	return n
}

// index is that of the kind of a move, from 1. Behind one that settles stands the one that only reports.
func (c *moveCall) index(o *Commit) int {
	k := kindOf(o)
	if i := slices.Index(c.kinds, k); i >= 0 {
		return i + 1
	}
	c.kinds = append(c.kinds, k)
	i := len(c.kinds)
	if o.Settles() {
		plain := *o
		plain.Move = o.Unsettled()
		c.kinds = append(c.kinds, kindOf(&plain))
	}
	return i
}

// add is what the script is told of a kind.
func (c *moveCall) add(keys conn.Keys, k *moveKind) {
	bucket := ""
	c.keys = append(c.keys, keys.State(k.from), keys.State(k.end))
	if k.from == statemachine.Open || k.to == statemachine.Open {
		bucket = k.bucket.Name()
		c.keys = append(c.keys, keys.Ready(bucket), keys.Wake(bucket))
	}
	c.args = append(c.args, string(k.from), string(k.to), string(k.event), string(k.actor), k.via, string(k.count), wakes(k.to), bucket,
		k.marks, writer(k.writer))
}

// args adds what the script is told of a move. What stands in the commit is named by pointers: values would be copied to the heap.
func (o *Commit) args(args []any, kind int) []any {
	fence := any(&o.Rev)
	if o.Fenced {
		fence = &o.Claim
	}
	args = append(args, &o.ID, kind, &o.Round, fence, o.lines())
	if o.Settles() {
		args = append(args, &o.Rev, DeadlineText(o.Until))
	}
	if o.Deadline != statemachine.Never || o.NotBefore != 0 {
		args = append(args, DeadlineText(o.Deadline), RestText(o.NotBefore))
	}
	if len(o.Drop) > 0 {
		args = withTexts(args, o.Drop)
	}
	return withTexts(args, o.Fields)
}

// lines are those for the log, as one text.
func (o *Commit) lines() string {
	if len(o.Lines) == 0 {
		return ""
	}
	texts := make([]string, len(o.Lines))
	for i, l := range o.Lines {
		texts[i] = formatLine(l, o.Writer)
	}
	return strings.Join(texts, "\n")
}

// withTexts adds texts with their number before them, by pointers: a text in an interface would take memory of its own.
func withTexts(args []any, texts []string) []any {
	args = append(args, len(texts))
	for i := range texts {
		args = append(args, &texts[i])
	}
	return args
}

// StateArgs is the number of states and their names.
func StateArgs() []any {
	all := statemachine.States()
	args := make([]any, 0, 1+len(all))
	args = append(args, len(all))
	for _, st := range all {
		args = append(args, string(st))
	}
	return args
}

// wakes says who waits for tasks in that state. A bucket wakes its workers.
func wakes(to statemachine.State) string {
	switch {
	case to == statemachine.Executed:
		return "server"
	case to.IsOutcome():
		return "ended"
	default:
		return ""
	}
}

// RestText is a moment to rest until, empty for none.
func RestText(t statemachine.Time) string {
	if t == 0 {
		return ""
	}
	return t.Text()
}

// DeadlineText is a deadline as records have it, empty for Never.
func DeadlineText(t statemachine.Time) string {
	if t == statemachine.Never {
		return ""
	}
	return t.Text()
}

// AskStop marks tasks as to be stopped, as decided by moves with AskStop, and
// calls the workers that run them, which find them in [Renewal].Stops. The
// outcomes are as those of [Tasks.Apply].
func (s *Tasks) AskStop(ctx context.Context, commits ...Commit) ([]Outcome, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	if len(commits) > MaxMoves {
		return nil, fmt.Errorf("stop: %d tasks in one call: want at most %d", len(commits), MaxMoves)
	}
	of, args := conn.Subject{}, []any{len(commits)}
	for i := range commits {
		o := &commits[i]
		if !o.AskStop {
			return nil, fmt.Errorf("stop: task %d: the move goes to %s, it asks for no stop", o.ID, o.To)
		}
		of.More = append(of.More, s.Keys.Task(o.ID))
		args = append(args, o.ID, string(o.From), o.Round, o.Rev, conn.Flag(o.From == statemachine.Running), len(o.Lines))
		for _, l := range o.Lines {
			args = append(args, formatLine(l, o.Writer))
		}
		args = append(args, len(o.Fields))
		for _, text := range o.Fields {
			args = append(args, text)
		}
	}
	r, err := s.RunList(ctx, "stop", of, args...)
	if err != nil {
		return nil, err
	}
	out := make([]Outcome, len(commits))
	for i := range commits {
		out[i] = moveOutcome(commits[i].ID, r.Number(i))
	}
	return out, nil
}

// TellOverdue tells the workers of rounds that their time is over, which they find in
// [Renewal].Overdue. It changes no task. Told again, a worker hears it again.
func (s *Tasks) TellOverdue(ctx context.Context, rounds ...*TaskHeader) error {
	for part := range slices.Chunk(rounds, MaxMoves) {
		of, args := conn.Subject{}, []any{len(part)}
		for _, t := range part {
			of.More = append(of.More, s.Keys.Task(t.ID))
			args = append(args, t.ID, string(t.State), t.Round, t.Rev, "d", 0, 0)
		}
		if _, err := s.Run(ctx, "stop", of, args...); err != nil {
			return err
		}
	}
	return nil
}

func formatLine(l Line, name string) string {
	text := make([]byte, 0, len(time.DateTime)+len(" - ")+max(10, len(name))+1+len(l.Text))
	text = time.UnixMicro(int64(l.At)).UTC().AppendFormat(text, time.DateTime)
	text = append(append(text, " - "...), writer(name)...)
	return string(append(append(text, ' '), l.Text...))
}

// evidenceTTL is for how many seconds evidence is gathered before it begins anew.
const evidenceTTL = "3600"
