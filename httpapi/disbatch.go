package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// disbatch serves Disbatch's interface: its nodes, queues and tasks are those of the site, and its plugins the classes of workers.
type disbatch struct {
	door

	m *manager.Manager
}

type doorFunc = func(ctx context.Context, q *doorRequest) (*doorAnswer, error)

// mountDisbatch serves Disbatch's paths, at the root.
func mountDisbatch(mux *http.ServeMux, o *Options) {
	d := &disbatch{
		door: newDoor(o, perSecond, "/nodes, /nodes/NODE, /plugins, /queues, /queues/QUEUE, /tasks/search, /tasks/QUEUE and /tasks/ID"),
		m:    o.Manager,
	}
	path := func(path string, read doorFunc, others map[string]doorVerb) {
		verbs := map[string]doorVerb{}
		if read != nil {
			verbs[http.MethodGet] = doorVerb{may: mayRead, do: read}
			verbs[http.MethodHead] = verbs[http.MethodGet]
		}
		maps.Copy(verbs, others)
		mux.Handle(path, d.serve(verbs))
	}
	const post, del = http.MethodPost, http.MethodDelete
	path("/nodes", d.listNodes, nil)
	path("/nodes/{node}", d.getNode, map[string]doorVerb{post: {may: mayChange, do: d.setNode}})
	path("/plugins", d.listPlugins, nil)
	path("/queues", d.listQueues, map[string]doorVerb{post: {may: mayChange, do: d.addQueue}})
	path("/queues/{queue}", d.getQueue, map[string]doorVerb{
		post: {may: mayChange, do: d.setQueue}, del: {may: mayChange, do: d.removeQueue},
	})
	path("/tasks/search", nil, map[string]doorVerb{post: {may: mayRead, do: d.search}})
	path("/tasks/{name}", d.getTask, map[string]doorVerb{post: {may: maySubmit, do: d.openTasks, list: true}})
	path("/tasks/{queue}/{collection}", nil, map[string]doorVerb{post: {may: maySubmit, do: noCollection}})
	for _, other := range []string{"/nodes/", "/plugins/", "/queues/", "/tasks/", "/tasks"} {
		mux.Handle(other, d.serve(nil))
	}
}

func noCollection(context.Context, *doorRequest) (*doorAnswer, error) {
	return nil, newProblem(http.StatusNotFound, "this site keeps no collections of MongoDB; send the parameters themselves to /tasks/QUEUE")
}

// only refuses members of the body that nobody knows.
func (q *doorRequest) only(known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(q.members)) {
		if !slices.Contains(known, name) {
			return &statemachine.FieldError{Field: name, Value: "", Want: "known; there are " + strings.Join(known, ", ")}
		}
	}
	return nil
}

// disbatchNode is a node as the specification has it; Node, Timestamp and MaxThreads are what version 4 has.
type disbatchNode struct {
	ID          string           `json:"id"`
	DocumentID  string           `json:"_id"`
	Node        string           `json:"node"`
	Timestamp   *int64           `json:"timestamp"` // ms since 1970
	MaxThreads  task.Limit       `json:"maxthreads"`
	Version     string           `json:"version"`
	SpecVersion string           `json:"spec_version"`
	QueueTypes  []task.QueueType `json:"queuetypes"`
	Heartbeat   *nodeHeartbeat   `json:"heartbeat"`
}

type nodeHeartbeat struct {
	Time   time.Time       `json:"datetime"`
	PID    int             `json:"pid"`
	Queues []task.QueueUse `json:"queues"`
}

// nodeShown adds up the workers of a node; what only one of them can have is of the one that was heard of last.
func nodeShown(n *task.Node) *disbatchNode {
	shown := &disbatchNode{
		ID: n.Name, DocumentID: n.Name, Node: n.Name, MaxThreads: n.MaxThreads, SpecVersion: task.DisbatchSpec, QueueTypes: []task.QueueType{},
	}
	workers := slices.DeleteFunc(slices.Clone(n.Workers), func(w task.Worker) bool { return !w.State.Alive() })
	if len(workers) == 0 {
		workers = n.Workers
	}
	if len(workers) == 0 {
		return shown
	}
	uses := map[string]*task.QueueUse{}
	for i := range workers {
		for _, t := range task.QueueTypes(workers[i].Classes) {
			if !slices.Contains(shown.QueueTypes, t) {
				shown.QueueTypes = append(shown.QueueTypes, t)
			}
		}
		for _, u := range workers[i].Queues {
			if sum := uses[u.Queue]; sum != nil {
				sum.Threads, sum.Idle, sum.Processing = sum.Threads+u.Threads, sum.Idle+u.Idle, sum.Processing+u.Processing
			} else {
				uses[u.Queue] = &u
			}
		}
	}
	last := slices.MaxFunc(workers, func(a, b task.Worker) int { return a.Heartbeat.Compare(b.Heartbeat) })
	at := last.Heartbeat.UnixMilli()
	shown.Version, shown.Timestamp = last.Version, &at
	shown.Heartbeat = &nodeHeartbeat{Time: last.Heartbeat, PID: last.PID, Queues: []task.QueueUse{}}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		shown.Heartbeat.Queues = append(shown.Heartbeat.Queues, *uses[name])
	}
	return shown
}

func (d *disbatch) listNodes(ctx context.Context, _ *doorRequest) (*doorAnswer, error) {
	nodes, err := d.m.Nodes(ctx)
	all := make([]*disbatchNode, len(nodes))
	for i := range nodes {
		all[i] = nodeShown(&nodes[i])
	}
	return &doorAnswer{status: http.StatusOK, body: map[string]any{"nodes": all}}, err
}

func (d *disbatch) getNode(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	n, err := nodeOf(ctx, d.m, q.http.PathValue("node"))
	return &doorAnswer{status: http.StatusOK, body: nodeShown(&n)}, err
}

func (d *disbatch) setNode(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	if err := q.only("maxthreads"); err != nil {
		return nil, err
	}
	if q.members["maxthreads"] == nil {
		return nil, q.bad("maxthreads", wantLimit)
	}
	most, err := q.limit("maxthreads")
	if err != nil {
		return nil, err
	}
	n, err := nodeOf(ctx, d.m, q.http.PathValue("node")) // a slip makes none
	if err == nil {
		n, err = d.m.SetNode(ctx, n.Name, func(r *task.NodeRecord) error { return r.Set("maxthreads", most) }, q.change("", false))
	}
	return &doorAnswer{status: http.StatusOK, body: nodeShown(&n)}, err
}

const wantLimit = "a whole number that is not negative, or null for no limit"

// limit is a number of tasks, or null for no limit, as an attribute of a queue or a node.
func (q *doorRequest) limit(name string) (string, error) {
	if !q.has(name) {
		return string(task.Unlimited), nil
	}
	if _, err := q.whole(name); err != nil {
		return "", q.bad(name, wantLimit)
	}
	return string(q.member(name)), nil
}

// plugins are the classes that workers serve or have served, and those of queues, without Flock's.
func (d *disbatch) plugins(ctx context.Context) ([]string, error) {
	workers, err := d.m.Workers(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := d.m.Queues(ctx)
	names := map[string]bool{}
	for i := range workers {
		for _, t := range task.QueueTypes(workers[i].Classes) {
			names[t.Class] = true
		}
	}
	for i := range queues {
		names[queues[i].Class] = true
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return name == "" || strings.HasPrefix(name, class("")) })
	return append([]string{}, slices.Sorted(maps.Keys(names))...), err
}

func (d *disbatch) listPlugins(ctx context.Context, _ *doorRequest) (*doorAnswer, error) {
	names, err := d.plugins(ctx)
	return &doorAnswer{status: http.StatusOK, body: names}, err
}

// programOf is the program of a plugin, which is also the name of a directory.
func programOf(plugin string) string { return strings.ReplaceAll(plugin, "::", ".") }

// checkPlugin refuses what no worker could run, and what none has ever offered.
func (d *disbatch) checkPlugin(ctx context.Context, plugin string) error {
	if task.ValidProgram(programOf(plugin)) != nil {
		return &statemachine.FieldError{
			Field: "plugin", Value: plugin, Want: "the name of a plugin: letters, digits, '.', '_', '-' and '::', a letter or digit first",
		}
	}
	known, err := d.plugins(ctx)
	if err == nil && !slices.Contains(known, plugin) {
		err = &statemachine.FieldError{
			Field: "plugin", Value: plugin, Want: "known: GET /plugins lists those that workers offer, by [worker] classes",
		}
	}
	return err
}

// queueMembers are the attributes of a queue that members set: names of version 4, and of the specification.
var queueMembers = map[string]string{
	"name": "name", "_id": "name", "plugin": "class", "class": "class", "description": "description", "sort": "order",
	"threads": "threads", "maxthreads": "maxthreads", "nodes_pin": "nodes_pin", "nodes_ignore": "nodes_ignore",
}

// queueAttributes are what the body says of a queue, by the names of TDF.
func (q *doorRequest) queueAttributes() (map[string]string, error) {
	if err := q.only(slices.Sorted(maps.Keys(queueMembers))...); err != nil {
		return nil, err
	}
	set := map[string]string{}
	for member := range q.members {
		attribute := queueMembers[member]
		text, err := q.attribute(member)
		if err != nil {
			return nil, err
		}
		if before, twice := set[attribute]; twice && before != text {
			return nil, q.bad(member, "the same as another member that means this one; leave one of them out")
		}
		set[attribute] = text
	}
	return set, nil
}

// attribute is a member as the text that an attribute of a queue has.
func (q *doorRequest) attribute(member string) (text string, err error) {
	switch member {
	case "threads", "maxthreads":
		return q.limit(member)
	case "nodes_pin", "nodes_ignore":
		var names []string
		if q.has(member) && json.Unmarshal(q.member(member), &names) != nil {
			return "", q.bad(member, `an array of names of nodes, such as ["mig01"]`)
		}
		for _, name := range names {
			if err := task.CheckNode(name); err != nil {
				return "", err
			}
		}
		return strings.Join(names, ","), nil
	}
	if q.has(member) && json.Unmarshal(q.member(member), &text) != nil {
		return "", q.bad(member, "a text")
	}
	if member == "sort" && text == "default" {
		text = ""
	}
	return text, nil
}

// disbatchQueue is a queue as it is shown, with both names of what has two.
type disbatchQueue struct {
	ID          string      `json:"id"`
	DocumentID  string      `json:"_id"`
	Name        string      `json:"name"`
	Plugin      string      `json:"plugin"`
	Class       string      `json:"class"`
	Description string      `json:"description"`
	Threads     task.Limit  `json:"threads"`
	MaxThreads  task.Limit  `json:"maxthreads"`
	Pin         []string    `json:"nodes_pin"`
	Ignore      []string    `json:"nodes_ignore"`
	Sort        task.Order  `json:"sort"`
	Created     json.Number `json:"ctime,omitempty"`
	Queued      int64       `json:"queued"`
	Running     int64       `json:"running"`
	Completed   int64       `json:"completed"`
}

func queueShown(q *task.Queue) *disbatchQueue {
	shown := &disbatchQueue{
		ID: q.Name, DocumentID: q.Name, Name: q.Name, Plugin: q.Class, Class: q.Class, Description: q.Description, Threads: q.Threads,
		MaxThreads: q.MaxThreads, Pin: q.Pin, Ignore: q.Ignore, Sort: q.Order, Created: epochOf(q.Created), Queued: q.Waiting, Running: q.Running,
	}
	for _, state := range statemachine.States() {
		if (&task.Task{State: state}).DisbatchStatus() >= 1 && state.IsOutcome() {
			shown.Completed += q.Ended[state] + q.RetriedAs[state]
		}
	}
	return shown
}

// epochOf is the epoch of a moment, empty for none.
func epochOf(t time.Time) json.Number {
	if t.IsZero() {
		return ""
	}
	return epoch(t)
}

func (d *disbatch) listQueues(ctx context.Context, _ *doorRequest) (*doorAnswer, error) {
	queues, err := d.m.Queues(ctx)
	all := make([]*disbatchQueue, len(queues))
	for i := range queues {
		all[i] = queueShown(&queues[i])
	}
	return &doorAnswer{status: http.StatusOK, body: all}, err
}

func (d *disbatch) getQueue(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	found, err := d.m.Queue(ctx, q.http.PathValue("queue"))
	return &doorAnswer{status: http.StatusOK, body: queueShown(&found)}, err
}

func (d *disbatch) addQueue(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	set, err := q.queueAttributes()
	if err != nil {
		return nil, err
	}
	if err := d.checkPlugin(ctx, set["class"]); err != nil {
		return nil, err
	}
	spec := task.ParseQueue(set["name"], nil)
	if err := apply(&spec, set); err != nil {
		return nil, err
	}
	made, err := d.m.AddQueue(ctx, spec, q.change("", false))
	if err == nil {
		made, err = d.m.Queue(ctx, made.Name) // with the time of its making
	}
	return &doorAnswer{status: http.StatusCreated, location: "/queues/" + made.Name, body: queueShown(&made)}, err
}

// apply sets attributes of a queue, but for its name.
func apply(q *task.QueueSpec, set map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name == "name" {
			continue
		}
		if err := q.Set(name, set[name]); err != nil {
			return err
		}
	}
	return nil
}

func (d *disbatch) setQueue(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	name := q.http.PathValue("queue")
	set, err := q.queueAttributes()
	if err != nil {
		return nil, err
	}
	if said, ok := set["name"]; ok && said != name {
		return nil, &statemachine.FieldError{Field: "name", Value: said, Want: "the name of the queue: that stays; make another queue"}
	}
	if plugin, ok := set["class"]; ok {
		if err := d.checkPlugin(ctx, plugin); err != nil {
			return nil, err
		}
	}
	after, err := d.m.SetQueue(ctx, name, func(spec *task.QueueSpec) error { return apply(spec, set) }, q.change("", false))
	return &doorAnswer{status: http.StatusOK, body: queueShown(&after)}, err
}

func (d *disbatch) removeQueue(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	err := d.m.RemoveQueue(ctx, q.http.PathValue("queue"), q.change("", false))
	return &doorAnswer{status: http.StatusNoContent}, err
}
