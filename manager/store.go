package manager

import (
	"context"
	"io"
	"time"

	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// namespace is a namespace as a manager needs it, noun by noun; the store in Redis is one.
type namespace interface {
	connected
	reading
	following
	writing
	handled
	queues
	nodes
	tokens
	planning
	explaining
}

var _ namespace = (*store.Store)(nil)

type connected interface {
	Check(ctx context.Context) (conn.ServerInfo, error)
	Close() error
	Namespace() string
	Life(ctx context.Context) (conn.History, error)
	Now(ctx context.Context) (statemachine.Time, error)
	RedisTime(ctx context.Context) (statemachine.Time, error)
	Flush(ctx context.Context) (int64, error)
}

type reading interface {
	blobs

	Count(ctx context.Context) (map[statemachine.State]int64, error)
	IDs(ctx context.Context, state statemachine.State, offset, limit int64, reverse bool) ([]int64, error)
	Newest(ctx context.Context, states []statemachine.State, after tasks.Ranked, most int) ([]tasks.Ranked, error)
	LastID(ctx context.Context) (int64, error)
	NewestID(ctx context.Context) (int64, error)
	Spans(ctx context.Context, first, last int64) ([]tasks.Span, error)
	Task(ctx context.Context, id int64) (*tasks.TaskHeader, error)
	TasksByID(ctx context.Context, ids []int64) ([]*tasks.TaskHeader, error)
	Results(ctx context.Context, ids []int64) ([]task.Result, error)
}

type blobs interface {
	Files(ctx context.Context, hash string, w io.Writer) error
	BlobSize(ctx context.Context, hash string) (size int64, there bool, err error)
	PutBlob(ctx context.Context, hash string, size int64, content io.ReaderAt) error
	Blob(ctx context.Context, hash string, w io.Writer) error
	BlobLimit(ctx context.Context) (int64, error)
}

type following interface {
	Births(ctx context.Context) (*tasks.Births, error)
	Watch(ctx context.Context) (changes <-chan struct{}, stop func())
	Follow(ctx context.Context, id int64, d time.Duration, begin bool) error
	Chunks(ctx context.Context, id int64, after string, d time.Duration) ([]tasks.Chunk, string, error)
}

type writing interface {
	records

	Rules(ctx context.Context, node string) (fleet.Rules, error)
	Prepare(req tasks.OpenRequest) (*tasks.Opening, error)
	Inspect(ctx context.Context, ids []int64) ([]upkeep.Inspection, statemachine.Time, error)
	ApplyAll(ctx context.Context, commits ...tasks.Commit) ([]tasks.Outcome, error)
	SetParams(ctx context.Context, ids []int64, params string, note tasks.Note) ([]statemachine.State, []tasks.Outcome, error)
	SetMeta(ctx context.Context, ids []int64, c tasks.MetaChange) ([]statemachine.State, []tasks.Outcome, error)
	AskStop(ctx context.Context, commits ...tasks.Commit) ([]tasks.Outcome, error)
}

// handled is how managers share the tasks that have ended.
type handled interface {
	RegisterManager(ctx context.Context, p fleet.ManagerRecord) error
	DeregisterManager(ctx context.Context, p fleet.ManagerRecord) error
	Listed(ctx context.Context, state statemachine.State, offset, limit int) (tasks.Batch, error)
	Heads(ctx context.Context, pages ...tasks.Page) ([]tasks.Head, error)
	BeginHandling(ctx context.Context, h fleet.Handling, w *fleet.HandlingWatch, replaces ...string) error
	KeepHandling(ctx context.Context, h fleet.Handling, w *fleet.HandlingWatch, ids ...int64) error
	Take(ctx context.Context, t *tasks.TakeRequest) (tasks.TakeReply, error)
	EndHandling(ctx context.Context, h fleet.Handling) error
}

type queues interface {
	Queue(ctx context.Context, name string) (task.Queue, error)
	Queues(ctx context.Context) ([]task.Queue, statemachine.Time, error)
	AddQueue(ctx context.Context, q task.QueueSpec) error
	SetQueue(ctx context.Context, name string, change func(*task.QueueSpec) error) (task.QueueSpec, error)
	RemoveQueue(ctx context.Context, name string) error
}

type nodes interface {
	Nodes(ctx context.Context) ([]task.Node, statemachine.Time, error)
	NodeRecords(ctx context.Context) ([]task.Node, error)
	SetNode(ctx context.Context, name string, change func(*task.NodeRecord) error) (task.NodeRecord, error)
	RemoveNode(ctx context.Context, name string) error
	Worker(ctx context.Context, name string) (task.Worker, statemachine.Time, error)
	CommandWorker(ctx context.Context, name string, order task.WorkerCommand) (task.Worker, error)
	Ask(ctx context.Context, errand string, workers []string, patience time.Duration) (answers map[string]string, err error)
}

type tokens interface {
	changes

	AddToken(ctx context.Context, r fleet.TokenRecord) (task.Token, error)
	Token(ctx context.Context, id string) (fleet.TokenRecord, error)
	Tokens(ctx context.Context) ([]task.Token, error)
	RemoveToken(ctx context.Context, id string) error
}

// changes is the log of changes.
type changes interface {
	EnterChange(ctx context.Context, call string, e *task.ChangeEntry) error
	ChangesBefore(ctx context.Context, before int64, most int) ([]task.ChangeEntry, error)
}

type records interface {
	RecordsNamed(ctx context.Context, kind string, names []string) ([]task.Record, error)
	RecordNames(ctx context.Context, kind, after string, most int) ([]string, error)
	PendingRecords(ctx context.Context, kind string, most int) (tasks.Pending, error)
	PutRecord(ctx context.Context, w *tasks.RecordWrite) error
	EraseRecord(ctx context.Context, kind, name string, version int64) error
}

type planning interface {
	planview.Store
	growth.Store
	NewPlan(ctx context.Context, spec task.PlanSpec) (task.PlanID, error)
	PlanIDs(ctx context.Context, offset, limit int) ([]task.PlanID, error)
	PlansOf(ctx context.Context, ids []task.PlanID) ([]task.Plan, error)
	PlanTasksBefore(ctx context.Context, id task.PlanID, rank, most int) (ids []int64, first int, err error)
	Planned(ctx context.Context, plan task.PlanID, ids []int64, of int64) ([]plans.Planned, error)
	SteerPlan(ctx context.Context, id task.PlanID, to task.PlanState, by string) (task.PlanState, error)
	KeepGrowth(ctx context.Context, plan task.PlanID, text string, steps int, sources []int64) error
	RetryGrowth(ctx context.Context, plan task.PlanID) (bool, error)
}

// explaining is what [Manager.Why] asks beside the others.
type explaining interface {
	DryClaims(ctx context.Context, claims []tasks.DryClaim) (found []tasks.Hindrance, err error)
	Grace(ctx context.Context) (grace statemachine.Duration, published bool, err error)
	Lease(ctx context.Context) (statemachine.Duration, error)
	LastStep(ctx context.Context) (conn.Step, error)
	ServerSeen(ctx context.Context) (statemachine.Time, error)
}
