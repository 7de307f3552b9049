package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/task"
)

// Universal is what the client of Redis is told.
var Universal = universal

// MutatingScripts names the scripts that write, in order.
func MutatingScripts() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(scriptList)) {
		if scriptList[name].Writes {
			names = append(names, name)
		}
	}
	return names
}

// Occupy takes a connection of the pool for ordinary commands until the returned
// function is called.
func Occupy(ctx context.Context, s *Store) (release func() error, err error) {
	client, ok := s.rdb.(*redis.Client)
	if !ok {
		return nil, errors.New("no single Redis")
	}
	conn := client.Conn()
	return conn.Close, conn.Ping(ctx).Err()
}

// Script is a script of s as it is sent, to recognise its calls.
func (s *Store) Script(name string) *redis.Script { return s.scripts.byName[name].Script }

// KeyFunctions are all keys of a namespace, by what a documentation calls them.
func KeyFunctions(namespace string) map[string]string {
	k := newKeys(namespace)
	return map[string]string{
		"meta": k.meta(), "task_id": k.taskID(), "task:<id>": k.task(7), "<state>": k.state("open"),
		"buckets": k.buckets(), "ready:<bucket>": k.ready(task.DefaultBucketName), "wake:<bucket>": k.wake(task.DefaultBucketName),
		"wake_server": k.wakeServer(), "due": k.due(), "request:<key>": k.request("key"), "claim:<worker>": k.lastClaim("name"),
		"set_aside": k.setAside(), "managers": k.managers(), "handling": k.handling(), "worker": k.worker(), "worker_id": k.workerIDs(),
		"worker_id:<name>": k.workerID("name"), "changed": k.changed(),
		"lease": k.lease(), "worker:<name>": k.workerDoc("name"), "held:<name>": k.held("name"), "call:<name>": k.call("name"),
		"halt:<name>": k.halt("name"), "follow": k.follow(), "live:<id>": k.live(7),
		"queues": k.queues(), "queue:<queue>": k.queue("q"), "nodes": k.nodes(), "node:<node>": k.node("n"),
		"busy:queue:<queue>": k.busyQueue("q"), "busy:node:<node>": k.busyNode("n"),
		"busy:both:<n>:<node>:<queue>": k.busyBoth("q", "n"), "used:<node>": k.used("n"), "stop:<name>": k.stop("name"),
		"full": k.full(), "wake_queue:<queue>": k.wakeQueue("q"), "wake_node:<node>": k.wakeNode("n"),
		"key:<n>:<queue>:<key>": k.submitted("q", "key"), "tally:<queue>": k.tally("q"), "evidence:<program>": k.evidence("p"),
		"suspects": k.suspects(), "rules": k.rules(), "events": k.events(), "epochs": k.epochs(),
		"plan_id": k.planID(), "plans": k.plans(), "plan:<id>": k.plan(7), "plan_tasks:<id>": k.planTasks(7), "freed:<id>": k.freed(7),
		"dependants:<id>": k.dependants(7), "stuck:<id>": k.stuck(7), "draining": k.draining(), "growth:<id>": k.growth(7),
		"archived:<outcome>": k.archivedAs("failed"), "keepers": k.keepers(), "kept:<keeper>": k.kept("p7"), "purged": k.purged(),
		"purged_ids": k.purgedIDs(),
	}
}

// AddQueueAs is [Store.AddQueue] with the id of its call.
func AddQueueAs(ctx context.Context, s *Store, id string, q task.QueueSpec) error {
	rules, err := s.Rules(ctx, "")
	if err != nil {
		return err
	}
	_, err = s.write(ctx, "add", id, &rules, s.queueCall(&q))
	return err
}

// Arrive notes that a life of Redis has begun, as each new connection does.
func Arrive(ctx context.Context, s *Store, run string) (any, error) {
	return s.run(ctx, "arrive", subject{}, run, mostLives, "")
}

// Interrupt ends the wait of a worker, as the end of its context does.
func (s *Store) Interrupt(ctx context.Context, name string) error { return s.interrupt(ctx, name) }

// Unused judges a wake-up after a claim.
func (s *Store) Unused(w WakeUp, r *ClaimReply) bool { return s.unused(w, r) }

// Away asks whether nobody can reach Redis, after a call that failed.
func (s *Store) Away(ctx context.Context, err error) bool { return s.away(ctx, err) }

// Failed is the error of a call that a Redis of that description answered so.
func Failed(where config.Redis, answer string) error {
	return (&Store{where: where}).failed("call", refusal(answer))
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// Library is the text of a library of scripts.
func Library(name string) string { return common.read("lib/" + name + ".lua") }
