package conn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
)

// Run calls a script by its hash, and sends the text where Redis has lost it.
// The error matches [ErrHistory] if Redis is behind what this Conn has seen.
func (s *Conn) Run(ctx context.Context, name string, of Subject, args ...any) (any, error) {
	return s.RunOn(ctx, s.Redis, name, of, args...)
}

// RunOn is Run on one of the clients.
func (s *Conn) RunOn(
	ctx context.Context, client redis.UniversalClient, name string, of Subject, args ...any,
) (v any, err error) {
	err = s.afterFlush(ctx, func() error {
		v, err = s.attempt(ctx, client, name, &of, args...)
		return err
	})
	return v, err
}

func (s *Conn) attempt(ctx context.Context, client redis.UniversalClient, name string, of *Subject, args ...any) (any, error) {
	script := s.scripts.byName[name]()
	keys := s.Keys.declared(script, of)
	if !script.info.Bare {
		keys, args = s.withHistory(keys, args)
	}
	call := scriptCall{script: script.Script, all: s.scripts, keys: keys, args: args}
	send := call.send
	if script.info.Writes && s.where.Durability == config.DurabilityHA {
		send = call.replicated(s.where.ReplicationTimeout)
	}
	v, err := send(ctx, client)
	if err != nil {
		return nil, s.Failed(name, err)
	}
	if script.info.Bare {
		return v, nil
	}
	return s.unseal(name, AsReply(v))
}

// withHistory adds what every script has that is not bare.
func (s *Conn) withHistory(keys []string, args []any) ([]string, []any) {
	return append(keys, s.Keys.Events()), slices.Concat(args, []any{s.Memory.text()})
}

// RunList is run for scripts that return an array.
func (s *Conn) RunList(ctx context.Context, name string, of Subject, args ...any) (Reply, error) {
	v, err := s.Run(ctx, name, of, args...)
	if err != nil {
		return nil, err
	}
	return AsReply(v), nil
}

// errNotReplicated means that no replica has what Redis acknowledged.
var errNotReplicated = errors.New("no replica has confirmed the change in time")

// scriptCall is one call of a script.
type scriptCall struct {
	script *redis.Script
	// all are loaded where Redis has lost this one.
	all  *scripts
	keys []string
	args []any
}

// send calls the script.
func (c scriptCall) send(ctx context.Context, client redis.UniversalClient) (any, error) {
	return c.loaded(ctx, client, func(eval evaluate) (any, error) {
		return eval(ctx, client, c.keys, c.args...).Result()
	})
}

// replicated is send, and waits until a replica has what was written. The two
// commands go over one connection, because Redis waits for what that one wrote. An
// unconfirmed change may have been made nevertheless; the call is repeated.
func (c scriptCall) replicated(wait time.Duration) func(context.Context, redis.UniversalClient) (any, error) {
	return func(ctx context.Context, client redis.UniversalClient) (any, error) {
		return c.loaded(ctx, client, func(eval evaluate) (any, error) { return c.confirmed(ctx, client, wait, eval) })
	}
}

type evaluate func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd

func (c scriptCall) confirmed(ctx context.Context, client redis.UniversalClient, wait time.Duration, eval evaluate) (any, error) {
	var answer *redis.Cmd
	var replicas *redis.Cmd
	_, err := client.Pipelined(ctx, func(both redis.Pipeliner) error {
		answer = eval(ctx, both, c.keys, c.args...)
		replicas = both.Do(ctx, "wait", 1, wait.Milliseconds())
		return nil
	})
	switch {
	case answer.Err() != nil && !errors.Is(answer.Err(), redis.Nil):
		return nil, answer.Err() //nolint:wrapcheck // the caller does
	case replicas.Err() != nil && isAnswer(replicas.Err()):
		// The master is a replica now. Wrapped, its answer would count as final.
		return nil, fmt.Errorf("%w: %v", errNotReplicated, replicas.Err()) //nolint:errorlint // see above
	case err != nil && !errors.Is(err, redis.Nil):
		return nil, err //nolint:wrapcheck // the caller does
	}
	if n, _ := replicas.Int(); n < 1 {
		return nil, fmt.Errorf("%w (%v)", errNotReplicated, wait)
	}
	return answer.Result() //nolint:wrapcheck // the caller does
}

// isAnswer reports whether Redis has answered with an error.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// errNoScripts means that Redis does not have our scripts, and that its user may
// not load them. It is temporary: a server does.
var errNoScripts = errors.New(
	"redis does not have the scripts of this version, and the user may not load them; start a tdf-server of this version")

// LoadScripts makes Redis have all scripts, for those whose users may not load
// any. A server calls it now and then: a restart or a failover loses them.
func (s *Conn) LoadScripts(ctx context.Context) error {
	if err := s.scripts.load(ctx, s.Redis); err != nil {
		return s.Failed("script load", err)
	}
	return nil
}

// load sends what Redis does not have; on a cluster, to all of its nodes.
func (s *scripts) load(ctx context.Context, client redis.UniversalClient) error {
	all := slices.Collect(maps.Values(s.byName))
	hashes := make([]string, len(all))
	for i, script := range all {
		hashes[i] = script().Hash()
	}
	known, err := client.ScriptExists(ctx, hashes...).Result()
	if err != nil {
		return err //nolint:wrapcheck // the caller does
	}
	for i, script := range all {
		if i < len(known) && known[i] {
			continue
		}
		if err := script().Load(ctx, client).Err(); err != nil {
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
func (s *Conn) ScriptNames() map[string]string {
	names := make(map[string]string, len(s.scripts.byName))
	for name, script := range s.scripts.byName {
		names[script().Hash()] = name
	}
	return names
}

// ScriptArgs is a script and what it is called with.
type ScriptArgs struct {
	Name string
	Of   Subject
	Args []any
}

// ScriptAnswer is what became of a call.
type ScriptAnswer struct {
	Value any
	Err   error
}

// Together calls scripts one after the other, in one trip where that can be. Where each
// has to be confirmed by a replica it takes its own.
func (s *Conn) Together(ctx context.Context, calls ...ScriptArgs) []ScriptAnswer {
	answers := make([]ScriptAnswer, len(calls))
	alone := s.where.Durability == config.DurabilityHA
	if !alone {
		s.inOneTrip(ctx, calls, answers)
	}
	for i, c := range calls {
		if alone || unsent(answers[i].Err) {
			answers[i].Value, answers[i].Err = s.Run(ctx, c.Name, c.Of, c.Args...)
		}
	}
	return answers
}

// unsent reports whether a script did nothing for a reason that a call of it alone takes care of.
func unsent(err error) bool {
	return redis.HasErrorPrefix(err, "NOSCRIPT") || errors.Is(err, ErrFlushing)
}

// inOneTrip sends the calls at once and reads the answers.
func (s *Conn) inOneTrip(ctx context.Context, calls []ScriptArgs, answers []ScriptAnswer) {
	commands := make([]*redis.Cmd, len(calls))
	_, all := s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range calls {
			script := s.scripts.byName[c.Name]()
			keys, args := s.withHistory(s.Keys.declared(script, &c.Of), c.Args)
			commands[i] = script.EvalSha(ctx, p, keys, args...)
		}
		return nil
	})
	for i, c := range calls {
		v, err := commands[i].Result()
		switch {
		case all != nil && !isAnswer(all): // the commands themselves may not say it
			answers[i].Err = s.Failed(c.Name, all)
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			answers[i].Err = err
		case err != nil:
			answers[i].Err = s.Failed(c.Name, err)
		default:
			answers[i].Value, answers[i].Err = s.unseal(c.Name, AsReply(v))
		}
	}
}

// afterFlush makes a call again while the namespace is being flushed, which mostly takes some milliseconds: for as
// long as an answer of Redis may take.
func (s *Conn) afterFlush(ctx context.Context, call func() error) error {
	again := timing.Backoff{First: 5 * time.Millisecond, Most: 100 * time.Millisecond}
	for end := time.Now().Add(s.AnswerLimit()); ; {
		err := call()
		if !errors.Is(err, ErrFlushing) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		timing.Pause(ctx, again.Next())
	}
}

// Script is a script as it is sent.
func (s *Conn) Script(name string) *redis.Script { return s.scripts.byName[name]().Script }
