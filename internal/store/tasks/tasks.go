// Package tasks opens, claims, moves and reads tasks, and wakes those who wait for one.
package tasks

import (
	"embed"

	"github.com/tdf-go/tdf/internal/store/conn"
)

//go:embed *.lua
var files embed.FS

// Scripts are those of this room.
var Scripts = conn.Scripts{Files: files, Words: taskWords, List: map[string]conn.Script{
	"open":   {Libs: []string{conn.LibArgs, conn.LibTypes, conn.LibSlots, conn.LibPlans, "planned"}, Writes: true, Gives: true},
	"claim":  {Libs: []string{conn.LibArgs, conn.LibLog, conn.LibTypes, conn.LibSlots, "heads", "resources"}, Writes: true},
	"move":   {Libs: []string{conn.LibArgs, conn.LibLog, conn.LibTypes, conn.LibSlots, conn.LibPlans}, Writes: true, Relieves: true},
	"take":   {Libs: []string{conn.LibArgs, conn.LibLog, conn.LibTypes, conn.LibSlots}, Writes: true, Relieves: true},
	"stop":   {Libs: []string{conn.LibArgs, conn.LibLog}, Writes: true, Relieves: true},
	"remind": {Libs: []string{conn.LibSlots}, Writes: true, Relieves: true},
	"prune":  {Libs: []string{conn.LibTypes}, Writes: true},
	"dry":    {File: "claim.lua", Libs: []string{conn.LibArgs, conn.LibLog, conn.LibTypes, conn.LibSlots, "heads", "resources", "dry"}},
	"note":   {Libs: []string{conn.LibLog}, Writes: true},
	"follow": {Writes: true},
	"chunks": {Writes: true},
	"load":   {Libs: []string{conn.LibLight}},
}}

// Tasks is the room of tasks in one namespace.
type Tasks struct{ *conn.Conn }
