package store_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// calls are all methods of a Store that talk to Redis and can fail.
var calls = map[string]func(context.Context, *store.Store) error{
	"RegisterManager": func(ctx context.Context, st *store.Store) error {
		return st.RegisterManager(ctx, fleet.ManagerRecord{Instance: "i", Name: "n"})
	},
	"Apply": func(ctx context.Context, st *store.Store) error {
		_, err := st.Apply(ctx, tasks.Commit{Move: statemachine.Move{
			ID: 1, From: statemachine.Open, To: statemachine.Cancelled, Deadline: statemachine.Never,
		}})
		return err
	},
	"ApplyAll": func(ctx context.Context, st *store.Store) error {
		_, err := st.ApplyAll(ctx, tasks.Commit{Move: statemachine.Move{
			ID: 1, From: statemachine.Open, To: statemachine.Cancelled, Deadline: statemachine.Never,
		}})
		return err
	},
	"Turn": func(ctx context.Context, st *store.Store) error {
		turn := st.Turn(ctx, []tasks.Commit{{Move: statemachine.Move{
			ID: 1, From: statemachine.Open, To: statemachine.Cancelled, Deadline: statemachine.Never,
		}}}, &tasks.ClaimRequest{Worker: "w", Request: "r", Max: 1, Candidates: storetest.Free(task.Bucket{})})
		if turn.Moved == nil {
			return turn.Claimed
		}
		return turn.Moved
	},
	"BeginHandling": func(ctx context.Context, st *store.Store) error {
		return st.BeginHandling(ctx, handlingOf("i"), &fleet.HandlingWatch{})
	},
	"KeepHandling": func(ctx context.Context, st *store.Store) error {
		return st.KeepHandling(ctx, handlingOf("i"), &fleet.HandlingWatch{})
	},
	"NewPlan": func(ctx context.Context, st *store.Store) error {
		_, err := st.NewPlan(ctx, task.PlanSpec{RequestKey: "k"})
		return err
	},
	"SteerPlan": func(ctx context.Context, st *store.Store) error {
		_, err := st.SteerPlan(ctx, 1, task.PlanReady, "")
		return err
	},
	"Plan": func(ctx context.Context, st *store.Store) error { _, err := st.Plan(ctx, 1); return err },
	"PlansOf": func(ctx context.Context, st *store.Store) error {
		_, err := st.PlansOf(ctx, []task.PlanID{1})
		return err
	},
	"PlanTasksBefore": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.PlanTasksBefore(ctx, 1, -1, 1)
		return err
	},
	"HalfBuilt":        func(ctx context.Context, st *store.Store) error { _, err := st.HalfBuilt(ctx); return err },
	"Life":             func(ctx context.Context, st *store.Store) error { _, err := st.Life(ctx); return err },
	"Births":           func(ctx context.Context, st *store.Store) error { _, err := st.Births(ctx); return err },
	"ListPlans":        func(ctx context.Context, st *store.Store) error { _, err := st.ListPlans(ctx, 0, 1); return err },
	"PlanIDs":          func(ctx context.Context, st *store.Store) error { _, err := st.PlanIDs(ctx, 0, 1); return err },
	"PlanTasks":        func(ctx context.Context, st *store.Store) error { _, err := st.PlanTasks(ctx, 1, 0, 1); return err },
	"DueWork":          func(ctx context.Context, st *store.Store) error { _, err := st.DueWork(ctx, 0, 1); return err },
	"NotifyDependants": func(ctx context.Context, st *store.Store) error { _, err := st.NotifyDependants(ctx, 1, 1); return err },
	"FreedTasks":       func(ctx context.Context, st *store.Store) error { _, _, err := st.FreedTasks(ctx, 1, 0, 1); return err },
	"FreedIDs":         func(ctx context.Context, st *store.Store) error { _, err := st.FreedIDs(ctx, 1, 0, 1); return err },
	"Planned": func(ctx context.Context, st *store.Store) error {
		_, err := st.Planned(ctx, 1, []int64{1}, 1)
		return err
	},
	"PlanSum": func(ctx context.Context, st *store.Store) error { _, err := st.PlanSum(ctx, 1); return err },
	"Dependants": func(ctx context.Context, st *store.Store) error {
		_, err := st.Dependants(ctx, 1, true, 0, 1)
		return err
	},
	"KeepGrowth":  func(ctx context.Context, st *store.Store) error { return st.KeepGrowth(ctx, 1, "{}", 1, nil) },
	"Growth":      func(ctx context.Context, st *store.Store) error { _, err := st.Growth(ctx, 1); return err },
	"Grown":       func(ctx context.Context, st *store.Store) error { _, err := st.Grown(ctx, 1, "0", "", nil); return err },
	"RetryGrowth": func(ctx context.Context, st *store.Store) error { _, err := st.RetryGrowth(ctx, 1); return err },
	"ResultOf":    func(ctx context.Context, st *store.Store) error { _, err := st.ResultOf(ctx, 1); return err },
	"Sources":     func(ctx context.Context, st *store.Store) error { _, err := st.Sources(ctx, []int64{1}); return err },
	"Retally": func(ctx context.Context, st *store.Store) error {
		sum := plans.PlanSum{Plan: task.Plan{ID: 1}}
		_, err := st.Retally(ctx, &sum, &sum)
		return err
	},
	"Requeue":     func(ctx context.Context, st *store.Store) error { return st.Requeue(ctx, 1, 1) },
	"Results":     func(ctx context.Context, st *store.Store) error { _, err := st.Results(ctx, []int64{1}); return err },
	"EndHandling": func(ctx context.Context, st *store.Store) error { return st.EndHandling(ctx, handlingOf("i")) },
	"Take": func(ctx context.Context, st *store.Store) error {
		_, err := st.Take(ctx, &tasks.TakeRequest{Instance: "i", Outcome: statemachine.Succeeded, Ask: []int64{1}})
		return err
	},
	"Heads": func(ctx context.Context, st *store.Store) error {
		_, err := st.Heads(ctx, tasks.Page{State: statemachine.Succeeded, Most: 1})
		return err
	},
	"Asides":  func(ctx context.Context, st *store.Store) error { _, err := st.Asides(ctx); return err },
	"Buckets": func(ctx context.Context, st *store.Store) error { _, err := st.Buckets(ctx); return err },
	"Check":   func(ctx context.Context, st *store.Store) error { _, err := st.Check(ctx); return err },
	"Claim": func(ctx context.Context, st *store.Store) error {
		_, err := st.Claim(ctx, tasks.ClaimRequest{Worker: "w", Request: "r", Max: 1, Candidates: storetest.Free(task.Bucket{})})
		return err
	},
	"Count":   func(ctx context.Context, st *store.Store) error { _, err := st.Count(ctx); return err },
	"Counted": func(ctx context.Context, st *store.Store) error { _, err := st.Counted(ctx); return err },
	"Chunks": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.Chunks(ctx, 1, "", time.Millisecond)
		return err
	},
	"DeregisterManager": func(ctx context.Context, st *store.Store) error {
		return st.DeregisterManager(ctx, fleet.ManagerRecord{Instance: "i"})
	},
	"Due": func(ctx context.Context, st *store.Store) error { _, err := st.Due(ctx, 1); return err },
	"Fields": func(ctx context.Context, st *store.Store) error {
		_, err := st.Fields(ctx, []int64{1}, "state")
		return err
	},
	"Run": func(ctx context.Context, st *store.Store) error {
		_, err := st.Run(ctx, "rules", conn.Subject{})
		return err
	},
	"RunList": func(ctx context.Context, st *store.Store) error {
		_, err := st.RunList(ctx, "rules", conn.Subject{})
		return err
	},
	"RunReading": func(ctx context.Context, st *store.Store) error {
		_, err := st.RunReading(ctx, conn.ScriptArgs{Name: "rules"}, func(redis.Pipeliner) {})
		return err
	},
	"RunOn": func(ctx context.Context, st *store.Store) error {
		_, err := st.RunOn(ctx, st.Session, "rules", conn.Subject{})
		return err
	},
	"RunBehind": func(ctx context.Context, st *store.Store) error {
		wait := redis.NewStringSliceCmd(ctx, "blpop", st.Keys.WakeServer(), "0.001")
		_, err := st.RunBehind(ctx, wait, time.Millisecond, conn.ScriptArgs{Name: "rules"})
		return err
	},
	"Published": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.Published(ctx, "lease", 0)
		return err
	},
	"Pipelined": func(ctx context.Context, st *store.Store) error {
		return st.Pipelined(ctx, "time", func(p redis.Pipeliner) { p.Time(ctx) })
	},
	"Follow":    func(ctx context.Context, st *store.Store) error { return st.Follow(ctx, 1, time.Second, true) },
	"Interrupt": func(ctx context.Context, st *store.Store) error { return st.Interrupt(ctx, "w", "r") },
	"Lease":     func(ctx context.Context, st *store.Store) error { _, err := st.Lease(ctx); return err },
	"Leave":     func(ctx context.Context, st *store.Store) error { return st.Leave(ctx, fleet.Session{Name: "w"}) },
	"Lost": func(ctx context.Context, st *store.Store) error {
		_, err := st.Lost(ctx, 1, fleet.Watched{})
		return err
	},
	"CommandWorker": func(ctx context.Context, st *store.Store) error {
		_, err := st.CommandWorker(ctx, "w", task.CommandDrain)
		return err
	},
	"Ask": func(ctx context.Context, st *store.Store) error {
		_, err := st.Ask(ctx, "{}", []string{"w"}, time.Millisecond)
		return err
	},
	"FirstVersion": func(ctx context.Context, st *store.Store) error {
		_, err := st.FirstVersion(ctx, 1, "s", "0a")
		return err
	},
	"Keepers": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.Keepers(ctx, "w", task.Bucket{}, "sum@0a")
		return err
	},
	"Errand": func(ctx context.Context, st *store.Store) error {
		return st.Errand(ctx, "w", "r", func(string) string { return "" })
	},
	"PassOn": func(ctx context.Context, st *store.Store) error { return st.PassOn(ctx, wakeUp(st)) },
	"Tell progress": func(ctx context.Context, st *store.Store) error {
		return st.Tell(ctx, "w", &statemachine.Task{ID: 1}, tasks.News{Progress: &tasks.Progress{}})
	},
	"PublishLease": func(ctx context.Context, st *store.Store) error { return st.PublishLease(ctx, second) },
	"Remind":       func(ctx context.Context, st *store.Store) error { _, err := st.Remind(ctx, second); return err },
	"Register": func(ctx context.Context, st *store.Store) error {
		_, err := st.Register(ctx, storetest.Registration("r"))
		return err
	},
	"Renew": func(ctx context.Context, st *store.Store) error {
		_, err := st.Renew(ctx, fleet.Session{Name: "w"}, fleet.Heartbeat{})
		return err
	},
	"Tell chunks": func(ctx context.Context, st *store.Store) error {
		return st.Tell(ctx, "w", &statemachine.Task{ID: 1}, tasks.News{Chunks: []tasks.Chunk{{Data: []byte("x")}}})
	},
	"Worker":          func(ctx context.Context, st *store.Store) error { _, _, err := st.Worker(ctx, "w"); return err },
	"Workers":         func(ctx context.Context, st *store.Store) error { _, _, err := st.Workers(ctx); return err },
	"InterruptServer": func(ctx context.Context, st *store.Store) error { return st.InterruptServer(ctx) },
	"IDs": func(ctx context.Context, st *store.Store) error {
		_, err := st.IDs(ctx, statemachine.Open, 0, 1, false)
		return err
	},
	"Newest": func(ctx context.Context, st *store.Store) error {
		_, err := st.Newest(ctx, statemachine.States(), tasks.Ranked{}, 1)
		return err
	},
	"Inspect":  func(ctx context.Context, st *store.Store) error { _, _, err := st.Inspect(ctx, []int64{1}); return err },
	"LastID":   func(ctx context.Context, st *store.Store) error { _, err := st.LastID(ctx); return err },
	"NewestID": func(ctx context.Context, st *store.Store) error { _, err := st.NewestID(ctx); return err },
	"Spans":    func(ctx context.Context, st *store.Store) error { _, err := st.Spans(ctx, 1, 2); return err },
	"Listed": func(ctx context.Context, st *store.Store) error {
		_, err := st.Listed(ctx, statemachine.Open, 0, 1)
		return err
	},
	"MoveWatermark": func(ctx context.Context, st *store.Store) error { _, err := st.MoveWatermark(ctx, 0, 1); return err },
	"Tell": func(ctx context.Context, st *store.Store) error {
		return st.Tell(ctx, "w", &statemachine.Task{ID: 1}, tasks.News{Lines: []tasks.Line{{Text: "x"}}})
	},
	"SetMeta": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.SetMeta(ctx, []int64{1}, tasks.MetaChange{Set: map[string]string{"phase": "load"}})
		return err
	},
	"SetParams": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.SetParams(ctx, []int64{1}, `{"a":1}`, tasks.Note{})
		return err
	},
	"RedisTime": func(ctx context.Context, st *store.Store) error { _, err := st.RedisTime(ctx); return err },
	"LastStep":  func(ctx context.Context, st *store.Store) error { _, err := st.LastStep(ctx); return err },
	"NoteStep":  func(ctx context.Context, st *store.Store) error { return st.NoteStep(ctx, noon, time.Second) },
	"TellOverdue": func(ctx context.Context, st *store.Store) error {
		return st.TellOverdue(ctx, &tasks.TaskHeader{Task: statemachine.Task{ID: 1}})
	},
	"Now": func(ctx context.Context, st *store.Store) error { _, err := st.Now(ctx); return err },
	"Open": func(ctx context.Context, st *store.Store) error {
		_, err := st.Open(ctx, tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
		return err
	},
	"Postpone":     func(ctx context.Context, st *store.Store) error { return st.Postpone(ctx, noon, second, 1) },
	"Grace":        func(ctx context.Context, st *store.Store) error { _, _, err := st.Grace(ctx); return err },
	"PublishGrace": func(ctx context.Context, st *store.Store) error { return st.PublishGrace(ctx, second) },
	"Reindex": func(ctx context.Context, st *store.Store) error {
		_, err := st.Reindex(ctx, &tasks.TaskHeader{Task: statemachine.Task{ID: 1}}, 0)
		return err
	},
	"Relist": func(ctx context.Context, st *store.Store) error {
		_, err := st.Relist(ctx, &upkeep.Inspection{Task: tasks.TaskHeader{Task: statemachine.Task{ID: 1}}}, statemachine.Open, noon)
		return err
	},
	"DeadLetter": func(ctx context.Context, st *store.Store) error {
		_, err := st.DeadLetter(ctx, &upkeep.Inspection{Task: tasks.TaskHeader{Task: statemachine.Task{ID: 1}}}, noon)
		return err
	},
	"Task":      func(ctx context.Context, st *store.Store) error { _, err := st.Task(ctx, 1); return err },
	"TasksByID": func(ctx context.Context, st *store.Store) error { _, err := st.TasksByID(ctx, []int64{1}); return err },
	"WaitServer": func(ctx context.Context, st *store.Store) error {
		_, err := st.WaitServer(ctx, time.Millisecond)
		return err
	},
	"WaitAndClaim": func(ctx context.Context, st *store.Store) error {
		got := st.WaitAndClaim(ctx, waitFor("w"), time.Millisecond, tasks.ClaimRequest{
			Worker: "w", Request: conn.NewToken(), Max: 1, Candidates: storetest.Free(task.Bucket{}),
		})
		return errors.Join(got.Err, got.Claimed)
	},
	"Watermark": func(ctx context.Context, st *store.Store) error { _, _, err := st.Watermark(ctx); return err },
	"AddQueue": func(ctx context.Context, st *store.Store) error {
		return st.AddQueue(ctx, task.QueueSpec{Name: "of" + strings.ToLower(conn.NewToken())})
	},
	"AddToken": func(ctx context.Context, st *store.Store) error {
		_, err := st.AddToken(ctx, tokenOf("id"+conn.NewToken(), "of"+conn.NewToken()))
		return err
	},
	"PutRecord": func(ctx context.Context, st *store.Store) error {
		return st.PutRecord(ctx, &tasks.RecordWrite{Record: task.Record{Kind: "k", Name: conn.NewToken()}, Call: "c"})
	},
	"EraseRecord": func(ctx context.Context, st *store.Store) error { return st.EraseRecord(ctx, "k", "n", 1) },
	"PendingRecords": func(ctx context.Context, st *store.Store) error {
		_, err := st.PendingRecords(ctx, "k", 1)
		return err
	},
	"RecordsNamed": func(ctx context.Context, st *store.Store) error {
		_, err := st.RecordsNamed(ctx, "k", []string{"n"})
		return err
	},
	"RecordNames": func(ctx context.Context, st *store.Store) error {
		_, err := st.RecordNames(ctx, "k", "", 1)
		return err
	},
	"Token":  func(ctx context.Context, st *store.Store) error { _, err := st.Token(ctx, "id"); return err },
	"Tokens": func(ctx context.Context, st *store.Store) error { _, err := st.Tokens(ctx); return err },
	"EnterChange": func(ctx context.Context, st *store.Store) error {
		return st.EnterChange(ctx, conn.NewToken(), changeOf("1"))
	},
	"ChangesBefore":  func(ctx context.Context, st *store.Store) error { _, err := st.ChangesBefore(ctx, 0, 1); return err },
	"ShortenChanges": func(ctx context.Context, st *store.Store) error { return st.ShortenChanges(ctx, 1) },
	"RemoveToken":    func(ctx context.Context, st *store.Store) error { return st.RemoveToken(ctx, "id") },
	"AskStop": func(ctx context.Context, st *store.Store) error {
		_, err := st.AskStop(ctx, tasks.Commit{Move: statemachine.Move{ID: 1, From: statemachine.Running, AskStop: true}})
		return err
	},
	"EmptyBuckets": func(ctx context.Context, st *store.Store) error { _, err := st.EmptyBuckets(ctx); return err },
	"Evidence":     func(ctx context.Context, st *store.Store) error { _, err := st.Evidence(ctx, "p"); return err },
	"Judge": func(ctx context.Context, st *store.Store) error {
		_, err := st.Judge(ctx, fleet.Verdict{})
		return err
	},
	"DryClaims": func(ctx context.Context, st *store.Store) error {
		_, err := st.DryClaims(ctx, []tasks.DryClaim{{
			Claim: tasks.ClaimRequest{Worker: "w", Max: 1, Candidates: storetest.Free(task.Bucket{})}, Queue: task.DefaultQueue,
		}})
		return err
	},
	"NodeRecords":   func(ctx context.Context, st *store.Store) error { _, err := st.NodeRecords(ctx); return err },
	"Nodes":         func(ctx context.Context, st *store.Store) error { _, _, err := st.Nodes(ctx); return err },
	"Facts":         func(ctx context.Context, st *store.Store) error { _, err := st.Facts(ctx); return err },
	"Info":          func(ctx context.Context, st *store.Store) error { _, err := st.Info(ctx, "memory"); return err },
	"LoadScripts":   func(ctx context.Context, st *store.Store) error { return st.LoadScripts(ctx) },
	"Sizes":         func(ctx context.Context, st *store.Store) error { _, err := st.Sizes(ctx); return err },
	"Gaps":          func(ctx context.Context, st *store.Store) error { _, err := st.Gaps(ctx); return err },
	"Epochs":        func(ctx context.Context, st *store.Store) error { _, err := st.Epochs(ctx); return err },
	"PublishEvents": func(ctx context.Context, st *store.Store) error { return st.PublishEvents(ctx, 5) },
	"OpenEpoch":     func(ctx context.Context, st *store.Store) error { _, err := st.OpenEpoch(ctx, false); return err },
	"OpenAll": func(ctx context.Context, st *store.Store) error {
		_, err := st.OpenAll(ctx, tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
		return err
	},
	"PutBlob": func(ctx context.Context, st *store.Store) error {
		return st.PutBlob(ctx, someHash, 1, strings.NewReader("b"))
	},
	"Blob":  func(ctx context.Context, st *store.Store) error { return st.Blob(ctx, someHash, io.Discard) },
	"Sweep": func(ctx context.Context, st *store.Store) error { _, _, err := st.Sweep(ctx); return err },
	"DismissWorkers": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.DismissWorkers(ctx, time.Hour, 0)
		return err
	},
	"Doubtful":     func(ctx context.Context, st *store.Store) error { _, err := st.Doubtful(ctx); return err },
	"BlobSize":     func(ctx context.Context, st *store.Store) error { _, _, err := st.BlobSize(ctx, someHash); return err },
	"BlobLimit":    func(ctx context.Context, st *store.Store) error { _, err := st.BlobLimit(ctx); return err },
	"PublishBlobs": func(ctx context.Context, st *store.Store) error { return st.PublishBlobs(ctx, 5, 7, time.Hour) },
	"PutFiles": func(ctx context.Context, st *store.Store) error {
		return st.PutFiles(ctx, someHash, 1, strings.NewReader("b"), true)
	},
	"Files":      func(ctx context.Context, st *store.Store) error { return st.Files(ctx, someHash, io.Discard) },
	"FilesUntil": func(ctx context.Context, st *store.Store) error { _, err := st.FilesUntil(ctx, someHash); return err },
	"Prune": func(ctx context.Context, st *store.Store) error {
		_, err := st.Prune(ctx, []string{task.Bucket{Priority: 7}.Name()})
		return err
	},
	"PublishQuarantine": func(ctx context.Context, st *store.Store) error { return st.PublishQuarantine(ctx, "warn") },
	"Queue": func(ctx context.Context, st *store.Store) error {
		_, err := st.Queue(ctx, task.DefaultQueue)
		return err
	},
	"Queues":       func(ctx context.Context, st *store.Store) error { _, _, err := st.Queues(ctx); return err },
	"Recount":      func(ctx context.Context, st *store.Store) error { _, err := st.Recount(ctx); return err },
	"Quarantine":   func(ctx context.Context, st *store.Store) error { _, err := st.Quarantine(ctx); return err },
	"ServerSeen":   func(ctx context.Context, st *store.Store) error { _, err := st.ServerSeen(ctx); return err },
	"Site":         func(ctx context.Context, st *store.Store) error { _, err := st.Site(ctx); return err },
	"Suspects":     func(ctx context.Context, st *store.Store) error { _, err := st.Suspects(ctx); return err },
	"SuspectNodes": func(ctx context.Context, st *store.Store) error { _, err := st.SuspectNodes(ctx, "n"); return err },
	"RemoveNode":   func(ctx context.Context, st *store.Store) error { return st.RemoveNode(ctx, "n") },
	"RemoveQueue":  func(ctx context.Context, st *store.Store) error { return st.RemoveQueue(ctx, "none") },
	"Rules":        func(ctx context.Context, st *store.Store) error { _, err := st.Rules(ctx, "n"); return err },
	"SetNode": func(ctx context.Context, st *store.Store) error {
		_, err := st.SetNode(ctx, "n", func(n *task.NodeRecord) error { return n.Set("maxthreads", "2") })
		return err
	},
	"SetQueue": func(ctx context.Context, st *store.Store) error {
		_, err := st.SetQueue(ctx, task.DefaultQueue, func(q *task.QueueSpec) error { return q.Set("threads", "9") })
		return err
	},
	"Outdated": func(ctx context.Context, st *store.Store) error {
		_, _, _, err := st.Outdated(ctx, upkeep.PurgeLease{By: "s", For: time.Second}, nil, 1, nil)
		return err
	},
	"Overstayed": func(ctx context.Context, st *store.Store) error {
		_, err := st.Overstayed(ctx, []upkeep.Retention{{Outcome: statemachine.Failed, Age: time.Second}}, time.Second)
		return err
	},
	"Purge": func(ctx context.Context, st *store.Store) error {
		_, err := st.Purge(ctx, []upkeep.Outgoing{{ID: 99, Outcome: statemachine.Failed}})
		return err
	},
	"Retain":      func(ctx context.Context, st *store.Store) error { _, err := st.Retain(ctx, []int64{1}, 1); return err },
	"KeepIndex":   func(ctx context.Context, st *store.Store) error { _, _, err := st.KeepIndex(ctx); return err },
	"Origin":      func(ctx context.Context, st *store.Store) error { _, err := st.Origin(ctx); return err },
	"NoteArchive": func(ctx context.Context, st *store.Store) error { return st.NoteArchive(ctx, "full") },
	"PurgedAll":   func(ctx context.Context, st *store.Store) error { _, err := st.PurgedAll(ctx); return err },
	"PurgedCount": func(ctx context.Context, st *store.Store) error { _, err := st.PurgedCount(ctx); return err },
	"SomeSpans":   func(ctx context.Context, st *store.Store) error { _, _, err := st.SomeSpans(ctx, 1, 2); return err },
	"Census":      func(ctx context.Context, st *store.Store) error { _, err := st.Census(ctx); return err },
	"EventSpan":   func(ctx context.Context, st *store.Store) error { _, _, err := st.EventSpan(ctx); return err },
	"Events": func(ctx context.Context, st *store.Store) error {
		_, err := st.Events(ctx, 0, 1)
		return err
	},
	"Indices": func(ctx context.Context, st *store.Store) error { _, err := st.Indices(ctx); return err },
	"Members": func(ctx context.Context, st *store.Store) error {
		_, _, err := st.Members(ctx, upkeep.Index{Kind: upkeep.IndexDue}, 0)
		return err
	},
	"Strays": func(ctx context.Context, st *store.Store) error {
		_, err := st.Strays(ctx, upkeep.Index{Kind: upkeep.IndexHeld, Of: "w"}, []string{"1"})
		return err
	},
	"Unlist": func(ctx context.Context, st *store.Store) error {
		_, err := st.Unlist(ctx, upkeep.Index{Kind: upkeep.IndexReady, Of: task.DefaultBucketName}, []string{"zz"})
		return err
	},
	// Last by hand: it would take the task that others read.
	"Flush": func(ctx context.Context, st *store.Store) error { _, err := st.Flush(ctx); return err },
}

// waitFor waits as a worker that takes from the default bucket.
func waitFor(worker string) tasks.WaitFor {
	return tasks.WaitFor{Worker: worker, Candidates: storetest.Free(task.Bucket{})}
}

// wakeUp is one for work in the default bucket.
func wakeUp(st *store.Store) tasks.WakeUp {
	return tasks.WakeUp(st.Namespace() + ":wake:" + task.Bucket{}.Name())
}

// eachCall runs f for every method that takes a context and returns an error.
func eachCall(t *testing.T, f func(t *testing.T, call func(context.Context, *store.Store) error)) {
	t.Helper()
	kind := reflect.TypeFor[*store.Store]()
	for m := range kind.Methods() {
		n := m.Type.NumOut()
		takes := m.Type.NumIn() > 1 && m.Type.In(1) == reflect.TypeFor[context.Context]()
		if !takes || n == 0 || m.Type.Out(n-1) != reflect.TypeFor[error]() {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			call, ok := calls[m.Name]
			if !ok {
				t.Fatal("this method is not in the table calls")
			}
			f(t, call)
		})
	}
}

// TestCancelled: a caller that gives up gets its own reason, and not that Redis is
// unreachable.
func TestCancelled(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	eachCall(t, func(t *testing.T, call func(context.Context, *store.Store) error) {
		t.Helper()
		if err := call(ctx, sp.Store); !errors.Is(err, context.Canceled) || errors.Is(err, task.ErrUnreachable) {
			t.Errorf("error %v", err)
		}
	})
}

// TestCancelledInTheMiddle: giving up while Redis is being checked is no
// Redis without INFO.
func TestCancelledInTheMiddle(t *testing.T) {
	t.Parallel()
	far, proxy := through(t, storetest.New(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drop := proxy.DropReply(redistest.Command("INFO"))
	go func() {
		select {
		case <-drop.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	if _, err := far.Store.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestUnreachable: a Redis that is not there has one error.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	far, proxy := through(t, sp)
	proxy.Down()
	st := far.Dial(t, conn.WithRetries(-1))
	eachCall(t, func(t *testing.T, call func(context.Context, *store.Store) error) {
		t.Helper()
		if err := call(t.Context(), st); !errors.Is(err, task.ErrUnreachable) {
			t.Errorf("error %v", err)
		}
	})
}

// TestHangs: where Redis does not answer, a caller's deadline is kept.
func TestHangs(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	far, proxy := through(t, sp)
	if _, err := far.Store.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Hang()
	defer proxy.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := far.Store.LastID(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, task.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	await.Within(t, "a call with a deadline of 0.1 s", began, time.Now(), time.Second)
}

// TestScriptsAreLost: Redis forgets scripts at a restart, or when told to;
// every call carries on.
func TestScriptsAreLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t) // not the shared one: others lose their scripts, too
	sp := storetest.On(t, server)
	sp.Open(t, storetest.Spec())
	forget := func() { server.Do(t, "SCRIPT", "FLUSH") }
	for name, call := range calls {
		if name == "Facts" {
			continue // it needs no script, and asks what the user of the test may not
		}
		forget()
		if err := call(t.Context(), sp.Store); err != nil && !refused(err) && !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sp = storetest.On(t, server) // the calls have left tasks in any order
	forget()
	id := bring(t, sp, statemachine.Succeeded)
	forget()
	must(t, sp, id, statemachine.Manager, statemachine.Archive)
	if task := sp.Task(t, id); task.State != statemachine.Archived {
		t.Errorf("task is %s", task.State)
	}
}

// refused reports whether err says that a task was not where the call expected
// it, rather than that the call failed.
func refused(err error) bool {
	return errors.Is(err, task.ErrNoQueue) || errors.Is(err, conn.ErrLeaseLost) || errors.Is(err, conn.ErrHandlingLost) || errors.Is(err, task.ErrNoWorker) || errors.Is(err, statemachine.ErrStale) || errors.Is(err, statemachine.ErrConflict) || errors.Is(err, task.ErrDamaged)
}
