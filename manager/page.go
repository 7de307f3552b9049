package manager

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// mostExamined is how many tasks one [Manager.Page] looks at.
const mostExamined = 2500

// Page reads a page of the tasks that a selection means, for lists of which callers see one page after the other: up to most tasks in
// all. from is empty for the first page, and for each other one what next was of the page before: a short text that is safe in URLs
// and belongs to this selection. Where nothing follows next is empty. A page looks at no more than 2,500 tasks, so it may have fewer
// than most of them, even none, and yet a next: go on until that is empty.
//
// The newest come first: of a plan the tasks that were added last; else state by state, in the order of States, those that came into
// the state last. Tasks that came into one at the same time, and open ones that need not wait for their StartAfter, are ordered by the
// text of the id: 9 comes before 12. With IDs the order is that of the ranges, and ids of no task are left out. Newest and Limit of the
// selection are ignored.
//
// Tasks that are opened between two pages shift nothing, and each task that stays in its state comes once; one that moves may come
// twice, or not at all.
//
// A [*statemachine.FieldError] refuses a selection as Select does, a most below 1 (field most), and a from that is not of the
// selection (field cursor).
func (m *Manager) Page(ctx context.Context, sel Selection, from string, most int) (found []*task.Task, next string, err error) {
	sel.Newest, sel.Limit = false, 0
	if err := sel.check(); err != nil {
		return nil, "", err
	}
	if most < 1 {
		return nil, "", fieldError("most", strconv.Itoa(most), "at least 1")
	}
	p := m.pager(&sel)
	at, err := p.begin(from)
	if err != nil {
		return nil, "", err
	}
	return p.read(ctx, at, most)
}

// place is that of a task behind which a page goes on: the state that lists it and its score there, the plan and its rank in the list
// of that, or the index of the range of ids.
type place struct {
	in string
	at float64
	id int64
}

// idPlaces is what places of ranges are in.
const idPlaces = "ids"

func planPlaces(plan task.PlanID) string { return fmt.Sprintf("plan%d", plan) }

func (p place) text() string {
	text := p.in + " " + strconv.FormatFloat(p.at, 'g', -1, 64) + " " + strconv.FormatInt(p.id, 10)
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parsePlace reads what text has written, and nothing else.
func parsePlace(text string) (p place, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(raw), " ")
	if err != nil || len(parts) != 3 {
		return place{}, false
	}
	at, badAt := strconv.ParseFloat(parts[1], 64)
	id, badID := strconv.ParseInt(parts[2], 10, 64)
	p = place{parts[0], at, id}
	return p, badAt == nil && badID == nil && !math.IsNaN(at) && p.text() == text
}

// pager reads a page of a selection.
type pager struct {
	selector

	given  []*task.Task // those that fit so far
	places []place      // their places
}

func (m *Manager) pager(sel *Selection) *pager {
	p := &pager{}
	p.selector = m.selector(sel, func(found []*task.Task) bool {
		p.given = append(p.given, slices.DeleteFunc(found, func(t *task.Task) bool { return t.State == statemachine.None })...)
		return true
	})
	var once []statemachine.State
	for _, state := range p.states {
		if !slices.Contains(once, state) {
			once = append(once, state)
		}
	}
	p.states = once
	return p
}

// begin is where the page begins.
func (p *pager) begin(from string) (place, error) {
	if from == "" {
		return p.start(), nil
	}
	at, ok := parsePlace(from)
	if !ok || !p.has(at) {
		return place{}, fieldError("cursor", from, "what the page before has for the next one, of the same selection, or empty for the first one")
	}
	return at, nil
}

// start is the place before all others.
func (p *pager) start() place {
	switch {
	case p.sel.IDs != nil:
		return place{in: idPlaces}
	case p.sel.Plan != 0:
		return place{in: planPlaces(p.sel.Plan), at: -1}
	default:
		return place{in: string(p.states[0])}
	}
}

// has reports whether a place may be one of the selection.
func (p *pager) has(at place) bool {
	counts := at.at >= 0 && at.at < 1<<53 && at.at == math.Trunc(at.at)
	switch {
	case p.sel.IDs != nil:
		if at.in != idPlaces || !counts || int(at.at) >= len(p.sel.IDs) {
			return false
		}
		r := p.sel.IDs[int(at.at)]
		return r.First <= at.id && at.id <= r.Last
	case p.sel.Plan != 0:
		return at.in == planPlaces(p.sel.Plan) && counts
	default:
		return slices.Contains(p.states, statemachine.State(at.in)) && at.id > 0
	}
}

// read reads on from a place. It looks for one task more than the page holds, to know whether there is another page, and reads the more
// at a time the fewer fit.
func (p *pager) read(ctx context.Context, at place, most int) (found []*task.Task, next string, err error) {
	size := min(most, p.size-1) + 1
	for left := mostExamined; left > 0; size = min(2*size, p.size) {
		size = min(size, left)
		places, err := p.behind(ctx, at, size)
		if err == nil {
			err = p.examine(ctx, places)
		}
		switch {
		case err != nil:
			return nil, "", err
		case len(p.given) > most:
			return p.given[:most], p.places[most-1].text(), nil
		case len(places) < size:
			return p.given, "", nil
		}
		at = places[len(places)-1]
		left -= len(places)
	}
	return p.given, at.text(), nil
}

// behind are the places behind another one, up to most of them, and fewer only if these are the last.
func (p *pager) behind(ctx context.Context, at place, most int) ([]place, error) {
	switch {
	case p.sel.IDs != nil:
		return p.ranges(ctx, at, most)
	case p.sel.Plan != 0:
		return p.planned(ctx, at, most)
	default:
		return p.listed(ctx, at, most)
	}
}

// ranges are places of ids that were given out.
func (p *pager) ranges(ctx context.Context, at place, most int) (places []place, err error) {
	last, err := p.m.store.LastID(ctx)
	for i := int(at.at); i < len(p.sel.IDs); i++ {
		r := p.sel.IDs[i]
		for id := max(r.First, at.id+1); id <= min(r.Last, last) && len(places) < most; id++ {
			places = append(places, place{idPlaces, float64(i), id})
		}
		at.id = 0
	}
	return places, err
}

// planned are places in the list of the plan, which only grows.
func (p *pager) planned(ctx context.Context, at place, most int) (places []place, err error) {
	ids, first, err := p.m.store.PlanTasksBefore(ctx, p.sel.Plan, int(at.at), most)
	for i, id := range slices.Backward(ids) {
		places = append(places, place{at.in, float64(first + i), id})
	}
	return places, err
}

// listed are places in the states, from that of a place on.
func (p *pager) listed(ctx context.Context, at place, most int) (places []place, err error) {
	states := p.states[slices.Index(p.states, statemachine.State(at.in)):]
	found, err := p.m.store.Newest(ctx, states, tasks.Ranked{ID: at.id, Score: at.at}, most)
	for _, t := range found {
		places = append(places, place{string(t.State), t.Score, t.ID})
	}
	return places, err
}

// examine adds those of the tasks that are meant.
func (p *pager) examine(ctx context.Context, places []place) error {
	for len(places) > 0 {
		in := places[0].in
		n := slices.IndexFunc(places, func(at place) bool { return at.in != in })
		if n < 0 {
			n = len(places)
		}
		if err := p.together(ctx, places[:n]); err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// together is examine for places in the same list.
func (p *pager) together(ctx context.Context, places []place) error {
	state, ids := statemachine.State(places[0].in), make([]int64, len(places))
	for i, at := range places {
		ids[i] = at.id
	}
	if p.sel.IDs != nil || p.sel.Plan != 0 {
		state = statemachine.None
	}
	if err := p.page(ctx, state, ids); err != nil {
		return err
	}
	for _, t := range p.given[len(p.places):] {
		i := slices.IndexFunc(places, func(at place) bool { return at.id == t.ID })
		p.places, places = append(p.places, places[i]), places[i+1:]
	}
	return nil
}
