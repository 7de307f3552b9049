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

// RunOn is Run on one of the clients. While the namespace is being flushed, which mostly takes some milliseconds, it makes the
// call again: for as long as an answer of Redis may take.
func (s *Conn) RunOn(ctx context.Context, client redis.UniversalClient, name string, of Subject, args ...any) (any, error) {
	v, err := s.attempt(ctx, client, name, &of, args)
	if !errors.Is(err, ErrFlushing) {
		return v, err
	}
	again := timing.Backoff{First: 5 * time.Millisecond, Most: 100 * time.Millisecond}
	for end := time.Now().Add(s.AnswerLimit()); errors.Is(err, ErrFlushing) && ctx.Err() == nil && !time.Now().After(end); {
		timing.Pause(ctx, again.Next())
		v, err = s.attempt(ctx, client, name, &of, args)
	}
	return v, err
}

func (s *Conn) attempt(ctx context.Context, client redis.UniversalClient, name string, of *Subject, args []any) (any, error) {
	call := s.callOf(name, of, args)
	v, err := call.send(ctx, client)
	if err != nil {
		return nil, s.Failed(name, err)
	}
	if call.info.Bare {
		return v, nil
	}
	return s.unseal(name, AsReply(v))
}

// callOf is the call of a script with the keys that its header names, and with the history unless it is bare.
func (s *Conn) callOf(name string, of *Subject, args []any) scriptCall {
	script := s.scripts.byName[name]()
	keys := make([]string, 0, len(script.keys)+len(of.More)+1)
	for _, key := range script.keys {
		keys = append(keys, s.Keys.prefix+key.begins+key.whose(of))
	}
	keys = append(keys, of.More...)
	if !script.info.Bare {
		seen, _ := s.History()
		keys, args = append(keys, s.Keys.Events()), slices.Concat(args, []any{seen.String()})
	}
	call := scriptCall{script: script, all: s.scripts, keys: keys, args: args}
	if script.info.Writes && s.where.Durability == config.DurabilityHA {
		call.confirm = s.where.ReplicationTimeout
	}
	return call
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
	*script
	// all are loaded where Redis has lost this one.
	all  *scripts
	keys []string
	args []any
	// confirm is how long a replica may take to have what was written; 0: none has to.
	confirm time.Duration
	// before is sent first, in the same trip; nil for nothing.
	before redis.Cmder
}

type evaluate func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd

// confirmed calls the script and waits, if a replica has to confirm what was written, until
// one has. The two commands go over one connection, because Redis waits for what that one wrote.
// An unconfirmed change may have been made nevertheless; the call is repeated.
func (c scriptCall) confirmed(ctx context.Context, client redis.UniversalClient, eval evaluate) (any, error) {
	if c.confirm == 0 && c.before == nil {
		return eval(ctx, client, c.keys, c.args...).Result() //nolint:wrapcheck // the caller does
	}
	var answer *redis.Cmd
	var replicas *redis.Cmd
	_, err := client.Pipelined(ctx, func(all redis.Pipeliner) error {
		if c.before != nil {
			_ = all.Process(ctx, c.before) // its error is its own
		}
		answer = eval(ctx, all, c.keys, c.args...)
		if c.confirm > 0 {
			replicas = all.Do(ctx, "wait", 1, c.confirm.Milliseconds())
		}
		return nil
	})
	switch {
	case answer.Err() != nil && !errors.Is(answer.Err(), redis.Nil):
		return nil, answer.Err() //nolint:wrapcheck // the caller does
	case err != nil && !isAnswer(err):
		return nil, err //nolint:wrapcheck // the caller does
	case c.confirm == 0:
		return answer.Result() //nolint:wrapcheck // the caller does
	case replicas.Err() != nil:
		// The master is a replica now. Wrapped, its answer would count as final.
		return nil, fmt.Errorf("%w: %v", errNotReplicated, replicas.Err()) //nolint:errorlint // see above
	}
	if n, _ := replicas.Int(); n < 1 {
		return nil, fmt.Errorf("%w (%v)", errNotReplicated, c.confirm)
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

// send calls the script by its hash. Where Redis has lost it, all scripts are
// loaded, and where the user may not do that, the text is sent.
func (c scriptCall) send(ctx context.Context, client redis.UniversalClient) (any, error) {
	answer, err := c.confirmed(ctx, client, c.EvalSha)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return answer, err
	}
	if err := c.all.load(ctx, client); err == nil {
		return c.confirmed(ctx, client, c.EvalSha)
	} else if !redis.HasErrorPrefix(err, "NOPERM") {
		return nil, err
	}
	if answer, err = c.confirmed(ctx, client, c.Eval); redis.HasErrorPrefix(err, "NOPERM") {
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
	alone := s.where.Durability == config.DurabilityHA
	answers := make([]ScriptAnswer, len(calls))
	if !alone {
		answers = s.inOneTrip(ctx, calls, nil)
	}
	for i, c := range calls {
		if alone || unsent(answers[i].Err) {
			answers[i].Value, answers[i].Err = s.Run(ctx, c.Name, c.Of, c.Args...)
		}
	}
	return answers
}

// RunReading calls a script and reads in the same trip, where that can be, what is there after it. The commands that read are queued again
// if the script has to be called again.
func (s *Conn) RunReading(ctx context.Context, call ScriptArgs, read func(redis.Pipeliner)) (any, error) {
	if s.where.Durability != config.DurabilityHA {
		for _, answer := range s.inOneTrip(ctx, []ScriptArgs{call}, read) {
			if !unsent(answer.Err) {
				return answer.Value, answer.Err
			}
		}
	}
	v, err := s.Run(ctx, call.Name, call.Of, call.Args...)
	if err != nil {
		return nil, err
	}
	return v, s.Pipelined(ctx, call.Name, read)
}

// once is a command that is not repeated, nor is what is sent with it.
type once struct{ redis.Cmder }

// NoRetry is asked by the client.
func (once) NoRetry() bool { return true }

// RunBehind sends a command that waits in Redis for at most d and, in the same trip, a script. Redis calls the script as soon as the
// wait is over; commands of other clients that it has read by then may come first. Nothing is repeated after a network error: the
// answer to the wait must not be lost, and it is in the command if it came. Where a replica has to confirm what the script writes,
// WAIT is the third command. The error is that of the script.
func (s *Conn) RunBehind(ctx context.Context, wait redis.Cmder, d time.Duration, c ScriptArgs) (any, error) {
	call := s.callOf(c.Name, &c.Of, c.Args)
	call.before = once{wait}
	limit, cancel := s.WhileBlocked(ctx, d)
	defer cancel()
	v, err := call.confirmed(limit, s.Patient, call.EvalSha)
	if err == nil {
		v, err = s.unseal(c.Name, AsReply(v))
	} else if !unsent(err) {
		err = s.Failed(c.Name, err)
	}
	if unsent(err) {
		return s.Run(ctx, c.Name, c.Of, c.Args...)
	}
	return v, err
}

// unsent reports whether a script did nothing for a reason that a call of it alone takes care of.
func unsent(err error) bool {
	return redis.HasErrorPrefix(err, "NOSCRIPT") || errors.Is(err, ErrFlushing)
}

// inOneTrip sends the calls at once, and behind them what reads, unless nil, and reads the answers.
func (s *Conn) inOneTrip(ctx context.Context, calls []ScriptArgs, read func(redis.Pipeliner)) []ScriptAnswer {
	answers := make([]ScriptAnswer, len(calls))
	commands := make([]*redis.Cmd, len(calls))
	_, all := s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range calls {
			call := s.callOf(c.Name, &c.Of, c.Args)
			commands[i] = call.EvalSha(ctx, p, call.keys, call.args...)
		}
		if read != nil {
			read(p)
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
	return answers
}

// Script is a script as it is sent.
func (s *Conn) Script(name string) *redis.Script { return s.scripts.byName[name]().Script }
