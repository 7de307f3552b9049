// Package fleet keeps what runs tasks and where they may run: workers and managers with
// their leases, nodes, queues and their limits; and the access tokens of who asks for it over HTTP.
package fleet

import (
	"embed"

	"github.com/tdf-go/tdf/internal/store/conn"
)

//go:embed *.lua
var files embed.FS

// Scripts are those of this room.
var Scripts = conn.Scripts{Files: files, List: map[string]conn.Script{
	"record":  {Libs: []string{conn.LibArgs, conn.LibPages, conn.LibTypes, conn.LibWake}, Writes: true},
	"judge":   {Libs: []string{conn.LibTypes, conn.LibWake}, Writes: true, Relieves: true},
	"forget":  {Libs: []string{conn.LibTypes}, Writes: true, Relieves: true},
	"dismiss": {Libs: []string{conn.LibTypes}, Writes: true, Relieves: true},
	"recount": {Libs: []string{conn.LibArgs, conn.LibWake}, Writes: true},
	"rules":   {},
	"register": {
		Libs:   []string{conn.LibLog, "heartbeat", "lease", conn.LibLight, conn.LibPages, "rounds", conn.LibTypes},
		Writes: true, Relieves: true,
	},
	"renew":    {Libs: []string{conn.LibLog, "heartbeat", "lease", conn.LibTypes}, Writes: true, Relieves: true},
	"leave":    {Libs: []string{conn.LibLight, conn.LibPages, "rounds", conn.LibTypes}, Writes: true, Relieves: true},
	"lost":     {Libs: []string{"lease", conn.LibLight, conn.LibPages, "rounds", conn.LibTypes}, Writes: true, Relieves: true},
	"order":    {Writes: true},
	"token":    {Writes: true, Relieves: true},
	"presence": {Writes: true, Relieves: true},
	"grant":    {Libs: []string{conn.LibTypes}, Writes: true},
	"revoke":   {Libs: []string{conn.LibTypes}, Writes: true, Relieves: true},
	"keep":     {Libs: []string{conn.LibPages}, Writes: true, Relieves: true},
	"workers":  {},
}}

// Fleet is the room of workers, managers, nodes and queues in one namespace.
type Fleet struct {
	*conn.Conn

	recounting recounter
}

// New makes the room on a connection.
func New(c *conn.Conn) *Fleet { return &Fleet{Conn: c} }
