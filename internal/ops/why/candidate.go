package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// candidate is a worker that might take the task, and what keeps it from that.
// While the reasons are found, queue and worker become what they will be
// once the changes are made, so that what is found later holds then.
type candidate struct {
	s       *Situation
	queue   task.Queue
	worker  task.Worker
	node    task.Node
	reasons []Reason
	// claims says that the worker's next claim takes the task.
	claims bool
	// static says that the two do not go together, whatever runs just now.
	static bool
	cost   int
}

// What makes a candidate less near: any other worker is nearer than one on a
// node that its queue is not for, or than a task that fits nowhere.
const (
	costBusy   = 1
	costDrain  = 3
	costLacks  = 100
	costAway   = 150
	costStart  = 400
	costNobody = 1 << 20
)

// hindered finds what keeps the nearest worker from the task, and what the
// others lack that fit it. A task that is due may be claimed by one just now.
func (s *Situation) hindered(due bool) (Explanation, error) {
	all := s.candidates()
	nearest := all[0]
	for first := 0; first < len(all) && (first == 0 || all[first].asks(nearest, due)); first += asked {
		batch := all[first:min(first+asked, len(all))]
		if err := s.ask(batch); err != nil {
			return nil, err
		}
		for _, c := range batch {
			if due && c.claims {
				return Explanation{claimable(&c.worker)}, nil
			}
		}
		if c := slices.MinFunc(batch, nearer); nearer(c, nearest) < 0 {
			nearest = c
		}
	}
	all = slices.DeleteFunc(all, func(c *candidate) bool { return c == nearest })
	slices.SortStableFunc(all, nearer)
	reasons := slices.Clone(nearest.reasons)
	switch {
	case len(reasons) == 0 && due:
		reasons = Explanation{claimable(&nearest.worker)}
	case len(reasons) == 0: // what is in its way is said already
	case len(s.alive()) == 0 && reasons[0].Kind == KindAway:
		reasons[0].Kind = KindNoWorker
		reasons[0].Text = "no worker is alive; " + reasons[0].Text
	}
	return append(reasons, others(nearest, all)...), nil
}

func claimable(w *task.Worker) Reason {
	return Reason{Kind: KindClaimable, Text: fmt.Sprintf("nothing is in the way: the next claim of %s gets it (%s)", placed(w), freeText(w))}
}

// asks reports whether it matters what is in the way of a candidate too, after those before it.
func (c *candidate) asks(nearest *candidate, due bool) bool {
	if slices.ContainsFunc(nearest.reasons, func(r Reason) bool { return r.Kind == KindThreads }) {
		return false // nobody gets the task
	}
	return due && len(c.reasons) == 0 || c.cost < nearest.cost
}

// nearer orders candidates.
func nearer(x, y *candidate) int { return cmp.Compare(x.cost, y.cost) }

// candidates are all workers there are, and new ones, the nearest first as far as is known without asking.
func (s *Situation) candidates() []*candidate {
	all := make([]*candidate, 0, len(s.Workers)+1)
	for i := range s.Workers {
		all = append(all, s.examine(&s.Workers[i]))
	}
	pin := s.queue(s.Task.Bucket.QueueName()).Pin
	if len(pin) == 0 {
		pin = []string{""} // any node
	}
	for _, node := range pin {
		all = append(all, s.hypothetical(node))
	}
	slices.SortStableFunc(all, nearer)
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

// examine finds what keeps a worker from claiming the task, whatever else there is.
func (s *Situation) examine(w *task.Worker) *candidate {
	c := &candidate{s: s, queue: s.queue(s.Task.Bucket.QueueName()), worker: *w}
	c.node = s.node(w.Node)
	if !w.State.Alive() {
		c.away()
	}
	c.fit()
	c.handler()
	c.avoided()
	c.idle()
	return c
}

// avoided finds that the task is left to others for a while: it has failed on the node, or others keep its version.
func (c *candidate) avoided() {
	till, node := c.s.left()
	text := fmt.Sprintf("it has failed on node %s, which leaves it to other nodes until %s", node, moment(till))
	keepers, named := strings.CutPrefix(node, "/")
	switch {
	case till <= c.s.at(), node == "", keepers == "" && named, !named && node != c.worker.Node,
		named && strings.Contains(node, "/"+c.worker.Name+"/"):
		return
	case named:
		text = fmt.Sprintf("%s lacks %s, so the task is left until %s to workers that keep it: %s", placed(&c.worker), c.s.version(),
			moment(till), some(strings.Split(strings.TrimSuffix(keepers, "/"), "/")))
	}
	c.add(costDrain, KindElsewhere, Remedy{Object: "time", Attribute: AttrNow, Value: till.Text()}, text)
}

// left is until when, and by or to whom, the task is left to others (see [tasks.AvoidField]).
func (s *Situation) left() (till statemachine.Time, whom string) {
	text, whom, _ := strings.Cut(s.Record.Fields[tasks.AvoidField], " ")
	till, err := statemachine.ParseTime(text)
	if err != nil {
		return 0, ""
	}
	return till, whom
}

// version is the one that the task is pinned to.
func (s *Situation) version() string {
	hash := cmp.Or(task.SourceSHA256(s.Record.Source), "that its plan runs")
	return "version " + hash + " of program " + s.Record.Program
}

func (c *candidate) add(cost int, kind Kind, change Remedy, text string) {
	c.reasons = append(c.reasons, blocks(kind, change, text))
	c.cost += cost
}

// fit finds in what respect task and worker do not go together.
func (c *candidate) fit() {
	b := c.s.Task.Bucket
	for _, r := range task.Unfit(b, c.queue.QueueSpec, c.worker.Offer()) {
		c.static = c.static || r.Kind != task.KindPaused
		cost, change := c.adapt(r)
		c.add(cost, Kind(r.Kind), change, c.lackText(r))
	}
}

// handler finds that the worker would only hand the task back again.
func (c *candidate) handler() {
	if !c.s.declined(&c.worker) {
		return
	}
	c.static = true
	var by []string
	alive := c.s.alive()
	for i := range alive {
		if c.s.declined(&alive[i]) {
			by = append(by, alive[i].Name)
		}
	}
	program := c.s.Task.Program
	text := placed(&c.worker) + " has no handler for program " + program + " and runs no programs"
	if len(by) == len(alive) {
		text = "no live worker has a handler for program " + program + " or runs programs"
	}
	c.add(costLacks, KindHandler, c.onWorker(AttrHandlers, program), text+": handed back by "+some(by))
}

// adapt changes queue or worker so that the reason is gone.
func (c *candidate) adapt(r task.Reason) (int, Remedy) {
	w := &c.worker
	switch r.Kind {
	case task.KindPaused:
		if r.Has != "" {
			damaged := c.queue.Damaged.Fields()[0]
			c.queue.Damaged = nil
			return 0, c.onQueue(damaged, "")
		}
		c.queue.Paused = false
		return 0, c.onQueue("paused", "false")
	case task.KindPinned, task.KindIgnored: // never the nearest: one on a better node can be started
		return costNobody, Remedy{}
	case task.KindClass:
		w.Classes = append(slices.Clone(w.Classes), r.Wanted)
		return costLacks, c.onWorker("classes", r.Wanted)
	case task.KindPrograms:
		w.HandlersOnly = false
		return costLacks, c.onWorker(AttrOnly, "false")
	case task.KindEnv:
		w.Env = r.Wanted
		return costLacks, c.onWorker("env", r.Wanted)
	case task.KindLabel:
		w.Labels = append(slices.Clone(w.Labels), r.Wanted)
		if name, value, is := settingOf(r.Wanted); is {
			return costLacks, c.onWorker(name, value)
		}
		return costLacks, c.onWorker("labels", r.Wanted)
	default: // a resource, of which the node is to have as much
		wanted, err := task.ParseResources(r.Wanted)
		if err != nil { // written by another client
			return costNobody, c.s.onTask("resources", "")
		}
		if cpus := wanted[task.CPUs]; cpus > 0 {
			w.Slots = cpus
			return costLacks, c.onWorker(AttrSlots, strconv.Itoa(cpus))
		}
		all := task.Resources{}
		maps.Copy(all, w.Resources)
		maps.Copy(all, wanted)
		w.Resources = all
		return costLacks, c.onWorker("resources", r.Wanted)
	}
}

// settingOf is the setting of a worker behind a label that it offers by itself, and a value with which it does. Those of limits
// are so high that they bound nothing: the task has its own.
func settingOf(label string) (name, value string, is bool) {
	switch label {
	case task.CommandsLabel:
		return AttrCommands, "on", true
	case task.LimitLabel("memory_max"):
		return "memory_max", "1024TiB", true
	case task.LimitLabel("pids_max"):
		return "pids_max", "4194304", true
	}
	return "", "", false
}

// lackText says what is lacking, and whether anybody has it.
func (c *candidate) lackText(r task.Reason) string {
	if r.Kind == task.KindPaused {
		return r.String()
	}
	b, q := c.s.Task.Bucket, c.s.queue(c.s.Task.Bucket.QueueName()).QueueSpec
	has := func(w task.Worker) bool {
		return !slices.ContainsFunc(task.Unfit(b, q, w.Offer()), func(o task.Reason) bool { return o.Kind == r.Kind && o.Wanted == r.Wanted })
	}
	who := placed(&c.worker)
	if alive := c.s.alive(); len(alive) > 1 && !slices.ContainsFunc(alive, has) {
		who = "no live worker does; " + who + " comes nearest"
	}
	return r.String() + " (" + who + ")"
}

// runsCommands is what a worker offers whatever its configuration says, unless that forbids it.
var runsCommands = []string{task.CommandsLabel}

// hypothetical is a worker that could be started on a node, or on a new one: it
// offers all that is demanded, and no more.
func (s *Situation) hypothetical(node string) *candidate {
	q := s.queue(s.Task.Bucket.QueueName())
	bare := &candidate{s: s, queue: q, worker: task.Worker{
		Registration: task.Registration{Node: node, MaxThreads: task.Unlimited, Slots: 1, Labels: runsCommands}, State: task.WorkerReady,
	}}
	for _, r := range task.Unfit(s.Task.Bucket, unpaused(&q), bare.worker.Offer()) {
		bare.adapt(r)
	}
	kind, text := s.nobody(node, &q)
	if len(s.alive()) == 0 {
		kind, text = KindNoWorker, "no worker is alive"
	}
	offer := bare.worker.Offer()
	offer.Labels = offer.Labels[len(runsCommands):]
	start := bare.onWorker(AttrStart, offerText(&offer))
	c := s.examine(&bare.worker)
	c.cost += costStart
	c.reasons = slices.Insert(c.reasons, 0, blocks(kind, start, text+"; start one with "+start.Value))
	return c
}

// nobody says why only a new worker will do.
func (s *Situation) nobody(node string, q *task.Queue) (Kind, string) {
	alive := s.alive()
	welcome := func(w task.Worker) bool { return !slices.Contains(q.Ignore, w.Node) }
	pinned := func(w task.Worker) bool { return slices.Contains(q.Pin, w.Node) }
	switch {
	case len(q.Pin) > 0 && !slices.ContainsFunc(alive, pinned):
		return KindPinned, "queue " + q.Name + " is pinned to " + some(q.Pin) + ", where no worker is alive"
	case len(q.Pin) == 0 && len(q.Ignore) > 0 && !slices.ContainsFunc(alive, welcome):
		return KindIgnored, "queue " + q.Name + " avoids the nodes of all live workers (" + some(q.Ignore) + ")"
	default:
		return KindUnfit, "no worker comes near to what it needs" + with(" on node ", node)
	}
}

// anyOffer is the text of an offer of nothing.
const anyOffer = "any configuration"

// offerText is an offer as the configuration of a worker has it.
func offerText(o *task.Offer) string {
	var parts, labels []string
	for _, label := range o.Labels {
		if name, value, is := settingOf(label); is {
			parts = append(parts, name+" = "+value)
		} else {
			labels = append(labels, label)
		}
	}
	if o.Slots > 1 {
		parts = append(parts, AttrSlots+" = "+strconv.Itoa(o.Slots))
	}
	for _, attribute := range [][2]string{
		{"node", o.Node}, {"env", o.Env}, {"labels", strings.Join(labels, ",")}, {"resources", o.Resources.Text()},
		{"classes", strings.Join(o.Classes, ",")},
	} {
		if attribute[1] != "" {
			parts = append(parts, attribute[0]+" = "+attribute[1])
		}
	}
	return cmp.Or(strings.Join(parts, "; "), anyOffer)
}

// away reports that the worker is absent, and goes on as if it were present.
func (c *candidate) away() {
	w := &c.worker
	text := fmt.Sprintf("%s is %s%s", placed(w), w.State, heard(c.s.Now, w.Heartbeat))
	c.add(costAway, KindAway, c.onWorker(AttrState, string(task.WorkerReady)), text)
	w.State, w.Reason, w.Busy = task.WorkerReady, "", 0
}

// heard is when a worker was last heard of.
func heard(now statemachine.Time, beat time.Time) string {
	if beat.IsZero() {
		return ""
	}
	return ", last heard of " + span(max(0, now.Sub(task.Stamp(beat)))) + " ago"
}

// idle finds why the worker asks for nothing.
func (c *candidate) idle() {
	w := &c.worker
	if w.State != task.WorkerReady {
		c.add(costDrain, KindDrain, c.onWorker(AttrState, string(task.WorkerReady)), placed(w)+" is told to drain, so it takes nothing new")
	}
	if w.Reason != "" {
		c.add(costDrain, KindClaimsNot, c.onWorker(AttrReason, ""), placed(w)+" claims nothing: "+w.Reason)
	}
	if takes := c.s.Task.Bucket.Slots(); free(w) < takes {
		text := fmt.Sprintf("%s has no free slot (%d of %d busy", placed(w), w.Busy, w.Slots)
		if free(w) > 0 {
			text = fmt.Sprintf("it takes %d slots, %s has %s (%d of %d busy", takes, placed(w), freeText(w), w.Busy, w.Slots)
		}
		if w.Stuck > 0 {
			text += fmt.Sprintf(", %d stuck", w.Stuck)
		}
		c.add(costBusy, KindSlots, c.onWorker(AttrFreeSlots, strconv.Itoa(takes)), text+")")
	}
}
