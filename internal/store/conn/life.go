package conn

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// lifeCheck is how long a node of a Redis Cluster is taken to be the master in the
// same life. Its connections outlast both that it becomes a replica and that it is
// promoted, of which the cluster takes longer to decide.
const lifeCheck = time.Second

// nodeRun sees to it that the life of one Redis is noted before a script counts
// anything in it: when a connection is made, and where that was not possible, as with
// a replica, before the script. The latter is done time and again on a Redis Cluster
// alone: elsewhere connections end with each start and with each failover of Sentinel,
// and a connection that answers READONLY is closed.
type nodeRun struct {
	*runIDs
	client redis.Cmdable
	// lasts is how long what is noted needs no other look; 0: as long as no new
	// connection finds out otherwise.
	lasts time.Duration
	// noted is when the life was noted, in nanoseconds since 1970, 0 for not.
	noted atomic.Int64
}

// connected is called for each new connection before it is used. An answer of Redis
// that it may not be asked, or not now, is no reason to do without the connection,
// but one that loads its data must be asked again.
func (n *nodeRun) connected(ctx context.Context, cn *redis.Conn) error {
	err := n.look(ctx, cn)
	if isAnswer(err) && !notYet(err) {
		return nil
	}
	return err
}

// look notes the life. Whose user may not do that may not call other scripts either
// until a server has loaded them, which has noted the life before.
func (n *nodeRun) look(ctx context.Context, cn redis.Cmdable) error {
	begun := time.Now().UnixNano()
	err := n.arrive(ctx, cn)
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		err = nil
	case err != nil:
		begun = 0
	}
	n.noted.Store(begun)
	return err
}

// current says whether the life needs no other look.
func (n *nodeRun) current() bool {
	noted := n.noted.Load()
	if noted == 0 || n.lasts == 0 {
		return noted != 0
	}
	since := time.Now().UnixNano() - noted
	return 0 <= since && since < int64(n.lasts)
}

// DialHook changes nothing.
func (n *nodeRun) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook notes the life before a script. Redis that cannot note it would not do
// what the script does either: a replica, one without replicas, one that cannot save.
func (n *nodeRun) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if n.counts(cmd) && !n.current() {
			if err := n.look(ctx, n.client); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook is ProcessHook for commands that are sent together. They are
// sent as well where the slot is said to be elsewhere: the client of a cluster follows
// that answer only if it is to them, or asks here because it was told to.
func (n *nodeRun) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, n.counts) && !n.current() {
			if err := n.look(ctx, n.client); err != nil && !redis.HasErrorPrefix(err, "MOVED ") {
				for _, cmd := range cmds {
					cmd.SetErr(err)
				}
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// mostLives is how many lives of Redis are kept to compare with.
const mostLives = 16

// runIDs notes that another life of Redis has begun; [arrived] says when.
type runIDs struct {
	all  *scripts
	meta string
}

// counts says whether the command is a script that may count a change. A client that only reads hides nothing.
func (a *runIDs) counts(cmd redis.Cmder) bool {
	name := cmd.Name()
	if name != "evalsha" && name != "eval" {
		return false
	}
	script, _ := cmd.Args()[1].(string)
	if name == "eval" { // its text, where the user may not load it
		script = redis.NewScript(script).Hash()
	}
	writes, _ := a.all.writing.Load(script)
	return writes == true
}

// arrive notes the life of the Redis that cn leads to, if it is a new one. The answer
// is an error if that cannot be noted, as by a replica.
func (a *runIDs) arrive(ctx context.Context, cn redis.Cmdable) error {
	for {
		life, replica, err := lifeOf(ctx, cn)
		if err != nil || life == "" {
			return err
		}
		if err := a.note(ctx, cn, life, replica); err != nil || !replica {
			return err
		}
		// It was promoted between the two calls, and has another life now.
	}
}

// lifeOf asks Redis for a name of its life, empty if it does not say: a text that is
// long enough to be one's own, and short enough for every call. Each start and each
// promotion makes another replication id. A replica has that of its master, but must
// not pass for one that has noted it.
func lifeOf(ctx context.Context, cn redis.Cmdable) (life string, replica bool, err error) {
	info, err := cn.Info(ctx, "replication").Result()
	if err != nil && (!isAnswer(err) || notYet(err)) {
		return "", false, err //nolint:wrapcheck // go-redis wraps errors of connecting
	}
	facts := ParseInfo(info)
	id := facts["master_replid"]
	return strings.ToLower(id[:min(len(id), 12)]), facts["role"] == "slave", nil
}

// notYet reports whether Redis must be asked again, because it loads its data or runs
// a script for long.
func notYet(err error) bool {
	return redis.IsLoadingError(err) || redis.HasErrorPrefix(err, "BUSY ")
}

// note calls the script, which is loaded where Redis does not have it, or sent as a
// text where the user may not do that.
func (a *runIDs) note(ctx context.Context, cn redis.Cmdable, life string, replica bool) error {
	script := a.all.byName[arrive]()
	keys, args := []string{a.meta}, []any{life, mostLives, Flag(replica)}
	err := script.EvalSha(ctx, cn, keys, args...).Err()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return err //nolint:wrapcheck // go-redis wraps errors of connecting
	}
	err = script.Load(ctx, cn).Err()
	switch {
	case err == nil:
		err = script.EvalSha(ctx, cn, keys, args...).Err()
	case redis.HasErrorPrefix(err, "NOPERM"):
		err = script.Eval(ctx, cn, keys, args...).Err()
	}
	return err //nolint:wrapcheck // go-redis wraps errors of connecting
}
