package conn

import (
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Keys builds every Redis key of one namespace. No key text stands anywhere
// else. On Redis Cluster a namespace written in braces makes them one slot.
type Keys struct{ prefix string }

// NewKeys are the keys of a namespace.
func NewKeys(namespace string) Keys { return Keys{prefix: namespace + ":"} }

// Meta is a hash: protocol, adopted (watermark of known ids), and what the
// server publishes for the workers.
func (k Keys) Meta() string { return k.prefix + "meta" }

// TaskID is a counter: the id of the newest task.
func (k Keys) TaskID() string { return k.prefix + "task_id" }

// Task is the hash of one task.
func (k Keys) Task(id int64) string { return k.prefix + "task:" + IDText(id) }

// IDText is an id as keys and scripts have it, empty for 0, which no task and no plan has: so scripts learn how such keys begin.
func IDText[ID int64 | task.PlanID](id ID) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(int64(id), 10)
}

// State is a sorted set of the ids in that state; score: the time of the move;
// in open, start_after at creation, and later whichever of the two is later.
func (k Keys) State(s statemachine.State) string { return k.prefix + string(s) }

// States are all state sets, in the order of statemachine.States.
func (k Keys) States() []string {
	all := statemachine.States()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = k.State(s)
	}
	return names
}

// Buckets is a set of the names of all buckets ever used.
func (k Keys) Buckets() string { return k.prefix + "buckets" }

// Ready is a sorted set of the claimable tasks of one bucket; member: padded
// id, score: the earliest start.
func (k Keys) Ready(bucket string) string { return k.prefix + "ready:" + bucket }

// Wake is a list with at most one token: work for this bucket.
func (k Keys) Wake(bucket string) string { return k.prefix + "wake:" + bucket }

// WakeServer is a list with at most one token: work for a server.
func (k Keys) WakeServer() string { return k.prefix + "wake_server" }

// Due is a sorted set of ids by the next moment a server must look at them.
func (k Keys) Due() string { return k.prefix + "due" }

// Request holds the ids a request to open tasks has made; it expires.
func (k Keys) Request(key string) string { return k.prefix + "request:" + key }

// LastClaim holds the answer to the last claim of one worker; it expires.
func (k Keys) LastClaim(worker string) string { return k.prefix + "claim:" + worker }

// DeadLetters is a hash of damaged tasks: id to a description.
func (k Keys) DeadLetters() string { return k.prefix + "set_aside" }

// Managers is a hash of the managers alive: instance to "kind name time".
func (k Keys) Managers() string { return k.prefix + "managers" }

// Handling is a hash of what managers give to their handlers: id of an ended
// task to the instance, and @instance to the end of its lease.
func (k Keys) Handling() string { return k.prefix + "handling" }

// Worker is the set of worker names, as in the original.
func (k Keys) Worker() string { return k.prefix + "worker" }

// WorkerIDs is the counter of the ids of workers, as in the original.
func (k Keys) WorkerIDs() string { return k.prefix + "worker_id" }

// WorkerID is the id of one name, as in the original.
func (k Keys) WorkerID(name string) string { return k.prefix + "worker_id:" + name }

// Lease is a sorted set of the workers with a session; score: the last heartbeat.
func (k Keys) Lease() string { return k.prefix + "lease" }

// WorkerDoc is the hash of one worker in the registry: who it is and how it is.
func (k Keys) WorkerDoc(name string) string { return k.prefix + "worker:" + name }

// Held is a set of the ids that run under the sessions of one worker.
func (k Keys) Held(name string) string { return k.prefix + "held:" + name }

// Call is the channel on which a worker is told to renew its lease at once, or of an errand.
func (k Keys) Call(name string) string { return k.prefix + "call:" + name }

// Errand holds what is asked of workers by one request; it expires.
func (k Keys) Errand(request string) string { return k.prefix + "errand:" + request }

// Answer holds what one worker answers to that; it expires.
func (k Keys) Answer(request, worker string) string {
	return k.prefix + "answer:" + request + ":" + worker
}

// Halt is a list with at most one token: ends the wait of that worker.
func (k Keys) Halt(name string) string { return k.prefix + "halt:" + name }

// Follow is a hash of the tasks whose output somebody reads: id to until when.
func (k Keys) Follow() string { return k.prefix + "follow" }

// Live is a stream of what the program of a task writes; it expires.
func (k Keys) Live(id int64) string { return k.prefix + "live:" + IDText(id) }

// Changed is the channel on which moves to an outcome are announced.
func (k Keys) Changed() string { return k.prefix + "changed" }

// Queues is the set of the names of all queues.
func (k Keys) Queues() string { return k.prefix + "queues" }

// Queue is the record of one queue.
func (k Keys) Queue(name string) string { return k.prefix + "queue:" + name }

// Nodes is the set of the names of all nodes.
func (k Keys) Nodes() string { return k.prefix + "nodes" }

// Node is the record of one node.
func (k Keys) Node(name string) string { return k.prefix + "node:" + name }

// Tokens is a hash of the access tokens: id to "name role sha256 created expires by".
func (k Keys) Tokens() string { return k.prefix + "tokens" }

// Changes is a list of the entries of the log of changes, the oldest first: "call time text".
func (k Keys) Changes() string { return k.prefix + "changes" }

// ChangesGone counts the entries that were removed from its beginning.
func (k Keys) ChangesGone() string { return k.prefix + "changes_gone" }

// BusyQueue is the set of the ids of a queue that run.
func (k Keys) BusyQueue(queue string) string { return k.prefix + "busy:queue:" + queue }

// BusyNode is the set of the ids that run on a node.
func (k Keys) BusyNode(node string) string { return k.prefix + "busy:node:" + node }

// BusyBoth is the set of the ids of a queue that run on a node. The length keeps the two names apart.
func (k Keys) BusyBoth(queue, node string) string {
	return k.prefix + "busy:both:" + strconv.Itoa(len(node)) + ":" + node + ":" + queue
}

// Used is a hash of what the rounds of a node have got of its resources: id to a text.
func (k Keys) Used(node string) string { return k.prefix + "used:" + node }

// Stop is a set of the ids that a worker is to stop.
func (k Keys) Stop(worker string) string { return k.prefix + "stop:" + worker }

// Full is a hash of the limits that somebody was turned away by: q:<queue> or n:<node>.
func (k Keys) Full() string { return k.prefix + "full" }

// WakeQueue is a list with at most one token: a place in the queue is free again.
func (k Keys) WakeQueue(queue string) string { return k.prefix + "wake_queue:" + queue }

// WakeNode is a list with at most one token: a place on the node is free again.
func (k Keys) WakeNode(node string) string { return k.prefix + "wake_node:" + node }

// Submitted holds the id of the task that has a key in its queue. It expires when the task is gone.
func (k Keys) Submitted(queue, key string) string {
	n := strconv.Itoa(len(queue))
	if sum := LongKey(key); sum != "" {
		n, key = n+"#", sum
	}
	return k.prefix + "key:" + n + ":" + queue + ":" + key
}

// LongKey stands for a key that is too long for the name of one in Redis; it is empty for others.
func LongKey(key string) string {
	if len(key) <= longestKey {
		return ""
	}
	return Digest(key)
}

const longestKey = 256

// Tally is a hash of outcomes to how many tasks of the queue came to them.
func (k Keys) Tally(queue string) string { return k.prefix + "tally:" + queue }

// Evidence is a hash of nodes to how a program fared there; it expires.
func (k Keys) Evidence(program string) string { return k.prefix + "evidence:" + program }

// Events is the stream of what happened to tasks.
func (k Keys) Events() string { return k.prefix + "events" }

// Epochs is the hash of the epochs that were opened: number to "at seen_epoch seen_seq seq from_id to_id".
func (k Keys) Epochs() string { return k.prefix + "epochs" }

// PlanID is a counter: the id of the newest plan.
func (k Keys) PlanID() string { return k.prefix + "plan_id" }

// Plans is a sorted set of the ids of all plans; score: when it was made.
func (k Keys) Plans() string { return k.prefix + "plans" }

// Plan is the hash of one plan.
func (k Keys) Plan(id task.PlanID) string { return k.prefix + "plan:" + IDText(id) }

// PlanTasks is the list of the ids of a plan's tasks.
func (k Keys) PlanTasks(id task.PlanID) string { return k.prefix + "plan_tasks:" + IDText(id) }

// Freed is the sorted set of the tasks of a plan that servers have to move.
func (k Keys) Freed(id task.PlanID) string { return k.prefix + "freed:" + IDText(id) }

// Growth is a hash: the steps of a plan that are opened once the lines of a result are known, and how far they are.
func (k Keys) Growth(plan task.PlanID) string { return k.prefix + "growth:" + IDText(plan) }

// Dependants is a list of the tasks that wait for a task.
func (k Keys) Dependants(id int64) string {
	return k.prefix + "dependants:" + IDText(id)
}

// Stuck is a list of those of the dependants that hold while their plan does.
func (k Keys) Stuck(id int64) string { return k.prefix + "stuck:" + IDText(id) }

// Draining is a sorted set of what servers have to do for plans: t<id> for a task that has ended, p<id> for a plan
// some of whose tasks servers have to move, g<id> for one some of whose steps may be opened. Score: since when.
func (k Keys) Draining() string { return k.prefix + "draining" }

// Record is the hash of a record of a kind; of is "kind:name".
func (k Keys) Record(of string) string { return k.prefix + "record:" + of }

// Records is a sorted set of the names of the records of a kind, in the order of the names: all scores are 0.
func (k Keys) Records(kind string) string { return k.prefix + "records:" + kind }

// RecordsDue is a sorted set of those that are due at some time, which is the score, by TIME of Redis.
func (k Keys) RecordsDue(kind string) string { return k.prefix + "records_due:" + kind }

// RecordsEnded is a sorted set of those of which tasks have ended since they were written; score: how many.
func (k Keys) RecordsEnded(kind string) string { return k.prefix + "records_ended:" + kind }

// ArchivedAs is a sorted set of the archived tasks of an outcome, while there is a retention; score: when it was archived.
func (k Keys) ArchivedAs(outcome statemachine.State) string {
	return k.State(statemachine.Archived) + ":" + string(outcome)
}

// Keepers is a sorted set of what keeps archived tasks that are to go: p<plan> or t<task>; score: when to look at it next.
func (k Keys) Keepers() string { return k.prefix + "keepers" }

// Kept is the sorted set of the ids that one keeper keeps.
func (k Keys) Kept(keeper string) string { return k.prefix + "kept:" + keeper }

// Purged is a hash: outcome to how many archived tasks are gone.
func (k Keys) Purged() string { return k.prefix + "purged" }

// PurgedIDs is a sorted set of the ids of tasks that are gone, as ranges: the first of each, and as its score the last.
func (k Keys) PurgedIDs() string { return k.prefix + "purged_ids" }

// Family is what blobs are for: each has keys of its own, so that not everybody who may put some can change all.
type Family string

// The families of blobs.
const (
	Uploads  Family = "blob" // what submitters hand over
	Returned Family = "file" // files of rounds
)

// Blobs is a sorted set of the hashes of all blobs of a family; score: until when each is kept at least.
func (k Keys) Blobs(f Family) string { return k.prefix + string(f) + "s" }

// Blob is the hash of one blob: size, complete, and of an upload after (the newest task when it was put) and
// witness (a task that refers to it).
func (k Keys) Blob(f Family, sha256 string) string { return k.prefix + string(f) + ":" + sha256 }

// BlobPart has a part of a blob, counted from 0.
func (k Keys) BlobPart(f Family, sha256 string, part int64) string {
	return k.Blob(f, sha256) + ":" + strconv.FormatInt(part, 10)
}

// Suspects is the set of the nodes that fail, or are in quarantine.
func (k Keys) Suspects() string { return k.prefix + "suspects" }

// Rules is the channel on which changes of queues and nodes are announced.
func (k Keys) Rules() string { return k.prefix + "rules" }

// All is the pattern that matches every key of the namespace and no other.
func (k Keys) All() string { return globEscape(k.prefix) + "*" }

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
