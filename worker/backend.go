package worker

import (
	"context"
	"io"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Backend is what a worker needs of the site that it works for. [New] makes one
// that talks to Redis; another one may reach the site in another way, for instance
// over HTTP, with a request for each call.
//
// Each call may be sent twice, after an answer that was lost, and is then answered
// as if it was sent once: a registration is known by its Identity, a claim by its
// Request, a report by its round and claim id. Calls come from many goroutines. Texts
// of tasks and of commits may hold any bytes. An error matches [task.ErrUnreachable] if the
// same call may succeed later.
type Backend interface {
	Sessions
	Claims
	Rounds
}

// Sessions is how a worker registers, and stays registered.
type Sessions interface {
	// Site checks that the namespace can be worked for, and says what a worker has to
	// know of it. It comes first.
	Site(ctx context.Context) (Site, error)
	// Register begins a session, which is over when it is not renewed for the length of
	// its lease. Where an earlier session of the name has left tasks the answer lists
	// them instead: report that they are lost (statemachine.Lose), and register again.
	// The error is a [*NameTakenError] while another worker has the name.
	Register(ctx context.Context, r task.Registration) (Registered, error)
	// Renew is the heartbeat of a session. The answer says what is wanted of the
	// worker. The error matches [ErrLeaseLost] if the session is over: its tasks are
	// others' then. It matches [ErrAway] if the worker has asked for that (see
	// Heartbeat.Outlast) and it is certain that nobody reaches the site.
	Renew(ctx context.Context, session Session, h Heartbeat) (Renewal, error)
	// Leave ends a session in which nothing runs any more.
	Leave(ctx context.Context, session Session) error
	// Listen calls renew when a heartbeat is wanted at once, rules when the rules
	// have changed, and errand when something else is asked of the worker, until ctx is done. The
	// calls are hints: some may be missing, some needless.
	Listen(ctx context.Context, worker string, renew, rules func(), errand func(request string))
	// Errand calls do with what a request asks of the worker, and answers what that
	// returns. It does nothing if nobody waits for the answer any more.
	Errand(ctx context.Context, worker, request string, do func(errand string) string) error
}

// Claims is how a worker gets tasks.
type Claims interface {
	// Rules are the queues and buckets that claims are made from, for workers of a node.
	Rules(ctx context.Context, node string) (Rules, error)
	// Claim takes due tasks, at most as many as asked for. It is a heartbeat too. The
	// error matches [ErrLeaseLost] if the session is over.
	Claim(ctx context.Context, req ClaimRequest) (ClaimReply, error)
	// WaitAndClaim waits until there may be work for a worker that got none, at most d, or
	// until ctx is done, and then claims, as Claim does; nothing if ctx was done first, for
	// which the reply is Stale. A wake-up is for one worker alone, to be named in the next
	// claim if this one leaves it open whether it is used, or passed on. A claim without an
	// answer is repeated by Claim, as Waited.
	WaitAndClaim(ctx context.Context, w WaitFor, d time.Duration, req ClaimRequest) Waited
	// PassOn gives a wake-up that the worker has no use for to another one.
	PassOn(ctx context.Context, woken WakeUp) error
}

// Rounds is how a worker reports on its tasks, and asks about them.
type Rounds interface {
	// Turn records how rounds ended, each commit on its own, and then claims if next is
	// not nil, as Claim does.
	Turn(ctx context.Context, commits []Commit, next *ClaimRequest) Turn
	// Tell records news of a running round at once. The error matches
	// statemachine.ErrStale if the round is over.
	Tell(ctx context.Context, worker string, t *statemachine.Task, news News) error
	// Results are what tasks have brought, in the order of the ids.
	Results(ctx context.Context, ids []int64) ([]task.Result, error)
	// Fields are fields of the records of tasks, in the order of the ids; nil for a task
	// that has none of them.
	Fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error)
	// Blob writes the bytes that the site keeps under a SHA-256, in hex, to w, unchecked. The
	// error matches task.ErrNoBlob if it has none.
	Blob(ctx context.Context, sha256 string, w io.Writer) error
	// FirstVersion is the SHA-256 of the version of a source that all tasks of a plan run, sha256 if none was said before;
	// an empty one only asks, and the answer is empty if none was.
	FirstVersion(ctx context.Context, plan task.PlanID, source, sha256 string) (string, error)
	// Keepers asks the other workers that may take tasks of a bucket who keeps a version, PROGRAM@SHA256. It returns
	// some that do, and how many were asked.
	Keepers(ctx context.Context, worker string, b task.Bucket, version string) (keep []string, asked int, err error)
	// PutFiles keeps what a round returns, size bytes under their SHA-256, in hex. The error matches
	// task.ErrNoRoom if there is no room for them. What nobody has asked for may find less room.
	PutFiles(ctx context.Context, sha256 string, size int64, content io.ReaderAt, asked bool) error
}

var _ Backend = (*store.Store)(nil)

// Errors that a worker tells apart, to be matched with errors.Is.
var (
	// ErrNameTaken means that another worker of the same name is alive.
	ErrNameTaken = conn.ErrNameTaken
	// ErrLeaseLost means that the session is over.
	ErrLeaseLost = conn.ErrLeaseLost
	// ErrAway means that the site answers nobody; it comes with task.ErrUnreachable.
	ErrAway = conn.ErrAway
)

// What a worker says when it registers and renews, and the answers.
type (
	// Site is the namespace that a worker works for.
	Site = fleet.Site
	// Registered is the answer: a session, or the tasks of a former one.
	Registered = fleet.Registered
	// Former is a task of a former session.
	Former = tasks.TaskHeader
	// NameTakenError says who has the name of a worker. It matches [ErrNameTaken].
	NameTakenError = fleet.NameTakenError
	// Session is a registered worker.
	Session = fleet.Session
	// Heartbeat is what a worker says of itself when it renews its lease.
	Heartbeat = fleet.Heartbeat
	// Renewal is the answer to a heartbeat.
	Renewal = fleet.Renewal
	// Followed is a task whose output somebody reads just now.
	Followed = fleet.Followed
)

// errHolding means that a worker that leaves still holds tasks.
var errHolding = conn.ErrHolding

// avoidField says to which workers a task is left, and until when.
const avoidField = tasks.AvoidField

// planField is the field of a task that names its plan, or its job.
const planField = tasks.PlanField

// newToken returns a text that no other process makes.
var newToken = conn.NewToken

// reasonQuarantined begins the reason of a worker whose node is quarantined.
const reasonQuarantined = fleet.ReasonQuarantined

// What a worker says when it claims and waits, and the answers.
type (
	// Rules are what decides which tasks the workers of a node may claim.
	Rules = fleet.Rules
	// ClaimRequest asks for due tasks.
	ClaimRequest = tasks.ClaimRequest
	// ClaimReply is the answer.
	ClaimReply = tasks.ClaimReply
	// Claimed is a task with what a worker needs to run it.
	Claimed = tasks.Claimed
	// WaitFor says what an idle worker waits for.
	WaitFor = tasks.WaitFor
	// Waited is the answer to a wait and the claim behind it.
	Waited = tasks.Waited
	// WakeUp is what ended a wait; only the backend knows what it means.
	WakeUp = tasks.WakeUp
)

// What a worker says of rounds, and the answers.
type (
	// Commit is a decided move of a task with the record of the round.
	Commit = tasks.Commit
	// Line is a line for the log of a task.
	Line = tasks.Line
	// NodeNews is what the end of a round says of its node.
	NodeNews = tasks.NodeNews
	// Turn is the answer to commits and the claim that went along.
	Turn = tasks.Turn
	// Outcome is what became of one commit.
	Outcome = tasks.Outcome
	// News is what a worker tells of a round that runs.
	News = tasks.News
	// Progress is how far a program says it has come.
	Progress = tasks.Progress
	// Chunk is a part of what a program writes while it runs.
	Chunk = tasks.Chunk
)

// What the end of a round says of its node; nothing where somebody else ended it.
const (
	NodeGood = tasks.NodeGood
	NodeBad  = tasks.NodeBad
)

// MaxChunk is the most bytes of one [Chunk].
const MaxChunk = tasks.MaxChunk
