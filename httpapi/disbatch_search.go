package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// taskSearch says which tasks are meant, and what is wanted of them.
type taskSearch struct {
	sel manager.Selection
	// conditions are the values that a task may have, by name; rounds says that its present round is looked at.
	conditions           map[string][]any
	rounds               bool
	limit, skip          int64
	count, terse, pretty bool
}

// mostFound is how many tasks one search shows.
const mostFound = 100

func (q *doorRequest) taskSearch() (s *taskSearch, err error) {
	if err := q.only("filter", "options", "count", "terse", "pretty"); err != nil {
		return nil, err
	}
	s = &taskSearch{limit: mostFound, terse: true}
	for name, to := range map[string]*bool{"count": &s.count, "terse": &s.terse, "pretty": &s.pretty} {
		if err := q.flag(name, to); err != nil {
			return nil, err
		}
	}
	options := &doorRequest{}
	if q.has("options") && json.Unmarshal(q.member("options"), &options.members) != nil {
		return nil, q.bad("options", "an object with limit or skip")
	}
	if err := options.only("limit", "skip"); err != nil {
		return nil, err
	}
	if options.has("limit") {
		if s.limit, err = options.whole("limit"); err != nil || s.limit < 1 || s.limit > mostFound {
			return nil, options.bad("limit", "a whole number from 1 to 100; skip leads to the others")
		}
	}
	if options.has("skip") {
		if s.skip, err = options.whole("skip"); err != nil {
			return nil, err
		}
	}
	if s.conditions, err = q.filter(); err == nil {
		err = s.selects()
	}
	return s, err
}

// flag is true or false, or a number as Perl has it.
func (q *doorRequest) flag(name string, to *bool) error {
	switch string(q.member(name)) {
	case "":
	case "true", "1":
		*to = true
	case "false", "0":
		*to = false
	default:
		return q.bad(name, "true or false")
	}
	return nil
}

// paramPrefix begins the conditions about members of parameters.
const paramPrefix = "params."

// filter is what tasks are looked for by: each condition with the values that it allows.
func (q *doorRequest) filter() (map[string][]any, error) {
	var members map[string]json.RawMessage
	if q.has("filter") && json.Unmarshal(q.member("filter"), &members) != nil {
		return nil, q.bad("filter", `an object such as {"queue": "mail", "status": {"$in": [-2, 0]}}`)
	}
	conditions := map[string][]any{}
	for _, said := range slices.Sorted(maps.Keys(members)) {
		name := said
		if rest, ok := strings.CutPrefix(said, "parameters."); ok {
			name = paramPrefix + rest
		} else if said == "_id" {
			name = "id"
		}
		if !slices.Contains([]string{"id", "queue", "status", "node"}, name) && !strings.HasPrefix(name, paramPrefix) {
			return nil, &statemachine.FieldError{Field: "filter." + said, Want: "known; there are id, queue, status, node and params.NAME"}
		}
		if conditions[name] != nil {
			return nil, &statemachine.FieldError{Field: "filter." + said, Value: "", Want: "given once; leave one of them out"}
		}
		var err error
		if conditions[name], err = allowed("filter."+said, members[said]); err != nil {
			return nil, err
		}
	}
	return conditions, nil
}

// allowed are the values of a condition: one, or those of {"$in": [...]}.
func allowed(field string, raw json.RawMessage) ([]any, error) {
	bad := func(value, want string) error {
		return &statemachine.FieldError{Field: field, Value: value, Want: want}
	}
	value := scalarOf(raw)
	values := []any{value}
	if in, ok := value.(map[string]any); ok {
		for operator := range in {
			if operator != "$in" {
				return nil, bad(operator, `an operator that is known; there is {"$in": [...]}`)
			}
		}
		if values, ok = in["$in"].([]any); !ok {
			return nil, bad("$in", `used with an array, such as {"$in": [-2, 0]}`)
		}
	}
	for _, v := range values {
		switch v.(type) {
		case []any, map[string]any:
			return nil, bad("", `a text, a number, true, false, null or {"$in": [...]} with those`)
		}
	}
	return append([]any{}, values...), nil
}

// scalarOf is a JSON value whose numbers stay as they are written.
func scalarOf(raw json.RawMessage) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	_ = decoder.Decode(&value) // it is valid: it was a part of what was decoded
	return value
}

// selects makes a selection of the conditions, as far as one can say them.
func (s *taskSearch) selects() error {
	for name, values := range s.conditions {
		for i, v := range values {
			if err := fitting(name, v); err != nil {
				return err
			}
			if number, ok := v.(json.Number); ok && name == "node" && number == "-1" {
				values[i] = nil
			}
		}
	}
	for _, v := range s.conditions["id"] {
		id, _ := strconv.ParseInt(string(v.(json.Number)), 10, 64) //nolint:forcetypeassert // fitting has seen it
		s.sel.IDs = append(s.sel.IDs, manager.IDRange{First: id, Last: id})
	}
	if queues := s.conditions["queue"]; len(queues) == 1 {
		s.sel.Queue, _ = queues[0].(string)
	}
	for _, state := range statemachine.States() {
		if slices.ContainsFunc(s.conditions["status"], func(v any) bool { return mayHave(state, v) }) {
			s.sel.States = append(s.sel.States, state)
		}
	}
	s.sel.All, s.sel.Archived = s.sel.IDs == nil, len(s.sel.States) == 0
	s.rounds = s.conditions["node"] != nil || slices.Contains(s.sel.States, statemachine.Failed)
	for name := range s.conditions {
		if strings.HasPrefix(name, paramPrefix) {
			s.sel.Fields = []string{"params"}
		}
	}
	return nil
}

// mayHave reports whether tasks in a state may have a status: that of a failed one is what its program has reported, from 2 on.
func mayHave(state statemachine.State, status any) bool {
	number := (&task.Task{State: state}).DisbatchStatus()
	n, _ := strconv.Atoi(fmt.Sprint(status))
	return state != statemachine.Archived && (number == n || state == statemachine.Failed && n > number)
}

// fitting refuses a value that nothing of its name has.
func fitting(name string, v any) error {
	_, text := v.(string)
	number, _ := v.(json.Number)
	n, err := strconv.ParseInt(string(number), 10, 64)
	var want string
	switch {
	case name == "id" && (err != nil || n < 1):
		want = "the id of a task, such as 7"
	case name == "status" && err != nil:
		want = "a status, such as -2"
	case name == "queue" && !text:
		want = "the name of a queue"
	case name == "node" && !text && v != nil && number != "-1":
		want = "the name of a node, or null for tasks that no node has claimed"
	default:
		return nil
	}
	return &statemachine.FieldError{Field: "filter." + name, Value: fmt.Sprint(v), Want: want}
}

// means reports whether a task fits all conditions.
func (s *taskSearch) means(t *task.Task) bool {
	var params map[string]json.RawMessage
	for name, values := range s.conditions {
		var has any
		switch param, ok := strings.CutPrefix(name, paramPrefix); {
		case ok:
			if params == nil {
				_ = json.Unmarshal(t.Params, &params) // without any it has no members
			}
			has = scalarOf(params[param])
		case name == "id":
			has = json.Number(strconv.FormatInt(t.ID, 10))
		case name == "queue":
			has = t.Queue
		case name == "status":
			has = json.Number(strconv.Itoa(t.DisbatchStatus()))
		case claimedBy(t) != "": // name is node
			has = claimedBy(t)
		}
		if !slices.ContainsFunc(values, func(v any) bool { return same(v, has) }) {
			return false
		}
	}
	return true
}

// same compares values of which the first is no list and no object.
func same(v, has any) bool {
	switch has.(type) {
	case []any, map[string]any:
		return false
	}
	return v == has
}

// examined is how many tasks are read at a time, readWhole how many with what they wrote.
const examined, readWhole = 500, 20

// each gives the tasks that are meant, page by page, until take has enough.
func (d *disbatch) each(ctx context.Context, s *taskSearch, take func([]*task.Task) (more bool)) error {
	if s.none() {
		return nil
	}
	for from := ""; ; {
		found, next, err := d.m.Page(ctx, s.sel, from, examined)
		if err == nil && s.rounds {
			err = d.m.PresentRounds(ctx, found, true)
		}
		if err != nil {
			return err
		}
		if !take(slices.DeleteFunc(found, func(t *task.Task) bool { return !s.means(t) })) || next == "" {
			return nil
		}
		from = next
	}
}

// none reports whether a condition allows nothing, or a status that no task has.
func (s *taskSearch) none() bool {
	for _, values := range s.conditions {
		if len(values) == 0 {
			return true
		}
	}
	return s.conditions["status"] != nil && len(s.sel.States) == 0
}

func (d *disbatch) search(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	s, err := q.taskSearch()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var ids []int64
	n, end := int64(0), s.skip+s.limit
	err = d.each(ctx, s, func(found []*task.Task) bool {
		for _, t := range found {
			if n++; n > s.skip && n <= end && !s.count {
				ids = append(ids, t.ID)
			}
		}
		return s.count || n < end
	})
	if err != nil {
		return nil, err
	}
	if s.count {
		return &doorAnswer{status: http.StatusOK, body: map[string]int64{"count": n}, pretty: s.pretty}, nil
	}
	shown, err := d.shown(ctx, ids, s.terse)
	return &doorAnswer{status: http.StatusOK, body: shown, pretty: s.pretty}, err
}

// shown are tasks as they are now; one that has left Redis meanwhile is left out.
func (d *disbatch) shown(ctx context.Context, ids []int64, terse bool) ([]*disbatchTask, error) {
	all := []*disbatchTask{}
	for part := range slices.Chunk(ids, readWhole) {
		found, err := d.m.Tasks(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if t == nil {
				continue
			}
			shown := disbatchTaskOf(t)
			for _, text := range []*string{&shown.Stdout, &shown.Stderr} {
				if terse && *text != "" {
					*text = "[terse mode]"
				}
			}
			all = append(all, shown)
		}
	}
	return all, nil
}
