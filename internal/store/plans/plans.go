// Package plans keeps plans: what their tasks need of each other, what an end means
// to those that wait for it, and the steps that are opened later.
package plans

import (
	"embed"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
)

//go:embed *.lua
var files embed.FS

// Scripts are those of this room.
var Scripts = conn.Scripts{Files: files, List: map[string]conn.Script{
	"plan":    {Libs: []string{conn.LibTypes}, Writes: true, Gives: true},
	"steer":   {Libs: []string{conn.LibTypes, conn.LibPlans}, Writes: true},
	"notify":  {Libs: []string{conn.LibPages, conn.LibTypes, conn.LibPlans}, Writes: true, Relieves: true},
	"freed":   {Libs: []string{conn.LibLight, conn.LibPlans}, Writes: true, Relieves: true},
	"growth":  {Libs: []string{conn.LibTypes, conn.LibPlans}, Writes: true},
	"grown":   {Libs: []string{conn.LibTypes, conn.LibPlans}, Writes: true, Relieves: true},
	"regrow":  {Libs: []string{conn.LibTypes, conn.LibPlans}, Writes: true},
	"first":   {Libs: []string{conn.LibTypes, conn.LibPlans}, Writes: true},
	"results": {Libs: []string{conn.LibTypes, conn.LibPlans}},
	"retally": {Libs: []string{conn.LibTypes, conn.LibPlans}, Writes: true, Relieves: true},
	"redrain": {Libs: []string{conn.LibTypes, conn.LibPlans}, Writes: true, Relieves: true},
}}

// Plans is the room of plans in one namespace.
type Plans struct {
	*conn.Conn

	tasks *tasks.Tasks
}

// New makes the room on a connection.
func New(c *conn.Conn, t *tasks.Tasks) *Plans { return &Plans{Conn: c, tasks: t} }
