package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// name is how the task is called.
func (s *Situation) name() string { return strconv.FormatInt(s.Task.ID, 10) }

// open explains an open task.
func (s *Situation) open() Explanation {
	reasons := s.timely()
	if len(reasons) == 0 {
		if taker := s.taker(); taker != nil {
			return Explanation{s.claimable(taker)}
		}
	}
	return append(reasons, s.hindered()...)
}

// recent is for how long a step of the clock of Redis is named.
const recent = 3600 * statemachine.Second

// stepped names a step of the clock of Redis, of which people may wonder at the times.
func (s *Situation) stepped() Explanation {
	if s.Stepped == 0 || s.Now.Sub(s.Stepped) > recent && s.Ahead < statemachine.Second {
		return nil
	}
	way := "forward"
	if s.StepBy < 0 {
		way = "back"
	}
	text := fmt.Sprintf("the clock of Redis stepped %s by %s, %s ago", way, span(max(s.StepBy, -s.StepBy)), span(s.Now.Sub(s.Stepped)))
	if s.Ahead > 0 {
		text += fmt.Sprintf("; stamps are %s ahead of it, start_after and end_before mean what it shows", span(s.Ahead))
	}
	return Explanation{{Kind: KindClock, Text: text}}
}

// timely finds why the task could not even be claimed if every worker were free.
func (s *Situation) timely() Explanation {
	var found Explanation
	t := &s.Task
	add := func(kind Kind, change Remedy, format string, args ...any) {
		found = append(found, Reason{Kind: kind, Text: fmt.Sprintf(format, args...), Blocks: true, Change: change})
	}
	if t.Unlisted {
		add(KindUnlisted, Remedy{Object: ObjectTask, Name: s.name(), Attribute: AttrListed, Value: "true"},
			"another client opened it, and no server has taken it over yet: is one running?")
	}
	wait := func(until statemachine.Time) Remedy {
		return Remedy{Object: ObjectTime, Attribute: AttrNow, Value: until.Text()}
	}
	if redis := s.redis(); t.StartAfter > redis {
		add(KindStart, wait(t.StartAfter), "not due until %s, in %s", moment(t.StartAfter), span(t.StartAfter.Sub(redis)))
	}
	if t.NotBefore > s.Now {
		add(KindBackoff, wait(t.NotBefore), "rests until %s, in %s%s", moment(t.NotBefore), span(t.NotBefore.Sub(s.Now)), s.lastEnd())
	}
	if s.At().Add(-s.Ahead) > t.EndBefore {
		change := Remedy{Object: ObjectTask, Name: s.name(), Attribute: AttrEndBefore, Value: statemachine.Never.Text()}
		if redis := s.redis(); redis > t.EndBefore {
			add(KindLate, change, "its end_before was %s, %s ago: a server will end it as expired",
				moment(t.EndBefore), span(redis.Sub(t.EndBefore)))
		} else {
			add(KindLate, change, "its end_before is %s, before it may start: it will expire", moment(t.EndBefore))
		}
	}
	return found
}

// lastEnd says how the last round ended.
func (s *Situation) lastEnd() string {
	if len(s.Task.Rounds) == 0 {
		return ""
	}
	return " after " + s.Task.Rounds[len(s.Task.Rounds)-1].text()
}

// taker is a worker whose claim would get the task now.
func (s *Situation) taker() *Worker {
	for i := range s.Workers {
		if s.claimedBy(&s.Workers[i]) {
			return &s.Workers[i]
		}
	}
	return nil
}

func (s *Situation) claimable(w *Worker) Reason {
	text := fmt.Sprintf("nothing is in the way: the next claim of worker %s on %s gets it (%s)", w.Worker, w.Node,
		things(int64(w.Free()), "free slot", "free slots"))
	return Reason{Kind: KindClaimable, Text: text}
}

// hindered finds what keeps the nearest worker from the task, and what the
// others lack that fit it.
func (s *Situation) hindered() Explanation {
	all := s.candidates()
	nearest := all[0]
	reasons := slices.Clone(nearest.reasons)
	switch {
	case len(reasons) == 0:
		reasons = Explanation{s.claimable(&nearest.worker)}
	case len(s.alive()) == 0 && reasons[0].Kind == KindAway:
		reasons[0].Kind = KindNoWorker
		reasons[0].Text = "no worker is alive; " + reasons[0].Text
	}
	return append(reasons, others(nearest, all[1:])...)
}

// candidates are all workers there are, and new ones, the nearest first.
func (s *Situation) candidates() []*candidate {
	all := make([]*candidate, 0, len(s.Workers)+1)
	for i := range s.Workers {
		all = append(all, s.examine(&s.Workers[i]))
	}
	pin := s.queue(s.Task.Bucket.QueueName()).Pin
	for _, node := range pin {
		all = append(all, s.newcomer(node))
	}
	if len(pin) == 0 {
		all = append(all, s.newcomer(""))
	}
	slices.SortStableFunc(all, func(x, y *candidate) int { return cmp.Compare(x.cost, y.cost) })
	return all
}

// mostOthers is how many workers are told of beside the nearest.
const mostOthers = 8

// others says what hinders other live workers that fit the task, as far as it is
// not said already.
func others(nearest *candidate, all []*candidate) Explanation {
	said := map[string]bool{}
	for _, r := range nearest.reasons {
		said[r.Text] = true
	}
	var found Explanation
	for _, c := range all {
		if c.static || c.cost >= costAway || len(found) == mostOthers {
			continue
		}
		i := slices.IndexFunc(c.reasons, func(r Reason) bool { return !said[r.Text] })
		if i < 0 || c.reasons[i].Kind == KindLine {
			continue
		}
		said[c.reasons[i].Text] = true
		found = append(found, Reason{Kind: KindOther, Text: "also " + c.reasons[i].Text})
	}
	return found
}
