package conn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/tdf-go/tdf/task"
)

// Errors that only the packages of TDF meet, to be matched with errors.Is. The others are in package task.
var (
	// ErrHistory means Redis has lost changes that it had acknowledged, and no server
	// has opened a new epoch yet. It comes as a *[HistoryError], which matches
	// task.ErrUnreachable as well.
	ErrHistory = errors.New("redis has lost changes that it had acknowledged")
	// ErrUnconfirmed means that Redis was started anew, or another one has taken over, and that no server has said yet that ids may be
	// given out: some may have been lost. It comes with task.ErrUnreachable: the same call succeeds once a server has.
	ErrUnconfirmed = errors.New("redis was started anew or failed over, and no server has confirmed it yet; waiting for a tdf-server")
	// ErrManagerAlive means a project's own manager handles this namespace.
	ErrManagerAlive = errors.New("a manager is alive on this namespace")
	// ErrLeaseLost means a worker's lease was given up: a server found it over,
	// or another process has registered under the name. Its rounds are others'.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrAway means that nobody can reach Redis: nothing listens where it was. It comes
	// with task.ErrUnreachable.
	ErrAway = errors.New("redis is away")
	// ErrHandlingLost means a manager's lease on the tasks it handles is over.
	ErrHandlingLost = errors.New("the handling lease is lost")
	// ErrHandled means that a manager handles the task, which another one wants to archive.
	ErrHandled = errors.New("a manager handles the task")
	// ErrNameTaken means another worker has the same name and nobody has said that
	// it is dead.
	ErrNameTaken = errors.New("the worker's name is taken")
	// ErrRules means that the rules have changed since a request was made from them.
	ErrRules = errors.New("the rules of queues have changed")
	// ErrGrown means somebody else has opened these tasks of a step of a plan already.
	ErrGrown = errors.New("these tasks of the step were opened already")
	// ErrHolding means a worker cannot leave because it still holds tasks.
	ErrHolding = errors.New("the worker still holds tasks")
)

// HistoryError says how much Redis has lost. It matches [ErrHistory] and, since
// the same call succeeds once a server has opened a new epoch, [task.ErrUnreachable].
type HistoryError struct {
	// Redis is how far it is, Seen how far this program knows it to have been.
	Redis, Seen History
}

// Error implements error.
func (e *HistoryError) Error() string {
	return fmt.Sprintf("%v: it is at epoch %d, change %d, and was at epoch %d, change %d; waiting for a server to open a new epoch",
		ErrHistory, e.Redis.Epoch, e.Redis.Seq, e.Seen.Epoch, e.Seen.Seq)
}

// Is reports whether target is ErrHistory or task.ErrUnreachable.
func (e *HistoryError) Is(target error) bool {
	return target == ErrHistory || target == task.ErrUnreachable
}

// SetupError says what about the Redis server, or about the way to it, must be
// changed: the setting by section and key, its value, and the remedy.
type SetupError struct {
	// Setting is "[redis] port" or the name of a Redis server setting.
	Setting string
	// Value is what it is now; empty for secrets.
	Value string
	// Remedy says what to do.
	Remedy string
	// Err is the cause; it matches task.ErrUnreachable, task.ErrUnfit or task.ErrProtocol.
	Err error
}

// Error implements error.
func (e *SetupError) Error() string {
	setting := e.Setting
	if e.Value != "" {
		setting += " = " + e.Value
	}
	return fmt.Sprintf("%s: %v; %s", setting, e.Err, e.Remedy)
}

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// DamageError says why a task is damaged. It matches task.ErrDamaged.
type DamageError struct {
	ID int64
	// Reason is short: "hash is missing", "field round: ...".
	Reason string
}

// Error implements error.
func (e *DamageError) Error() string { return fmt.Sprintf("task %d is damaged: %s", e.ID, e.Reason) }

// Is reports whether target is task.ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == task.ErrDamaged }

// ExitCode is the exit code of a program that ends with this error: 3 if Redis
// is unreachable, 2 if it or the configuration must be changed.
func (e *SetupError) ExitCode() int {
	if errors.Is(e.Err, task.ErrUnreachable) {
		return 3
	}
	return 2
}

// temporary answers mean that Redis cannot serve us now, which for a caller is
// as good as not being there: the same call may succeed later. A password is
// refused while it is being changed, a wait is broken off when the master becomes a
// replica, a script may be forgotten between its loading and its call, and without
// memory no transaction is begun, which its end does not explain; in a cluster the
// keys of a script are apart while their slot moves. A permission that the user lacks
// (NOPERM) is not temporary: that says what this program may do, not how Redis is.
func temporary(err redis.Error) bool {
	e := error(err)
	return redis.IsLoadingError(e) || redis.IsMasterDownError(e) || redis.IsClusterDownError(e) ||
		redis.IsTryAgainError(e) || redis.IsAuthError(e) ||
		redis.HasErrorPrefix(e, "UNBLOCKED ") || redis.HasErrorPrefix(e, "NOSCRIPT ") ||
		redis.HasErrorPrefix(e, "EXECABORT ") ||
		strings.Contains(e.Error(), "cript attempted to access a non local key in a cluster node") || hindered(e.Error()) != nil
}

// moved reports that a slot is elsewhere, which the client of a cluster could not
// follow in time while it moves. Without a cluster it is a wrong address.
func moved(err redis.Error) bool {
	return redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK ")
}

// hindrance is a temporary answer behind which stands a setting of Redis.
type hindrance struct {
	// start is how the answer begins, without the space after it.
	start string
	// is says how Redis is, setting is one of redis.conf, remedy what to do.
	is, setting, remedy string
}

// hinderedError is a refusal of a Redis that is there. It matches task.ErrUnreachable.
type hinderedError struct {
	*hindrance
	where string
	err   error
}

// Error says how Redis is, and what it has answered, without the script where.
func (e *hinderedError) Error() string {
	answer, _, _ := strings.Cut(e.err.Error(), " script: ")
	return fmt.Sprintf("redis at %s %s: %s", e.where, e.is, strings.TrimSuffix(answer, "."))
}

// Unwrap returns the kind and the answer.
func (e *hinderedError) Unwrap() []error { return []error{task.ErrUnreachable, e.err} }

// hindered returns what the text of an answer says to hinder Redis, nil if that
// is nothing. The answer to a command of a script, which Redis before 7.0 wraps
// into an error of the script, and that to a transaction count as well.
func hindered(text string) *hindrance {
	text = strings.TrimPrefix(text, "EXECABORT Transaction discarded because of: ")
	script := strings.HasPrefix(text, "ERR Error running script ")
	for _, h := range []hindrance{
		{"OOM", "is out of memory", "maxmemory", "raise it, or let archived tasks leave sooner by [server] archive_retention"},
		{"MISCONF Errors writing to the AOF file:", "cannot write", "dir", "make room on the disk of its append-only file"},
		{"MISCONF", "cannot save", "stop-writes-on-bgsave-error", "see the log of Redis why it cannot save; most often its disk is full"},
		{"NOREPLICAS", "lacks replicas", "min-replicas-to-write", "start the missing replicas, or lower it"},
		{"READONLY", "is a replica", "replicaof", "name the master, or use sentinel_master"},
		{"BUSY", "is busy", "busy-reply-threshold", "wait until the script that runs there has ended, or end it by SCRIPT KILL"},
		{"ERR max number of clients", "has too many clients", "maxclients", "raise it, or close connections of other programs"},
	} {
		if strings.HasPrefix(text, h.start+" ") || script && strings.Contains(text, " -"+h.start+" ") {
			return &h
		}
	}
	return nil
}

// OutOfMemory reports whether Redis has refused a command because it may take no more memory.
func OutOfMemory(err error) bool {
	h := hinderedBy(err)
	return h != nil && h.setting == "maxmemory"
}

// hinderedBy is hindered for an error that may hold an answer.
func hinderedBy(err error) *hindrance {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		return hindered(answer.Error())
	}
	return nil
}

// Quote makes a text from Redis safe and short enough for messages.
func Quote(text string) string {
	const most = 80
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}

// ErrFlushing means that the namespace is being flushed.
var ErrFlushing = errors.New("the namespace is being flushed; waiting for the end of that")
