package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// running explains a task that a worker holds.
func (s *Situation) running() Explanation {
	t := &s.Task
	text := fmt.Sprintf("runs in round %d on worker %s", t.Round, cmp.Or(t.Worker, "(unknown)"))
	text += with(" on node ", t.Node) + since(s.Now, t.Current.Running)
	found := Explanation{{Kind: KindRunning, Text: text}}
	if t.StopAsked {
		found = append(found, s.stopped("its worker is told to stop it"))
	}
	found = append(found, s.servedBy())
	if end := t.RoundEnd(0); end != statemachine.Never {
		found = append(found, Reason{Kind: KindTimeout, Text: s.limit("timeout", end, t.RoundEnd(s.Grace))})
	}
	if t.EndBefore != statemachine.Never {
		found = append(found, Reason{Kind: KindLate, Text: s.limit("end_before", t.EndBefore, t.EndBefore)})
	}
	return found
}

// limit says when a limit of the round ends it, or that a server should have.
func (s *Situation) limit(what string, end, acts statemachine.Time) string {
	switch {
	case s.Now <= end:
		return fmt.Sprintf("its %s ends the round in %s, at %s", what, span(end.Sub(s.Now)), moment(end))
	case s.Now <= acts:
		return fmt.Sprintf("its %s is over since %s; servers leave it to its worker for another %s",
			what, span(s.Now.Sub(end)), span(acts.Sub(s.Now)))
	case s.holder() != nil && s.holder().State.Alive(): // that ends the round, not a server
		return fmt.Sprintf("its %s is over since %s; servers tell its worker to end the round, and move the task when that has, "+
			"or when its lease is over", what, span(s.Now.Sub(end)))
	default:
		return fmt.Sprintf("its %s is over since %s; the next server to look ends the round", what, span(s.Now.Sub(end)))
	}
}

// holder is the worker that holds the task; nil if there is no such worker.
func (s *Situation) holder() *task.Worker {
	if i := slices.IndexFunc(s.Workers, func(w task.Worker) bool { return w.Name == s.Task.Worker }); i >= 0 {
		return &s.Workers[i]
	}
	return nil
}

// servedBy says how the worker is that holds the task.
func (s *Situation) servedBy() Reason {
	w := s.holder()
	if w == nil {
		return Reason{Kind: KindSilent, Text: "its worker is not registered: only its timeout and end_before bring it back"}
	}
	text := fmt.Sprintf("its worker is %s%s", w.State, heard(s.Now, w.Heartbeat))
	if w.State.Alive() {
		return Reason{Kind: KindServed, Text: text}
	}
	return Reason{Kind: KindSilent, Text: text + "; a server gives the task to another"}
}

// stopped says that a stop was asked for.
func (s *Situation) stopped(so string) Reason {
	r := &s.Record
	text := "a stop was asked for" + s.cancelled() + since(s.Now, task.Stamp(r.CancelRequested)) + with(": ", r.CancelReason) + "; " + so
	return Reason{Kind: KindStop, Text: text}
}

// executed explains a task that waits for a server.
func (s *Situation) executed() Explanation {
	t := &s.Task
	text := "round " + strconv.Itoa(t.Round) + " was reported" + since(s.Now, t.Current.Executed) + " and waits for a server to settle it"
	found := Explanation{{Kind: KindServer, Text: text + s.server()}}
	if t.StopAsked {
		found = append(found, s.stopped("it is not opened again"))
	}
	return found
}

// server says whether one seems to be there.
func (s *Situation) server() string {
	if s.ServerSeen == 0 {
		return ": is one running?"
	}
	return "; one was last seen " + span(max(0, s.Now.Sub(s.ServerSeen))) + " ago"
}

// ended explains a task that came to an outcome.
func (s *Situation) ended() Explanation {
	t := &s.Task
	found := Explanation{{Kind: KindOutcome, Text: string(t.End()) + with(": ", s.outcome())}}
	if t.End() == statemachine.Cancelled && s.Record.DoomedBy != 0 {
		found = append(found, s.cause())
	}
	if r := lastEnded(&s.Record); r != nil && t.End() != statemachine.Succeeded {
		found = append(found, Reason{Kind: KindRound, Text: "the last round that ended: " + roundText(r)})
	}
	if s.Record.OnStderr() {
		text := "its program ended with exit status 0, but wrote to stderr, which failed it"
		found = append(found, Reason{Kind: KindStderr, Text: text, Change: s.onTask(AttrFailOn, task.FailOnExit)})
	}
	if t.StopAsked && t.End() != statemachine.Terminated && t.End() != statemachine.Cancelled {
		found = append(found, s.stopped("so it was not opened again"))
	}
	if id := s.Record.RetriedBy; id != 0 {
		found = append(found, Reason{Kind: KindRetried, Text: fmt.Sprintf("task %d repeats it", id)})
	}
	if id := s.Record.RetryOf; id != 0 {
		found = append(found, Reason{Kind: KindRetried, Text: fmt.Sprintf("it repeated task %d", id)})
	}
	text := "no manager has archived it yet"
	if t.State == statemachine.Archived {
		text = "archived" + since(s.Now, s.entered())
	}
	return append(found, Reason{Kind: KindArchived, Text: text})
}

// outcome says by which rule the task ended so.
func (s *Situation) outcome() string {
	t := &s.Task
	switch t.End() {
	case statemachine.Succeeded:
		return fmt.Sprintf("round %d ended without an error", t.Round)
	case statemachine.Failed:
		return s.failure()
	case statemachine.TimedOut:
		return s.tooOften(statemachine.Timeouts, "its round took longer than its timeout of "+span(t.Timeout))
	case statemachine.Orphaned:
		return s.tooOften(statemachine.Losses, "it lost its worker")
	case statemachine.Expired:
		return s.expiry()
	case statemachine.Cancelled, statemachine.Terminated:
		if s.Record.DoomedBy != 0 && t.End() == statemachine.Cancelled {
			return s.verdict()
		}
		return "called off" + s.cancelled() + with(": ", s.Record.CancelReason)
	default:
		return ""
	}
}

// failure says why a failed task was not opened again.
func (s *Situation) failure() string {
	t := &s.Task
	r := &t.Current
	switch {
	case t.StopAsked:
		return "its round failed, and a stop had been asked for"
	case s.over(statemachine.Faults):
		return s.tooOften(statemachine.Faults, "it failed without being to blame")
	case s.over(statemachine.Fails):
		return s.tooOften(statemachine.Fails, "it failed")
	case r.Retry == statemachine.Never:
		return "its handler said that another try would not mend it"
	case r.HasExit && slices.Contains(t.FatalCodes, r.ExitCode):
		return fmt.Sprintf("exit code %d is among its fatal_exit_codes", r.ExitCode)
	case r.HasExit && len(t.RetryCodes) > 0 && !slices.Contains(t.RetryCodes, r.ExitCode):
		return fmt.Sprintf("exit code %d is not among its retry_exit_codes", r.ExitCode)
	default:
		return s.tooOften(statemachine.Fails, "it failed")
	}
}

// over says that a counter has gone beyond its limit.
func (s *Situation) over(c statemachine.Counter) bool {
	return statemachine.Limit(s.Task.Counted(c)) > s.Task.Limit(c)
}

// tooOften says what happened, how often, and how often it might.
func (s *Situation) tooOften(c statemachine.Counter, what string) string {
	t := &s.Task
	if t.StopAsked && !s.over(c) {
		return what + ", and a stop had been asked for"
	}
	return fmt.Sprintf("%s %s, max_%s = %s", what, things(int64(t.Counted(c)), "time", "times"), c, t.Limit(c).Text())
}

// expiry says by how much the task was late.
func (s *Situation) expiry() string {
	t := &s.Task
	end := "its end_before was " + moment(t.EndBefore)
	switch {
	case t.Current.Executed > t.EndBefore:
		return fmt.Sprintf("round %d was executed %s late: %s", t.Round, span(t.Current.Executed.Sub(t.EndBefore)), end)
	case t.Current.Running != 0:
		return fmt.Sprintf("round %d, which began %s, was still running: %s", t.Round, moment(t.Current.Running), end)
	case t.Round == 0:
		return "no worker took it in time: " + end
	default:
		return fmt.Sprintf("no worker took round %d in time: %s", t.Round, end)
	}
}

// roundText tells of a round that has ended.
func roundText(r *task.Round) string {
	text := "round " + strconv.Itoa(r.Number)
	text += with(" of worker ", r.Worker) + with(" on node ", r.Node)
	switch {
	case !r.Stamps[statemachine.StampTimeout].IsZero():
		text += " timed out"
	case r.Class == statemachine.ClassHandler:
		return text + " was handed back: no handler for the program"
	case r.Class == statemachine.ClassFetch && r.Error == "":
		return text + " was handed back: it lacked the version of the program"
	case r.Error != "" || r.Class != "":
		text += " failed"
	case r.Stamps[string(statemachine.Executed)].IsZero():
		text += " was not reported"
	default: // it went well, or nobody said
	}
	text += with(", class ", string(r.Class))
	if r.ExitCode != nil {
		text += ", exit code " + strconv.Itoa(*r.ExitCode)
	}
	return text + with(": ", excerpt(r.Error))
}

// mostSaid is how much of a line of an error stands in a reason, in bytes.
const mostSaid = 200

// excerpt is an error in one line: its first line that is not empty and, since the cause often stands in that one, its last.
func excerpt(text string) string {
	lines := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' })
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
	for i, line := range lines {
		lines[i] = short(strings.TrimSpace(line))
	}
	if n := len(lines); n > 2 {
		lines = []string{lines[0], "...", lines[n-1]}
	}
	return strings.Join(lines, " ")
}

// short cuts a line that is too long for a reason.
func short(line string) string {
	if len(line) > mostSaid {
		line = strings.ToValidUTF8(line[:mostSaid], "") + " ..."
	}
	return line
}
