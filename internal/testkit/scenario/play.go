package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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
	a, err := verb.parse(words[1:])
	if err != nil {
		return "", err
	}
	answer, err := verb.do(p, a)
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
		after, err := p.world.Read(m.ID)
		made := m
		if plain := m.Unsettled(); after.State == plain.To {
			made = plain
		}
		return fmt.Sprintf("task %d: %s, round %d", m.ID, path(&made), m.ToRound()), err
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

// decide asks the rules and sends their answer, which is so long under way.
func (p *play) decide(name string, t *sm.Task, o sm.Occurrence, late sm.Duration) (string, error) {
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
	if err := p.world.Advance(late); err != nil {
		return "", err
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

// stampOrder is the order of a round's stamps that have the same time.
var stampOrder = func() map[string]int {
	order := map[string]int{sm.StampTimeout: 100, sm.StampFailure: 101}
	for i, s := range sm.States() {
		order[string(s)] = i
		if s.Terminal() {
			order[string(s)] = 200 + i
		}
	}
	return order
}()

// show tells what the world has of a task, without a last newline.
func (p *play) show(id int64) (string, error) {
	t, err := p.world.Read(id)
	if err != nil {
		return "", err
	}
	stamps, err := p.world.Stamps(id)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "task %d: %s, round %d", id, t.State, t.Round)
	if t.Outcome != sm.None {
		fmt.Fprintf(&out, ", outcome %s", t.Outcome)
	}
	if text := counters(&t); text != "" {
		fmt.Fprintf(&out, ", %s", text)
	}
	if t.StopAsked {
		out.WriteString(", asked to stop")
	}
	if t.NotBefore != 0 {
		fmt.Fprintf(&out, ", not before %s", p.since(t.NotBefore))
	}
	for round := range t.Round + 2 { // one more than there is: nobody writes there
		if line := p.roundText(round, stamps); line != "" {
			fmt.Fprintf(&out, "\nround %d: %s", round, line)
		}
	}
	return out.String(), nil
}

func (p *play) roundText(round int, stamps map[string]sm.Time) string {
	type entry struct {
		name string
		at   sm.Time
	}
	var entries []entry
	prefix := sm.RoundField(round, "")
	for field, at := range stamps {
		if name, ok := strings.CutPrefix(field, prefix); ok {
			entries = append(entries, entry{name, at})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(stampOrder[a.name], stampOrder[b.name]))
	})
	words := make([]string, 0, len(entries))
	for _, e := range entries {
		words = append(words, e.name+" "+p.since(e.at))
	}
	return strings.Join(words, ", ")
}

// since is a moment as the stories tell it, counted from their beginning.
func (p *play) since(at sm.Time) string {
	return (time.Duration(at.Sub(p.begin)) * time.Microsecond).String()
}
