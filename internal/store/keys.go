package store

import (
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// keys builds every Redis key of one namespace. No key text stands anywhere
// else. On Redis Cluster a namespace written in braces makes them one slot.
type keys struct{ prefix string }

func newKeys(namespace string) keys { return keys{prefix: namespace + ":"} }

// meta is a hash: protocol, adopted (watermark of known ids), and what the
// server publishes for the workers.
func (k keys) meta() string { return k.prefix + "meta" }

// taskID is a counter: the id of the newest task.
func (k keys) taskID() string { return k.prefix + "task_id" }

// task is the hash of one task.
func (k keys) task(id int64) string { return k.prefix + "task:" + idText(id) }

// idText is an id as keys have it, empty for 0, which no task and no plan has: so scripts learn how such keys begin.
func idText(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// state is a sorted set of the ids in that state; score: the time of the move;
// in open, start_after at creation, and later whichever of the two is later.
func (k keys) state(s statemachine.State) string { return k.prefix + string(s) }

// states are all state sets, in the order of statemachine.States.
func (k keys) states() []string {
	all := statemachine.States()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = k.state(s)
	}
	return names
}

// buckets is a set of the names of all buckets ever used.
func (k keys) buckets() string { return k.prefix + "buckets" }

// ready is a sorted set of the claimable tasks of one bucket; member: padded
// id, score: the earliest start.
func (k keys) ready(bucket string) string { return k.prefix + "ready:" + bucket }

// wake is a list with at most one token: work for this bucket.
func (k keys) wake(bucket string) string { return k.prefix + "wake:" + bucket }

// wakeServer is a list with at most one token: work for a server.
func (k keys) wakeServer() string { return k.prefix + "wake_server" }

// due is a sorted set of ids by the next moment a server must look at them.
func (k keys) due() string { return k.prefix + "due" }

// request holds the ids a request to open tasks has made; it expires.
func (k keys) request(key string) string { return k.prefix + "request:" + key }

// lastClaim holds the answer to the last claim of one worker; it expires.
func (k keys) lastClaim(worker string) string { return k.prefix + "claim:" + worker }

// setAside is a hash of damaged tasks: id to a description.
func (k keys) setAside() string { return k.prefix + "set_aside" }

// managers is a hash of the managers alive: instance to "kind name time".
func (k keys) managers() string { return k.prefix + "managers" }

// handling is a hash of what managers give to their handlers: id of an ended
// task to the instance, and @instance to the end of its lease.
func (k keys) handling() string { return k.prefix + "handling" }

// worker is the set of worker names, workerIDs the counter of their ids,
// workerID the id of one name; as in the original.
func (k keys) worker() string              { return k.prefix + "worker" }
func (k keys) workerIDs() string           { return k.prefix + "worker_id" }
func (k keys) workerID(name string) string { return k.prefix + "worker_id:" + name }

// lease is a sorted set of the workers with a session; score: the last heartbeat.
func (k keys) lease() string { return k.prefix + "lease" }

// workerDoc is the hash of one worker in the registry: who it is and how it is.
func (k keys) workerDoc(name string) string { return k.prefix + "worker:" + name }

// held is a set of the ids that run under the sessions of one worker.
func (k keys) held(name string) string { return k.prefix + "held:" + name }

// call is the channel on which a worker is told to renew its lease at once.
func (k keys) call(name string) string { return k.prefix + "call:" + name }

// halt is a list with at most one token: ends the wait of that worker.
func (k keys) halt(name string) string { return k.prefix + "halt:" + name }

// follow is a hash of the tasks whose output somebody reads: id to until when.
func (k keys) follow() string { return k.prefix + "follow" }

// live is a stream of what the program of a task writes; it expires.
func (k keys) live(id int64) string { return k.prefix + "live:" + idText(id) }

// changed is the channel on which moves to an outcome are announced.
func (k keys) changed() string { return k.prefix + "changed" }

// queues is the set of the names of all queues, queue the record of one.
func (k keys) queues() string           { return k.prefix + "queues" }
func (k keys) queue(name string) string { return k.prefix + "queue:" + name }

// nodes is the set of the names of all nodes, node the record of one.
func (k keys) nodes() string           { return k.prefix + "nodes" }
func (k keys) node(name string) string { return k.prefix + "node:" + name }

// busyQueue, busyNode and busyBoth are sets of the ids that run: of a queue, on a
// node, of a queue on a node. The length keeps the two names of the last apart.
func (k keys) busyQueue(queue string) string { return k.prefix + "busy:queue:" + queue }
func (k keys) busyNode(node string) string   { return k.prefix + "busy:node:" + node }
func (k keys) busyBoth(queue, node string) string {
	return k.prefix + "busy:both:" + strconv.Itoa(len(node)) + ":" + node + ":" + queue
}

// used is a hash of what the rounds of a node have got of its resources: id to a text.
func (k keys) used(node string) string { return k.prefix + "used:" + node }

// stop is a set of the ids that a worker is to stop.
func (k keys) stop(worker string) string { return k.prefix + "stop:" + worker }

// full is a hash of the limits that somebody was turned away by: q:<queue> or n:<node>.
func (k keys) full() string { return k.prefix + "full" }

// wakeQueue and wakeNode are lists with at most one token: a place in the queue,
// or on the node, is free again.
func (k keys) wakeQueue(queue string) string { return k.prefix + "wake_queue:" + queue }
func (k keys) wakeNode(node string) string   { return k.prefix + "wake_node:" + node }

// submitted holds the id that a key of a submission has made; it expires.
func (k keys) submitted(queue, key string) string {
	return k.prefix + "key:" + strconv.Itoa(len(queue)) + ":" + queue + ":" + key
}

// tally is a hash of outcomes to how many tasks of the queue came to them.
func (k keys) tally(queue string) string { return k.prefix + "tally:" + queue }

// evidence is a hash of nodes to how a program fared there; it expires.
func (k keys) evidence(program string) string { return k.prefix + "evidence:" + program }

// events is the stream of what happened to tasks, epochs the hash of the epochs
// that were opened: number to "at seen_epoch seen_seq seq from_id to_id".
func (k keys) events() string { return k.prefix + "events" }
func (k keys) epochs() string { return k.prefix + "epochs" }

// planID is a counter: the id of the newest plan. plans is a sorted set of the ids of all; score: when it was made.
func (k keys) planID() string { return k.prefix + "plan_id" }
func (k keys) plans() string  { return k.prefix + "plans" }

// plan is the hash of one plan, planTasks the list of the ids of its tasks, freed the sorted set of those of them
// that servers have to move.
func (k keys) plan(id int64) string      { return k.prefix + "plan:" + idText(id) }
func (k keys) planTasks(id int64) string { return k.prefix + "plan_tasks:" + idText(id) }
func (k keys) freed(id int64) string     { return k.prefix + "freed:" + idText(id) }

// growth is a hash: the steps of a plan that are opened once the lines of a result are known, and how far they are.
func (k keys) growth(plan int64) string { return k.prefix + "growth:" + idText(plan) }

// dependants is a list of the tasks that wait for a task, stuck those of them that hold while their plan does.
func (k keys) dependants(id int64) string {
	return k.prefix + "dependants:" + idText(id)
}
func (k keys) stuck(id int64) string { return k.prefix + "stuck:" + idText(id) }

// draining is a sorted set of what servers have to do for plans: t<id> for a task that has ended, p<id> for a plan
// some of whose tasks servers have to move, g<id> for one some of whose steps may be opened. Score: since when.
func (k keys) draining() string { return k.prefix + "draining" }

// archivedAs is a sorted set of the archived tasks of an outcome, while there is a retention; score: when it was archived.
func (k keys) archivedAs(outcome statemachine.State) string {
	return k.state(statemachine.Archived) + ":" + string(outcome)
}

// keepers is a sorted set of what keeps archived tasks that are to go: p<plan> or t<task>; score: when to look at it next. kept is
// the sorted set of the ids that one of them keeps.
func (k keys) keepers() string           { return k.prefix + "keepers" }
func (k keys) kept(keeper string) string { return k.prefix + "kept:" + keeper }

// purged is a hash: outcome to how many archived tasks are gone. purgedIDs is a sorted set of their ids as ranges: the first of
// each, and as its score the last.
func (k keys) purged() string    { return k.prefix + "purged" }
func (k keys) purgedIDs() string { return k.prefix + "purged_ids" }

// suspects is the set of the nodes that fail, or are in quarantine.
func (k keys) suspects() string { return k.prefix + "suspects" }

// rules is the channel on which changes of queues and nodes are announced.
func (k keys) rules() string { return k.prefix + "rules" }

// all is the pattern that matches every key of the namespace and no other.
func (k keys) all() string { return globEscape(k.prefix) + "*" }

func globEscape(s string) string {
	out := make([]byte, 0, len(s)+4)
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[', ']', '\\', '^':
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return string(out)
}
