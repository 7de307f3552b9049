package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	sm "github.com/tdf-go/tdf/statemachine"
)

// play is a story that is being played.
type play struct {
	world World
	begin sm.Time
	tasks int64
	// held has, by worker and task, the task as the worker was told at its claim.
	held map[string]map[int64]sm.Task
	// seen has, by name and task, what a server or a manager has read.
	seen map[string]map[int64]sm.Task
	// again sends the last message of a name once more.
	again  map[string]func() (string, error)
	claims int
}

func newPlay(w World) (*play, error) {
	begin, err := w.Now()
	return &play{
		world: w, begin: begin,
		held: map[string]map[int64]sm.Task{}, seen: map[string]map[int64]sm.Task{},
		again: map[string]func() (string, error){},
	}, err
}

// command carries one command out, checks the promises and returns the answer,
// in whole lines.
func (p *play) command(words []string) (string, error) {
	if len(words) == 0 {
		return "", errors.New("want a command")
	}
	verb, ok := verbs[words[0]]
	if !ok {
		return "", errors.New("no such command")
	}
	a, err := parseArgs(words[1:])
	if err != nil {
		return "", err
	}
	answer, err := verb(p, a)
	if err != nil {
		return "", err
	}
	if answer != "" {
		answer += "\n"
	}
	for id := int64(1); id <= p.tasks; id++ {
		if err := p.check(id); err != nil {
			return "", err
		}
	}
	return answer, nil
}

// check is what must hold of every task after every command.
func (p *play) check(id int64) error {
	t, err := p.world.Read(id)
	if err != nil {
		return err
	}
	lists, err := p.world.Lists(id)
	if err != nil {
		return err
	}
	if len(lists) != 1 || lists[0] != t.State {
		return fmt.Errorf("task %d is %s and stands in the lists %q", id, t.State, lists)
	}
	rounds := t.Ends()
	switch t.End() {
	case sm.Failed, sm.TimedOut, sm.Orphaned:
		rounds--
	default:
	}
	if rounds != t.Round {
		return fmt.Errorf("task %d is %s in round %d: %s", id, t.State, t.Round, counters(&t))
	}
	return nil
}

// send carries a decision out and remembers it as the last message of name.
func (p *play) send(name string, m sm.Move) (string, error) {
	p.again[name] = func() (string, error) { return p.send(name, m) }
	before, err := p.show(m.ID)
	if err != nil {
		return "", err
	}
	result, err := p.world.Move(m)
	if err != nil && !errors.Is(err, sm.ErrStale) && !errors.Is(err, sm.ErrConflict) && !errors.Is(err, sm.ErrStopAsked) {
		return "", err
	}
	if result == sm.Moved {
		return fmt.Sprintf("task %d: %s, round %d", m.ID, path(&m), m.ToRound()), nil
	}
	answer := refusal(err)
	if result == sm.Repeated {
		answer = fmt.Sprintf("task %d: %s, made before", m.ID, path(&m))
	}
	after, err := p.show(m.ID)
	if err == nil && after != before {
		err = fmt.Errorf("a move that was not made changed the task from\n%s\nto\n%s", before, after)
	}
	return answer, err
}

// decide asks the rules and sends their answer.
func (p *play) decide(name string, t *sm.Task, o sm.Occurrence) (string, error) {
	now, err := p.world.Now()
	if err != nil {
		return "", err
	}
	before := *t
	m, err := sm.Decide(t, o, now)
	if !reflect.DeepEqual(before, *t) {
		return "", errors.New("a decision changed the task")
	}
	if err != nil {
		return refusal(err), nil
	}
	return p.send(name, m)
}

func path(m *sm.Move) string {
	if m.AskStop {
		return string(m.To) + ", asked to stop"
	}
	edges := m.Edges()
	words := append(make([]string, 0, len(edges)+1), edges[0].From)
	for _, e := range edges {
		words = append(words, e.To)
	}
	return strings.Join(words, " -> ")
}

// refusal puts an error of the rules into the words of the stories.
func refusal(err error) string {
	var illegal *sm.TransitionError
	switch {
	case errors.As(err, &illegal):
		return "not allowed: " + illegal.Error()
	case errors.Is(err, sm.ErrStale):
		return "refused: stale claim"
	case errors.Is(err, sm.ErrStopAsked):
		return "refused: a stop was asked for"
	case errors.Is(err, sm.ErrConflict):
		return "refused: the task has changed"
	default:
		return "not due"
	}
}

func counters(t *sm.Task) string {
	var words []string
	for _, c := range sm.Counters() {
		if n := t.Counted(c); n > 0 {
			words = append(words, string(c)+" "+strconv.Itoa(n))
		}
	}
	return strings.Join(words, ", ")
}
