package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

// stampOrder is the order of a round's stamps that have the same time.
var stampOrder = func() map[string]int {
	order := map[string]int{string(sm.StampTimeout): 100, string(sm.StampFailure): 101}
	for i, s := range sm.States() {
		order[string(s)] = i
		if s.Settled() {
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
