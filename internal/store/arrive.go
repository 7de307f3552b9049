package store

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// mostLives is how many lives of Redis are kept to compare with.
const mostLives = 16

// arrivals notes that another life of Redis has begun; [arrived] says when.
type arrivals struct {
	script *redis.Script
	meta   string
	// writing are the hashes of the scripts that may count a change. Whoever only
	// reads hides nothing.
	writing map[string]bool
}

func newArrivals(all *scripts, meta string) *arrivals {
	a := &arrivals{script: all.byName["arrive"], meta: meta, writing: map[string]bool{}}
	for name, script := range all.byName {
		a.writing[script.Hash()] = scriptList[name].writes && script != a.script
	}
	return a
}

// counts says whether the command is a script that may count a change.
func (a *arrivals) counts(cmd redis.Cmder) bool {
	name := cmd.Name()
	if name != "evalsha" && name != "eval" {
		return false
	}
	script, _ := cmd.Args()[1].(string)
	if name == "eval" { // its text, where the user may not load it
		script = redis.NewScript(script).Hash()
	}
	return a.writing[script]
}

// arrive notes the life of the Redis that cn leads to, if it is a new one. The answer
// is an error if that cannot be noted, as by a replica.
func (a *arrivals) arrive(ctx context.Context, cn redis.Cmdable) error {
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
	facts := parseInfo(info)
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
func (a *arrivals) note(ctx context.Context, cn redis.Cmdable, life string, replica bool) error {
	keys, args := []string{a.meta}, []any{life, mostLives, flag(replica)}
	err := a.script.EvalSha(ctx, cn, keys, args...).Err()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return err //nolint:wrapcheck // go-redis wraps errors of connecting
	}
	err = a.script.Load(ctx, cn).Err()
	switch {
	case err == nil:
		err = a.script.EvalSha(ctx, cn, keys, args...).Err()
	case redis.HasErrorPrefix(err, "NOPERM"):
		err = a.script.Eval(ctx, cn, keys, args...).Err()
	}
	return err //nolint:wrapcheck // go-redis wraps errors of connecting
}
