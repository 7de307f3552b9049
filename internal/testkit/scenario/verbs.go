package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

// verbs are the commands of a story.
var verbs = map[string]func(*play, *args) (string, error){
	"open":         (*play).open,
	"claim":        (*play).claim,
	"report":       (*play).report,
	"stop-overdue": byWorker(sm.StopOverdue),
	"hand-back":    byWorker(sm.HandBack),
	"terminate":    byWorker(sm.Terminate),
	"heartbeat":    (*play).heartbeat,
	"deadline":     byClerk(sm.Server, sm.Deadline),
	"settle":       byClerk(sm.Server, sm.Settle),
	"lose":         byClerk(sm.Server, sm.Lose),
	"take-back":    byClerk(sm.Worker, sm.Lose),
	"archive":      byClerk(sm.Manager, sm.Archive),
	"hold":         byClerk(sm.Manager, sm.Hold),
	"unblock":      byClerk(sm.Manager, sm.Unblock),
	"cancel":       byClerk(sm.Manager, sm.Cancel),
	"read":         (*play).read,
	"repeat":       (*play).repeat,
	"try":          (*play).try,
	"advance":      (*play).advance,
	"show":         func(p *play, a *args) (string, error) { return withID(a, 0, p.show) },
}

func (p *play) open(a *args) (string, error) {
	spec, err := a.spec(p.begin)
	if err != nil {
		return "", err
	}
	id, err := p.world.Open(spec)
	if err != nil {
		return "", err
	}
	p.tasks = max(p.tasks, id)
	return fmt.Sprintf("opened task %d", id), nil
}

func (p *play) claim(a *args) (string, error) {
	name, err := a.word(0)
	if err != nil {
		return "", err
	}
	p.claims++
	request := fmt.Sprintf("%s-%d", name, p.claims)
	send := func(said string) (string, error) {
		t, ok, err := p.world.Claim(name, request)
		if err != nil || !ok {
			return "nothing to claim", err
		}
		if p.held[name] == nil {
			p.held[name] = map[int64]sm.Task{}
		}
		p.held[name][t.ID] = t
		return fmt.Sprintf("%s %s task %d, round %d", name, said, t.ID, t.Round), nil
	}
	p.again[name] = func() (string, error) { return send("claims again") }
	return send("claims")
}

func (p *play) report(a *args) (string, error) {
	result, err := a.word(2)
	if err != nil || result != "ok" && result != "error" {
		return "", errors.New("want ok or error")
	}
	return p.close(a, sm.Occurrence{Event: sm.Report, Failed: result == "error"})
}

func byWorker(e sm.Event) func(*play, *args) (string, error) {
	return func(p *play, a *args) (string, error) { return p.close(a, sm.Occurrence{Event: e}) }
}

// close is a worker ending the round it was given.
func (p *play) close(a *args, o sm.Occurrence) (string, error) {
	name, err := a.word(0)
	if err != nil {
		return "", err
	}
	return withID(a, 1, func(id int64) (string, error) {
		t, ok := p.held[name][id]
		if !ok {
			return "", fmt.Errorf("%s was never given task %d", name, id)
		}
		o, err := a.occurrence(o)
		if err != nil {
			return "", err
		}
		o.Actor, o.Claim, o.Round = sm.Worker, t.Current.Claim, t.Round
		return p.decide(name, &t, o)
	})
}

// heartbeat is a worker learning whether a stop was asked for the task it holds.
func (p *play) heartbeat(a *args) (string, error) {
	name, err := a.word(0)
	if err != nil {
		return "", err
	}
	return withID(a, 1, func(id int64) (string, error) {
		mine, ok := p.held[name][id]
		if !ok {
			return "", fmt.Errorf("%s was never given task %d", name, id)
		}
		t, err := p.world.Read(id)
		switch {
		case err != nil:
			return "", err
		case t.State != sm.Running || t.Current.Claim != mine.Current.Claim:
			return fmt.Sprintf("%s no longer holds task %d", name, id), nil
		case !t.StopAsked:
			return fmt.Sprintf("%s goes on with task %d", name, id), nil
		}
		mine.StopAsked = true
		p.held[name][id] = mine
		return fmt.Sprintf("%s is asked to stop task %d", name, id), nil
	})
}

// byClerk is a server or a manager deciding from what it reads, or has read.
func byClerk(actor sm.Actor, e sm.Event) func(*play, *args) (string, error) {
	return func(p *play, a *args) (string, error) {
		o, err := a.occurrence(sm.Occurrence{Event: e, Actor: actor})
		if err != nil {
			return "", err
		}
		return withID(a, 0, func(id int64) (string, error) {
			name := string(actor)
			if by := a.options["by"]; by != "" {
				name = by
			}
			t, ok := p.seen[name][id]
			if delete(p.seen[name], id); !ok {
				if t, err = p.world.Read(id); err != nil {
					return "", err
				}
			}
			return p.decide(name, &t, o)
		})
	}
}

func (p *play) read(a *args) (string, error) {
	name, err := a.word(0)
	if err != nil {
		return "", err
	}
	return withID(a, 1, func(id int64) (string, error) {
		t, err := p.world.Read(id)
		if p.seen[name] == nil {
			p.seen[name] = map[int64]sm.Task{}
		}
		p.seen[name][id] = t
		return fmt.Sprintf("%s reads task %d: %s, round %d", name, id, t.State, t.Round), err
	})
}

func (p *play) repeat(a *args) (string, error) {
	name, err := a.word(0)
	if err != nil {
		return "", err
	}
	if p.again[name] == nil {
		return "", fmt.Errorf("%s has sent nothing", name)
	}
	return p.again[name]()
}

// try is any event by any kind of actor. A worker speaks under the claim that
// the task has, so that it is the table that refuses.
func (p *play) try(a *args) (string, error) {
	actor, err := a.word(0)
	if err != nil {
		return "", err
	}
	event, err := a.word(1)
	if err != nil {
		return "", err
	}
	if !slices.Contains(sm.Actors(), sm.Actor(actor)) || !slices.Contains(sm.Events(), sm.Event(event)) {
		return "", errors.New("no such actor or event")
	}
	return withID(a, 2, func(id int64) (string, error) {
		t, err := p.world.Read(id)
		if err != nil {
			return "", err
		}
		o := sm.Occurrence{Event: sm.Event(event), Actor: sm.Actor(actor), Claim: t.Current.Claim, Round: t.Round}
		return p.decide(actor, &t, o)
	})
}

func (p *play) advance(a *args) (string, error) {
	text, err := a.word(0)
	if err != nil {
		return "", err
	}
	d, err := duration(text)
	if err != nil {
		return "", err
	}
	return "", p.world.Advance(d)
}

// withID calls f with the id that stands at place i.
func withID(a *args, i int, f func(int64) (string, error)) (string, error) {
	text, err := a.word(i)
	if err != nil {
		return "", err
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", fmt.Errorf("%q is no task id", text)
	}
	return f(id)
}

// args are the words after a command, and its options of the form name=value.
type args struct {
	words   []string
	options map[string]string
}

// options are all that some command other than open understands.
var options = []string{"class", "exit_code", "excused", "random", "grace", "by"}

func parseArgs(words []string) (*args, error) {
	a := &args{options: map[string]string{}}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			a.words = append(a.words, w)
			continue
		}
		if _, ok := specs[name]; !ok && !slices.Contains(options, name) {
			return nil, fmt.Errorf("no such option: %s", name)
		}
		a.options[name] = value
	}
	return a, nil
}

func (a *args) word(i int) (string, error) {
	if i >= len(a.words) {
		return "", fmt.Errorf("want at least %d words", i+1)
	}
	return a.words[i], nil
}

// duration reads an option; without it, it is 0.
func (a *args) duration(name string) (sm.Duration, error) {
	text, ok := a.options[name]
	if !ok {
		return 0, nil
	}
	return duration(text)
}

func duration(text string) (sm.Duration, error) {
	if text == sm.Forever.Text() {
		return sm.Forever, nil
	}
	d, err := time.ParseDuration(text)
	return sm.Duration(d.Microseconds()), err
}

// yes reads an option that is "yes" or absent.
func (a *args) yes(name string) (bool, error) {
	text, ok := a.options[name]
	if ok && text != "yes" {
		return false, fmt.Errorf("%s: want yes", name)
	}
	return ok, nil
}

// occurrence reads what a command says of o beside who, what and whose.
func (a *args) occurrence(o sm.Occurrence) (sm.Occurrence, error) {
	var graceErr, excusedErr, randomErr, exitErr error
	o.Class = sm.Class(a.options["class"])
	o.Grace, graceErr = a.duration("grace")
	o.Excused, excusedErr = a.yes("excused")
	if text, ok := a.options["random"]; ok {
		o.Random, randomErr = strconv.ParseFloat(text, 64)
	}
	if text, ok := a.options["exit_code"]; ok {
		o.HasExit = true
		o.ExitCode, exitErr = strconv.Atoi(text)
	}
	return o, errors.Join(graceErr, excusedErr, randomErr, exitErr)
}

// specs are the options of open: each reads one text into a task. Times count
// from the beginning of the story.
var specs = map[string]func(t *sm.Task, text string, begin sm.Time) error{
	"start_after":      func(t *sm.Task, s string, begin sm.Time) error { return moment(&t.StartAfter, s, begin) },
	"end_before":       func(t *sm.Task, s string, begin sm.Time) error { return moment(&t.EndBefore, s, begin) },
	"timeout":          func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Timeout, s, duration) },
	"held":             held,
	"max_fails":        func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxFails, s, sm.ParseLimit) },
	"max_timeouts":     func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxTimeouts, s, sm.ParseLimit) },
	"max_losses":       func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxLosses, s, sm.ParseLimit) },
	"max_faults":       func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxFaults, s, sm.ParseLimit) },
	"charge":           charge,
	"retry_delay":      func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Delay, s, duration) },
	"retry_max_delay":  func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Max, s, duration) },
	"retry_backoff":    func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Factor, s, number) },
	"retry_jitter":     func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Jitter, s, number) },
	"retry_exit_codes": func(t *sm.Task, s string, _ sm.Time) error { return read(&t.RetryCodes, s, codes) },
	"fatal_exit_codes": func(t *sm.Task, s string, _ sm.Time) error { return read(&t.FatalCodes, s, codes) },
}

// spec reads the options of open.
func (a *args) spec(begin sm.Time) (sm.Task, error) {
	t := sm.Task{
		EndBefore: sm.Never, Timeout: sm.Forever,
		MaxLosses: sm.DefaultMaxLosses, MaxFaults: sm.DefaultMaxFaults,
	}
	for name, text := range a.options {
		set, ok := specs[name]
		if !ok {
			return t, fmt.Errorf("open knows no option %s", name)
		}
		if err := set(&t, text, begin); err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, nil
}

func read[T any](to *T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	*to = v
	return err
}

func moment(to *sm.Time, text string, begin sm.Time) error {
	d, err := duration(text)
	*to = begin.Add(d)
	return err
}

func held(t *sm.Task, text string, _ sm.Time) error {
	if text != "yes" {
		return errors.New("want yes")
	}
	t.State = sm.Blocked
	return nil
}

func charge(t *sm.Task, text string, _ sm.Time) error {
	if text != "program" {
		return errors.New("want program")
	}
	t.ChargeProgram = true
	return nil
}

func number(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func codes(text string) ([]int, error) {
	var all []int
	for word := range strings.SplitSeq(text, ",") {
		code, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		all = append(all, code)
	}
	return all, nil
}
