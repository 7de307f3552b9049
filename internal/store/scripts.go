package store

import (
	"context"
	"embed"
	"path"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts
var scriptFiles embed.FS

// clockScript is the file that defines now().
const clockScript = "scripts/lib/now.lua"

// Libraries that several scripts begin with.
const (
	typesLib = "types" // guards against keys of another type
	logLib   = "log"
	lightLib = "light"
	slotsLib = "slots"
)

// scriptInfo says what a script needs beside now(), and whether it writes. A
// library may use those before it.
type scriptInfo struct {
	libs   []string
	writes bool
}

// scriptList names every script; the tests that repeat each mutating one are
// generated from it.
var scriptList = map[string]scriptInfo{
	"open":      {libs: []string{typesLib, slotsLib}, writes: true},
	"claim":     {libs: []string{logLib, typesLib, slotsLib, "heads", "resources"}, writes: true},
	"move":      {libs: []string{logLib, typesLib, slotsLib}, writes: true},
	"stop":      {libs: []string{logLib}, writes: true},
	"record":    {libs: []string{typesLib, slotsLib}, writes: true},
	"judge":     {libs: []string{typesLib, slotsLib}, writes: true},
	"forget":    {libs: []string{typesLib}, writes: true},
	"recount":   {libs: []string{slotsLib}, writes: true},
	"prune":     {libs: []string{typesLib}, writes: true},
	"rules":     {},
	"note":      {libs: []string{logLib}, writes: true},
	"index":     {libs: []string{slotsLib, typesLib}, writes: true},
	"repair":    {libs: []string{slotsLib, typesLib}, writes: true},
	"watermark": {writes: true},
	"register":  {libs: []string{logLib, "heartbeat", "lease", lightLib, "rounds", typesLib}, writes: true},
	"renew":     {libs: []string{logLib, "heartbeat", "lease", typesLib}, writes: true},
	"leave":     {libs: []string{lightLib, "rounds", typesLib}, writes: true},
	"lost":      {libs: []string{"lease", lightLib, "rounds", typesLib}, writes: true},
	"order":     {writes: true},
	"token":     {writes: true},
	"follow":    {writes: true},
	"chunks":    {writes: true},
	"presence":  {writes: true},
	"load":      {libs: []string{lightLib}},
	"inspect":   {libs: []string{lightLib}},
	"workers":   {},
}

// scripts holds the scripts of one Store by name.
type scripts struct{ byName map[string]*redis.Script }

func newScripts(clock string) *scripts {
	s := &scripts{byName: make(map[string]*redis.Script, len(scriptList))}
	for name, info := range scriptList {
		var text strings.Builder
		if strings.HasPrefix(clock, "scripts/") {
			text.WriteString(readScript(clock))
		} else {
			text.WriteString(clock)
		}
		for _, lib := range info.libs {
			text.WriteString(readScript("scripts/lib/" + lib + ".lua"))
		}
		text.WriteString(readScript(path.Join("scripts", name+".lua")))
		s.byName[name] = redis.NewScript(text.String())
	}
	return s
}

// readScript panics on a missing file, which only a broken build can have.
func readScript(name string) string {
	text, err := scriptFiles.ReadFile(name)
	if err != nil {
		panic("store: embedded script " + name + ": " + err.Error())
	}
	return string(text) + "\n"
}

// run calls a script by its hash, and sends the text where Redis has lost it.
func (s *Store) run(ctx context.Context, name string, keys []string, args ...any) (any, error) {
	return s.runOn(ctx, s.rdb, name, keys, args...)
}

func (s *Store) runOn(ctx context.Context, client redis.Scripter, name string, keys []string, args ...any) (any, error) {
	v, err := s.scripts.byName[name].Run(ctx, client, keys, args...).Result()
	if err != nil {
		return nil, s.failed(name, err)
	}
	return v, nil
}

// runList is run for scripts that return an array.
func (s *Store) runList(ctx context.Context, name string, keys []string, args ...any) (reply, error) {
	v, err := s.run(ctx, name, keys, args...)
	if err != nil {
		return nil, err
	}
	return asReply(v), nil
}
