package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

// verb is a command of a story.
type verb struct {
	// words is how many follow it, id the place of the task's id among them, -1 for none.
	words, id int
	do        func(*play, *args) (string, error)
}

var verbs = map[string]verb{
	"open":         {0, -1, (*play).open},
	"claim":        {1, -1, (*play).claim},
	"report":       {3, 1, (*play).report},
	"stop-overdue": {2, 1, byWorker(sm.StopOverdue)},
	"hand-back":    {2, 1, byWorker(sm.HandBack)},
	"terminate":    {2, 1, byWorker(sm.Terminate)},
	"heartbeat":    {2, 1, (*play).heartbeat},
	"deadline":     {1, 0, byClerk(sm.Server, sm.Deadline)},
	"settle":       {1, 0, byClerk(sm.Server, sm.Settle)},
	"lose":         {1, 0, byClerk(sm.Server, sm.Lose)},
	"take-back":    {1, 0, byClerk(sm.Worker, sm.Lose)},
	"archive":      {1, 0, byClerk(sm.Manager, sm.Archive)},
	"hold":         {1, 0, byClerk(sm.Manager, sm.Hold)},
	"unblock":      {1, 0, byClerk(sm.Manager, sm.Unblock)},
	"cancel":       {1, 0, byClerk(sm.Manager, sm.Cancel)},
	"read":         {2, 1, (*play).read},
	"repeat":       {1, -1, (*play).repeat},
	"try":          {3, 2, (*play).try},
	"advance":      {1, -1, (*play).advance},
	"show":         {1, 0, func(p *play, a *args) (string, error) { return p.show(a.id) }},
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
	p.claims++
	name := a.words[0]
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
	result := a.words[2]
	if result != "ok" && result != "error" {
		return "", errors.New("want ok or error")
	}
	return p.close(a, sm.Occurrence{Event: sm.Report, Failed: result == "error"})
}

func byWorker(e sm.Event) func(*play, *args) (string, error) {
	return func(p *play, a *args) (string, error) { return p.close(a, sm.Occurrence{Event: e}) }
}

// close is a worker ending the round it was given.
func (p *play) close(a *args, o sm.Occurrence) (string, error) {
	t, err := p.given(a)
	if err != nil {
		return "", err
	}
	if o, err = p.occurrence(a, o); err != nil {
		return "", err
	}
	o.Actor, o.Claim, o.Round = sm.Worker, t.Current.Claim, t.Round
	late, err := a.duration("late")
	if err != nil {
		return "", err
	}
	return p.decide(a.words[0], &t, o, late)
}

// given is the task as the worker was told of it.
func (p *play) given(a *args) (sm.Task, error) {
	t, ok := p.held[a.words[0]][a.id]
	if !ok {
		return t, fmt.Errorf("%s was never given task %d", a.words[0], a.id)
	}
	return t, nil
}

// heartbeat is a worker learning whether a stop was asked for the task it holds.
func (p *play) heartbeat(a *args) (string, error) {
	mine, err := p.given(a)
	if err != nil {
		return "", err
	}
	name := a.words[0]
	t, err := p.world.Read(a.id)
	switch {
	case err != nil:
		return "", err
	case t.State != sm.Running || t.Current.Claim != mine.Current.Claim:
		return fmt.Sprintf("%s no longer holds task %d", name, a.id), nil
	case !t.StopAsked:
		return fmt.Sprintf("%s goes on with task %d", name, a.id), nil
	}
	mine.StopAsked = true
	p.held[name][a.id] = mine
	return fmt.Sprintf("%s is asked to stop task %d", name, a.id), nil
}

// byClerk is a server or a manager deciding from what it reads, or has read.
func byClerk(actor sm.Actor, e sm.Event) func(*play, *args) (string, error) {
	return func(p *play, a *args) (string, error) {
		o, err := p.occurrence(a, sm.Occurrence{Event: e, Actor: actor})
		if err != nil {
			return "", err
		}
		name := cmp.Or(a.options["by"], string(actor))
		t, ok := p.seen[name][a.id]
		if delete(p.seen[name], a.id); !ok {
			if t, err = p.world.Read(a.id); err != nil {
				return "", err
			}
		}
		return p.decide(name, &t, o, 0)
	}
}

func (p *play) read(a *args) (string, error) {
	name := a.words[0]
	t, err := p.world.Read(a.id)
	if p.seen[name] == nil {
		p.seen[name] = map[int64]sm.Task{}
	}
	p.seen[name][a.id] = t
	return fmt.Sprintf("%s reads task %d: %s, round %d", name, a.id, t.State, t.Round), err
}

func (p *play) repeat(a *args) (string, error) {
	again := p.again[a.words[0]]
	if again == nil {
		return "", fmt.Errorf("%s has sent nothing", a.words[0])
	}
	return again()
}

// try is any event by any kind of actor. A worker speaks under the claim that
// the task has, so that it is the table that refuses.
func (p *play) try(a *args) (string, error) {
	actor, event := sm.Actor(a.words[0]), sm.Event(a.words[1])
	if !slices.Contains(sm.Actors(), actor) || !slices.Contains(sm.Events(), event) {
		return "", errors.New("no such actor or event")
	}
	t, err := p.world.Read(a.id)
	if err != nil {
		return "", err
	}
	return p.decide(string(actor), &t, sm.Occurrence{Event: event, Actor: actor, Claim: t.Current.Claim, Round: t.Round}, 0)
}

func (p *play) advance(a *args) (string, error) {
	d, err := duration(a.words[0])
	if err != nil {
		return "", err
	}
	return "", p.world.Advance(d)
}

// args are the words after a command, the task's id among them, and its options of
// the form name=value.
type args struct {
	words   []string
	id      int64
	options map[string]string
}

// options are all that some command other than open understands.
var options = []string{"class", "exit_code", "retry", "excused", "random", "grace", "by", "settles", "late"}

func (v verb) parse(words []string) (*args, error) {
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
	if n := len(a.words); n < v.words {
		return nil, fmt.Errorf("want at least %d words", n+1)
	}
	if v.id < 0 {
		return a, nil
	}
	var err error
	if a.id, err = strconv.ParseInt(a.words[v.id], 10, 64); err != nil {
		return nil, fmt.Errorf("%q is not a task id", a.words[v.id])
	}
	return a, nil
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
func (p *play) occurrence(a *args, o sm.Occurrence) (sm.Occurrence, error) {
	var graceErr, excusedErr, settlesErr, randomErr, exitErr, retryErr error
	o.Class = sm.Class(a.options["class"])
	o.Grace, graceErr = a.duration("grace")
	o.Excused, excusedErr = a.yes("excused")
	o.Settles, settlesErr = a.yes("settles")
	if text, ok := a.options["random"]; ok {
		o.Random, randomErr = strconv.ParseFloat(text, 64)
	}
	if text, ok := a.options["exit_code"]; ok {
		o.HasExit = true
		o.ExitCode, exitErr = strconv.Atoi(text)
	}
	if text, ok := a.options["retry"]; ok {
		retryErr = moment(&o.Retry, text, p.begin)
	}
	return o, errors.Join(graceErr, excusedErr, settlesErr, randomErr, exitErr, retryErr)
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
