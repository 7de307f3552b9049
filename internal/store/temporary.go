package store

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

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
	// setting is one of redis.conf, remedy what to do.
	setting, remedy string
}

// hindered returns what the text of an answer says to hinder Redis, nil if that
// is nothing. The answer to a command of a script, which Redis before 7.0 wraps
// into an error of the script, and that to a transaction count as well.
func hindered(text string) *hindrance {
	text = strings.TrimPrefix(text, "EXECABORT Transaction discarded because of: ")
	script := strings.HasPrefix(text, "ERR Error running script ")
	for _, h := range []hindrance{
		{"OOM", "maxmemory", "raise it, or archive and delete what is not needed any more"},
		{"MISCONF Errors writing to the AOF file:", "dir", "make room on the disk of its append-only file"},
		{"MISCONF", "stop-writes-on-bgsave-error", "see the log of Redis why it cannot save; most often its disk is full"},
		{"NOREPLICAS", "min-replicas-to-write", "start the missing replicas, or lower it"},
		{"READONLY", "replicaof", "name the master, or use sentinel_master"},
		{"BUSY", "busy-reply-threshold", "wait until the script that runs there has ended, or end it by SCRIPT KILL"},
		{"ERR max number of clients", "maxclients", "raise it, or close connections of other programs"},
	} {
		if strings.HasPrefix(text, h.start+" ") || script && strings.Contains(text, " -"+h.start+" ") {
			return &h
		}
	}
	return nil
}
