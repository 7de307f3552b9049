package conn

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

//go:embed *.lua lib
var files embed.FS

// Common are the scripts that no room owns, with the libraries of all.
var Common = Scripts{Files: files, List: map[string]Script{
	"epoch": {Libs: []string{LibTypes}, Writes: true, Bare: true, Relieves: true},
	arrive:  {Writes: true, Bare: true},
}}

// arrive notes a life of Redis, and changes nothing else.
const arrive = "arrive"

// Libraries that several scripts begin with. A script, or a library, that seldom needs one takes it in where it does, with a line
// --[[lib name]]: each function that a script does not define makes each call of it shorter.
const (
	LibArgs      = "args"  // reads the arguments that have no name
	LibTypes     = "types" // guards against keys of another type
	LibLog       = "log"
	LibField     = "field" // writes a field of a task with a line for the log; needs LibLog
	LibLight     = "light"
	LibWake      = "wake"
	LibPages     = "pages"
	LibPlans     = "plans"
	LibRetention = "retention" // what keeps archived tasks
)

// Script says what a script needs beside now() and the history, and whether it writes.
type Script struct {
	// Libs are the files of lib that it uses. One may use those before it.
	Libs   []string
	Writes bool
	// File is the file of the script if it is that of another one too; the body learns as `dry` whether it must write nothing.
	File string
	// Bare scripts do without the history; see lib/history.lua.
	Bare bool
	// Relieves says that the script ends something, or that others need it to end
	// something, so it must pass when the memory of Redis is full.
	Relieves bool
	// Flushes says that the script may pass while the namespace is being flushed.
	Flushes bool
	// Gives says that the script gives out ids, so it has to wait until a server has confirmed the life of Redis.
	Gives bool
	// Meta are fields of meta that the script needs beside those of the history, which are read with them: meta_name in its body.
	Meta []string
}

// Scripts are the scripts of one room.
type Scripts struct {
	// Files has the file of each script, name.lua.
	Files fs.FS
	List  map[string]Script
	// Words are texts that the files of all rooms have a word for, because they follow from what Go knows.
	Words map[string]string
}

// script is a script as it is sent, and the keys that its header names.
type script struct {
	*redis.Script
	info Script
	keys []keyName
}

// scripts makes the scripts of all rooms, each when it is first called: a command calls few of them.
type scripts struct {
	byName map[string]func() *script
	// writing has the hashes of those made that may count a change.
	writing sync.Map
}

// newScripts makes the scripts of a clock once, for all connections of a process.
func newScripts(clock string, rooms []Scripts) *scripts {
	known, ok := made.Load(clock)
	if !ok {
		known, _ = made.LoadOrStore(clock, makeScripts(clock, rooms))
	}
	return known.(*scripts) //nolint:forcetypeassert // nothing else is in there
}

// made holds the scripts by their clock; they do not change.
var made sync.Map

func makeScripts(clock string, rooms []Scripts) *scripts {
	words := map[string]string{
		"DEFAULT_QUEUE": "'" + task.DefaultQueue + "'", "OUTCOMES": outcomes(), "MOST_FAILURES": strconv.Itoa(MostFailures),
	}
	for _, room := range rooms {
		maps.Copy(words, room.Words)
	}
	all := &scripts{byName: map[string]func() *script{}}
	for _, room := range rooms {
		for name, info := range room.List {
			all.byName[name] = sync.OnceValue(func() *script {
				h := headerOf(room.body(name))
				made := redis.NewScript(placed(room.text(clock, name), h, words))
				all.writing.Store(made.Hash(), info.Writes && name != arrive)
				return &script{Script: made, info: info, keys: keysOf(name, h)}
			})
		}
	}
	return all
}

// MostFailures is how many failed tasks a job names.
const MostFailures = 5

// outcomes is the set of them, as a table.
func outcomes() string {
	var set strings.Builder
	for _, outcome := range statemachine.Outcomes() {
		fmt.Fprintf(&set, "%s = true, ", outcome)
	}
	return "{" + set.String() + "}"
}

// relief changes nothing. But Redis lets a script go on without memory that has begun
// with a change that takes none.
const relief = "redis.call('HDEL', K.meta, '')\n"

// text is the script with all it uses, and names for its keys and arguments. Its file is the body of a function,
// so that whatever it returns can be given back together with the history.
func (room *Scripts) text(clock, name string) string {
	info, body := room.List[name], room.body(name)
	var text strings.Builder
	text.WriteString(room.read("lib/keys.lua") + cmp.Or(clock, room.read("lib/time.lua")) + "\n" + room.read("lib/now.lua"))
	if !info.Bare {
		text.WriteString(withMeta(room.read("lib/history.lua"), info.Meta))
	}
	for _, lib := range info.Libs {
		text.WriteString(room.read("lib/" + lib + ".lua"))
	}
	if info.Relieves {
		body = relief + body
	}
	if !info.Bare {
		body = fmt.Sprintf("local function script(dry)\n%send\nreturn sealed(script, %t, %t, %t)\n",
			body, info.Flushes, info.Writes, info.Gives)
	}
	return room.complete(text.String() + body)
}

var within = regexp.MustCompile(`(?m)^ *--\[\[lib (\w+)\]\]$`)

// complete puts in the libraries that are taken in where they are needed, which may take in others.
func (room *Scripts) complete(text string) string {
	return within.ReplaceAllStringFunc(text, func(line string) string {
		return room.complete(room.read("lib/" + within.FindStringSubmatch(line)[1] + ".lua"))
	})
}

// historyFields is how many fields of meta the history reads for itself.
const historyFields = 8

// withMeta makes the history read further fields of meta.
func withMeta(history string, names []string) string {
	var list, locals strings.Builder
	for i, name := range names {
		fmt.Fprintf(&list, ", '%s'", name)
		fmt.Fprintf(&locals, "local meta_%s = past[%d]\n", name, historyFields+1+i)
	}
	return strings.Replace(history, "--[[meta]])\n", list.String()+")\n"+locals.String(), 1)
}

// body is the file of a script.
func (room *Scripts) body(name string) string {
	return room.read(cmp.Or(room.List[name].File, name+".lua"))
}

// read reads a file of the room, or one that all rooms use. It panics on a missing file, which only a broken build can have.
func (room *Scripts) read(name string) string {
	text, err := fs.ReadFile(room.Files, name)
	if err != nil {
		text, err = fs.ReadFile(Common.Files, name)
	}
	if err != nil {
		panic("store: embedded script " + name + ": " + err.Error())
	}
	return string(text) + "\n"
}
