package store

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// MutatingScripts names the scripts that write, in order.
func MutatingScripts() []string {
	var names []string
	for _, room := range append(rooms, conn.Common) {
		for name, script := range room.List {
			if script.Writes {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Occupy takes a connection of the pool for ordinary commands until the returned
// function is called.
func Occupy(ctx context.Context, s *Store) (release func() error, err error) {
	client, ok := s.Redis.(*redis.Client)
	if !ok {
		return nil, errors.New("no single Redis")
	}
	taken := client.Conn()
	return taken.Close, taken.Ping(ctx).Err()
}

// KeyFunctions are all keys of a namespace, by what a documentation calls them.
func KeyFunctions(namespace string) map[string]string {
	k := conn.NewKeys(namespace)
	return map[string]string{
		"meta": k.Meta(), "task_id": k.TaskID(), "task:<id>": k.Task(7), "<state>": k.State("open"),
		"buckets": k.Buckets(), "ready:<bucket>": k.Ready(task.DefaultBucketName), "wake:<bucket>": k.Wake(task.DefaultBucketName),
		"wake_server": k.WakeServer(), "due": k.Due(), "request:<key>": k.Request("key"), "claim:<worker>": k.LastClaim("name"),
		"set_aside": k.DeadLetters(), "managers": k.Managers(), "handling": k.Handling(), "worker": k.Worker(), "worker_id": k.WorkerIDs(),
		"worker_id:<name>": k.WorkerID("name"), "changed": k.Changed(), "changes": k.Changes(), "changes_gone": k.ChangesGone(),
		"lease": k.Lease(), "worker:<name>": k.WorkerDoc("name"), "held:<name>": k.Held("name"), "call:<name>": k.Call("name"),
		"halt:<name>": k.Halt("name"), "errand:<request>": k.Errand("r"), "answer:<request>:<worker>": k.Answer("r", "w"), "follow": k.Follow(), "live:<id>": k.Live(7),
		"queues": k.Queues(), "queue:<queue>": k.Queue("q"), "nodes": k.Nodes(), "node:<node>": k.Node("n"),
		"busy:queue:<queue>": k.BusyQueue("q"), "busy:node:<node>": k.BusyNode("n"),
		"busy:both:<n>:<node>:<queue>": k.BusyBoth("q", "n"), "used:<node>": k.Used("n"), "stop:<name>": k.Stop("name"),
		"full": k.Full(), "wake_queue:<queue>": k.WakeQueue("q"), "wake_node:<node>": k.WakeNode("n"),
		"key:<n>:<queue>:<key>": k.Submitted("q", "key"), "tally:<queue>": k.Tally("q"), "evidence:<program>": k.Evidence("p"),
		"suspects": k.Suspects(), "tokens": k.Tokens(), "rules": k.Rules(), "events": k.Events(), "epochs": k.Epochs(),
		"plan_id": k.PlanID(), "plans": k.Plans(), "plan:<id>": k.Plan(7), "plan_tasks:<id>": k.PlanTasks(7), "freed:<id>": k.Freed(7),
		"dependants:<id>": k.Dependants(7), "stuck:<id>": k.Stuck(7), "draining": k.Draining(), "growth:<id>": k.Growth(7),
		"record:<kind>:<name>": k.Record("kind:name"), "records:<kind>": k.Records("kind"), "records_due:<kind>": k.RecordsDue("kind"),
		"records_ended:<kind>": k.RecordsEnded("kind"),
		"archived:<outcome>":   k.ArchivedAs("failed"), "keepers": k.Keepers(), "kept:<keeper>": k.Kept("p7"), "purged": k.Purged(),
		"purged_ids": k.PurgedIDs(), "blobs": k.Blobs(conn.Uploads), "blob:<sha256>": k.Blob(conn.Uploads, "0a"),
		"blob:<sha256>:<n>": k.BlobPart(conn.Uploads, "0a", 0), "files": k.Blobs(conn.Returned),
		"file:<sha256>": k.Blob(conn.Returned, "0a"), "file:<sha256>:<n>": k.BlobPart(conn.Returned, "0a", 0),
	}
}

// Failed is the error of a call that a Redis of that description answered so.
func Failed(where config.Redis, answer string) error {
	c, err := conn.Dial(where, "ns", rooms)
	if err != nil {
		return err
	}
	return errors.Join(c.Failed("call", refusal(answer)), c.Close())
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}
