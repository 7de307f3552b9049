package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// errNoScripts means that Redis does not have our scripts, and that its user may
// not load them. It is temporary: a server does.
var errNoScripts = errors.New(
	"redis does not have the scripts of this version, and the user may not load them; start a tdf-server of this version")

// LoadScripts makes Redis have all scripts, for those whose users may not load
// any. A server calls it now and then: a restart or a failover loses them.
func (s *Store) LoadScripts(ctx context.Context) error {
	if err := s.scripts.load(ctx, s.rdb); err != nil {
		return s.failed("script load", err)
	}
	return nil
}

// load sends what Redis does not have; on a cluster, to all of its nodes.
func (s *scripts) load(ctx context.Context, client redis.UniversalClient) error {
	all := slices.Collect(maps.Values(s.byName))
	hashes := make([]string, len(all))
	for i, script := range all {
		hashes[i] = script.Hash()
	}
	known, err := client.ScriptExists(ctx, hashes...).Result()
	if err != nil {
		return err //nolint:wrapcheck // the caller does
	}
	for i, script := range all {
		if i < len(known) && known[i] {
			continue
		}
		if err := script.Load(ctx, client).Err(); err != nil {
			return err //nolint:wrapcheck // the caller does
		}
	}
	return nil
}

// loaded calls a script by its hash. Where Redis has lost it, all scripts are
// loaded, and where the user may not do that, the text is sent.
func (c scriptCall) loaded(ctx context.Context, client redis.UniversalClient, call func(evaluate) (any, error)) (any, error) {
	answer, err := call(c.script.EvalSha)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return answer, err
	}
	if err := c.all.load(ctx, client); err == nil {
		return call(c.script.EvalSha)
	} else if !redis.HasErrorPrefix(err, "NOPERM") {
		return nil, err
	}
	if answer, err = call(c.script.Eval); redis.HasErrorPrefix(err, "NOPERM") {
		return nil, errNoScripts
	}
	return answer, err
}

// ScriptNames are the scripts by their hashes, for benchmarks that read in Redis which of them took how long.
func (s *Store) ScriptNames() map[string]string {
	names := make(map[string]string, len(s.scripts.byName))
	for name, script := range s.scripts.byName {
		names[script.Hash()] = name
	}
	return names
}
