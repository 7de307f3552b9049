package why

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// running explains a task that a worker holds.
func (s *Situation) running() Explanation {
	t := &s.Task
	text := fmt.Sprintf("runs in round %d on worker %s%s%s", t.Round, orUnknown(t.Worker), on(t.Node), since(s.Now, t.Current.Running))
	found := Explanation{{Kind: KindRunning, Text: text}}
	if t.StopAsked {
		found = append(found, s.stopped("its worker is told to stop it"))
	}
	found = append(found, s.holder())
	if end := t.RoundEnd(0); end != statemachine.Never {
		found = append(found, Reason{Kind: KindTimeout, Text: s.over("timeout", end, t.RoundEnd(s.Grace))})
	}
	if t.EndBefore != statemachine.Never {
		found = append(found, Reason{Kind: KindLate, Text: s.over("end_before", t.EndBefore, t.EndBefore)})
	}
	return found
}

func orUnknown(name string) string {
	if name == "" {
		return "(unknown)"
	}
	return name
}

// over says when a limit of the round ends it, or that a server should have.
func (s *Situation) over(what string, end, acts statemachine.Time) string {
	switch {
	case s.Now <= end:
		return fmt.Sprintf("its %s ends the round in %s, at %s", what, span(end.Sub(s.Now)), moment(end))
	case s.Now <= acts:
		return fmt.Sprintf("its %s is over since %s; servers leave it to its worker for another %s",
			what, span(s.Now.Sub(end)), span(acts.Sub(s.Now)))
	case s.leased():
		return fmt.Sprintf("its %s is over since %s; servers tell its worker to end the round, and move the task when that has, "+
			"or when its lease is over", what, span(s.Now.Sub(end)))
	default:
		return fmt.Sprintf("its %s is over since %s; the next server to look ends the round", what, span(s.Now.Sub(end)))
	}
}

// leased reports whether a live worker has the task. Then the worker ends the round, not a server.
func (s *Situation) leased() bool {
	return slices.ContainsFunc(s.Workers, func(w Worker) bool { return w.Worker == s.Task.Worker && w.Alive() })
}

// holder says how the worker is that holds the task.
func (s *Situation) holder() Reason {
	i := slices.IndexFunc(s.Workers, func(w Worker) bool { return w.Worker == s.Task.Worker })
	if i < 0 {
		return Reason{Kind: KindSilent, Text: "its worker is not registered: only its timeout and end_before bring it back"}
	}
	w := &s.Workers[i]
	text := fmt.Sprintf("its worker is %s%s", w.State, heard(s.Now, w.Heartbeat))
	if w.Alive() {
		return Reason{Kind: KindServed, Text: text}
	}
	return Reason{Kind: KindSilent, Text: text + "; a server gives the task to another"}
}

// stopped says that a stop was asked for.
func (s *Situation) stopped(so string) Reason {
	t := &s.Task
	text := "a stop was asked for" + by(t.CancelledBy) + since(s.Now, t.StopSince) + saying(t.CancelReason) + "; " + so
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
