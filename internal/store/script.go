package store

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
)

//go:embed scripts
var scriptFiles embed.FS

// clockScript is the file that defines time(), from which lib/now.lua makes now().
const clockScript = "scripts/lib/time.lua"

// Libraries that several scripts begin with.
const (
	typesLib = "types" // guards against keys of another type
	logLib   = "log"
	// retentionLib says what keeps archived tasks.
	retentionLib = "retention"
	lightLib     = "light"
	slotsLib     = "slots"
	plansLib     = "plans"
)

// scriptInfo says what a script needs beside now() and the history, and whether
// it writes. A library may use those before it.
type scriptInfo struct {
	libs   []string
	writes bool
	// file is the file of the script if it is that of another one too; the body learns as `dry` whether it must write nothing.
	file string
	// bare scripts do without the history; see lib/history.lua.
	bare bool
	// relieves says that the script ends something, or that others need it to end
	// something, so it must pass when the memory of Redis is full.
	relieves bool
	// flushes says that the script may pass while the namespace is being flushed.
	flushes bool
	// gives says that the script gives out ids, so it has to wait until a server has confirmed the life of Redis.
	gives bool
}

// scriptList names every script; the tests that repeat each mutating one are
// generated from it.
var scriptList = map[string]scriptInfo{
	"open":      {libs: []string{typesLib, slotsLib, plansLib, "planned"}, writes: true, gives: true},
	"claim":     {libs: []string{logLib, typesLib, slotsLib, "heads", "resources"}, writes: true},
	"move":      {libs: []string{logLib, typesLib, slotsLib, plansLib}, writes: true, relieves: true},
	"plan":      {libs: []string{typesLib}, writes: true, gives: true},
	"steer":     {libs: []string{typesLib, plansLib}, writes: true},
	"release":   {libs: []string{typesLib, plansLib}, writes: true, relieves: true},
	"freed":     {libs: []string{lightLib}, writes: true, relieves: true},
	"growth":    {libs: []string{typesLib, plansLib}, writes: true},
	"grown":     {libs: []string{typesLib, plansLib}, writes: true, relieves: true},
	"regrow":    {libs: []string{typesLib, plansLib}, writes: true},
	"results":   {libs: []string{typesLib, plansLib}},
	"redrain":   {libs: []string{typesLib, plansLib}, writes: true, relieves: true},
	"stop":      {libs: []string{logLib}, writes: true, relieves: true},
	"record":    {libs: []string{typesLib, slotsLib}, writes: true},
	"judge":     {libs: []string{typesLib, slotsLib}, writes: true, relieves: true},
	"forget":    {libs: []string{typesLib}, writes: true, relieves: true},
	"recount":   {libs: []string{slotsLib}, writes: true},
	"remind":    {libs: []string{slotsLib}, writes: true, relieves: true},
	"prune":     {libs: []string{typesLib}, writes: true},
	"dry":       {file: "claim.lua", libs: []string{logLib, typesLib, slotsLib, "heads", "resources", "dry"}},
	"rules":     {},
	"note":      {libs: []string{logLib}, writes: true},
	"index":     {libs: []string{slotsLib, typesLib}, writes: true, relieves: true},
	"repair":    {libs: []string{slotsLib, typesLib}, writes: true, relieves: true},
	"unlist":    {file: "strays.lua", libs: []string{typesLib}, writes: true},
	"strays":    {libs: []string{typesLib}},
	"watermark": {writes: true},
	"register":  {libs: []string{logLib, "heartbeat", "lease", lightLib, "rounds", typesLib}, writes: true, relieves: true},
	"renew":     {libs: []string{logLib, "heartbeat", "lease", typesLib}, writes: true, relieves: true},
	"leave":     {libs: []string{lightLib, "rounds", typesLib}, writes: true, relieves: true},
	"lost":      {libs: []string{"lease", lightLib, "rounds", typesLib}, writes: true, relieves: true},
	"order":     {writes: true},
	"token":     {writes: true, relieves: true},
	"follow":    {writes: true},
	"chunks":    {writes: true},
	"presence":  {writes: true, relieves: true},
	"handle":    {writes: true, relieves: true},
	"keep":      {writes: true, relieves: true},
	"epoch":     {libs: []string{typesLib}, writes: true, bare: true, relieves: true},
	"arrive":    {writes: true, bare: true},
	"flush":     {writes: true, relieves: true, flushes: true},
	"outdated":  {libs: []string{typesLib, retentionLib}, writes: true, relieves: true},
	"purge":     {libs: []string{typesLib, retentionLib}, writes: true, relieves: true},
	"retain":    {libs: []string{typesLib, retentionLib}, writes: true},
	"load":      {libs: []string{lightLib}},
	"inspect":   {libs: []string{lightLib}},
	"workers":   {},
}

// scripts holds the scripts of one Store by name.
type scripts struct{ byName map[string]*redis.Script }

// newScripts makes the texts once for each clock: that takes longer than to dial.
func newScripts(clock string) *scripts {
	known, ok := made.Load(clock)
	if !ok {
		known, _ = made.LoadOrStore(clock, makeScripts(clock))
	}
	return known.(*scripts) //nolint:forcetypeassert // nothing else is in there
}

// made holds the scripts by their clock; they do not change.
var made sync.Map

func makeScripts(clock string) *scripts {
	s := &scripts{byName: make(map[string]*redis.Script, len(scriptList))}
	if strings.HasPrefix(clock, "scripts/") {
		clock = readScript(clock)
	}
	for name := range scriptList {
		s.byName[name] = redis.NewScript(scriptText(clock, name))
	}
	return s
}

// relief changes nothing. But Redis lets a script go on without memory that has begun
// with a change that takes none.
const relief = "redis.call('HDEL', K.meta, '')\n"

// scriptText is the script with all it uses. Its file is the body of a function,
// so that whatever it returns can be given back together with the history.
func scriptText(clock, name string) string {
	info, body := scriptList[name], scriptBody(name)
	names := headerOf(body)
	var text strings.Builder
	text.WriteString(clock + "\n" + readScript("scripts/lib/now.lua"))
	if !info.bare {
		text.WriteString(readScript("scripts/lib/history.lua"))
	}
	for _, lib := range info.libs {
		text.WriteString(readScript("scripts/lib/" + lib + ".lua"))
	}
	if info.relieves {
		body = relief + body
	}
	if !info.bare {
		body = fmt.Sprintf("local function script(dry)\n%send\nreturn sealed(script, %t, %t, %t)\n",
			body, info.flushes, info.writes, info.gives)
	}
	return readScript("scripts/lib/keys.lua") + placed(text.String()+body, names)
}

// scriptBody is the file of a script.
func scriptBody(name string) string {
	return readScript(path.Join("scripts", cmp.Or(scriptList[name].file, name+".lua")))
}

// readScript panics on a missing file, which only a broken build can have.
func readScript(name string) string {
	text, err := scriptFiles.ReadFile(name)
	if err != nil {
		panic("store: embedded script " + name + ": " + err.Error())
	}
	return string(text) + "\n"
}

// luaList is a list of fields as a script has it behind others.
func luaList(names []string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString(", '" + name + "'")
	}
	return text.String()
}

// run calls a script by its hash, and sends the text where Redis has lost it.
// The error matches [ErrHistory] if Redis is behind what this Store has seen.
func (s *Store) run(ctx context.Context, name string, of subject, args ...any) (any, error) {
	return s.runOn(ctx, s.rdb, name, of, args...)
}

func (s *Store) runOn(
	ctx context.Context, client redis.UniversalClient, name string, of subject, args ...any,
) (v any, err error) {
	err = s.afterFlush(ctx, func() error {
		v, err = s.attempt(ctx, client, name, &of, args...)
		return err
	})
	return v, err
}

func (s *Store) attempt(ctx context.Context, client redis.UniversalClient, name string, of *subject, args ...any) (any, error) {
	info, keys := scriptList[name], s.keys.declared(name, of)
	if !info.bare {
		keys, args = s.withHistory(keys, args)
	}
	call := scriptCall{script: s.scripts.byName[name], all: s.scripts, keys: keys, args: args}
	send := call.send
	if info.writes && s.where.Durability == config.DurabilityHA {
		send = call.replicated(s.where.ReplicationTimeout)
	}
	v, err := send(ctx, client)
	if err != nil {
		return nil, s.failed(name, err)
	}
	if info.bare {
		return v, nil
	}
	return s.unseal(name, asReply(v))
}

// withHistory adds what every script has that is not bare.
func (s *Store) withHistory(keys []string, args []any) ([]string, []any) {
	return append(keys, s.keys.events()), slices.Concat(args, []any{s.history.text()})
}

// runList is run for scripts that return an array.
func (s *Store) runList(ctx context.Context, name string, of subject, args ...any) (reply, error) {
	v, err := s.run(ctx, name, of, args...)
	if err != nil {
		return nil, err
	}
	return asReply(v), nil
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
// commands go over one connection, because Redis waits for what that one wrote. A
// change that was not confirmed may be there all the same; the call is made again.
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
