// Package upkeep keeps a namespace in order: it inspects and repairs tasks, compares
// indices with records, purges archived tasks, and deletes a namespace as a whole.
package upkeep

import (
	"embed"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
)

//go:embed *.lua
var files embed.FS

// Scripts are those of this room.
var Scripts = conn.Scripts{Files: files, List: map[string]conn.Script{
	"index":     {Libs: []string{conn.LibWake, "recounted", conn.LibTypes}, Writes: true, Relieves: true},
	"repair":    {Libs: []string{conn.LibArgs, conn.LibWake, "recounted", conn.LibTypes}, Writes: true, Relieves: true},
	"unlist":    {File: "strays.lua", Libs: []string{conn.LibTypes}, Writes: true},
	"strays":    {Libs: []string{conn.LibTypes}},
	"watermark": {Writes: true},
	"flush":     {Writes: true, Relieves: true, Flushes: true},
	"outdated":  {Libs: []string{conn.LibTypes, conn.LibRetention}, Writes: true, Relieves: true},
	"purge":     {Libs: []string{conn.LibTypes, conn.LibRetention}, Writes: true, Relieves: true},
	"retain":    {Libs: []string{conn.LibTypes, conn.LibRetention}, Writes: true},
	"inspect":   {Libs: []string{conn.LibLight}},
	"enter":     {Libs: []string{conn.LibTypes}, Writes: true},
	"entries":   {},
	"shorten":   {Libs: []string{conn.LibTypes}, Writes: true, Relieves: true},
}}

// Upkeep is the room of inspection and repair in one namespace.
type Upkeep struct {
	*conn.Conn

	tasks *tasks.Tasks
}

// New makes the room on a connection.
func New(c *conn.Conn, t *tasks.Tasks) *Upkeep { return &Upkeep{Conn: c, tasks: t} }
