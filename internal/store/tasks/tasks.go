// Package tasks opens, claims, moves and reads tasks, and wakes those who wait for one.
package tasks

import (
	"embed"

	"github.com/tdf-go/tdf/internal/store/conn"
)

//go:embed *.lua
var files embed.FS

// moving are the libraries of moves and claims. Their first write is a ZREM, so they pass when the memory of Redis is full, and need
// no Relieves.
var (
	moving   = []string{conn.LibLog, conn.LibTypes, conn.LibWake, "session"}
	moveMeta = []string{"quarantine", "retention"}
	turnMeta = append([]string{"timeout_grace", "rules", "buckets"}, moveMeta...)
)

// Scripts are those of this room.
var Scripts = conn.Scripts{Files: files, Words: taskWords, List: map[string]conn.Script{
	"open": {
		Libs: []string{conn.LibArgs, conn.LibTypes}, Meta: []string{"adopted", "rules"},
		Writes: true, Gives: true,
	},
	"turn": {Libs: moving, Meta: turnMeta, Writes: true},
	"move": {Libs: moving, Meta: moveMeta, Writes: true},
	"take": {
		Libs: []string{conn.LibArgs, conn.LibLog, conn.LibTypes, conn.LibWake}, Meta: []string{"retention"}, Writes: true, Relieves: true,
	},
	"halt":    {Libs: []string{conn.LibWake, "session"}, Writes: true, Relieves: true},
	"stop":    {Libs: []string{conn.LibArgs, conn.LibLog}, Writes: true, Relieves: true},
	"remind":  {Libs: []string{conn.LibWake}, Writes: true, Relieves: true},
	"prune":   {Libs: []string{conn.LibTypes}, Writes: true},
	"dry":     {File: "turn.lua", Libs: moving, Meta: turnMeta},
	"note":    {Libs: []string{conn.LibLog}, Writes: true},
	"meta":    {Libs: []string{conn.LibArgs, conn.LibLog, conn.LibField}, Writes: true},
	"params":  {Libs: []string{conn.LibArgs, conn.LibLog, conn.LibField}, Writes: true},
	"follow":  {Writes: true},
	"chunks":  {Writes: true},
	"put":     {Libs: []string{conn.LibTypes}, Writes: true},
	"erase":   {Libs: []string{conn.LibTypes}, Writes: true, Relieves: true},
	"pending": {},
	"load":    {Libs: []string{conn.LibLight}},
	"newest":  {},
}}

// Tasks is the room of tasks in one namespace.
type Tasks struct{ *conn.Conn }
