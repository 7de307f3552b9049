// Command tdf is a server, a worker or a manager, or opens, watches and changes tasks.
package main

import (
	"os"

	"github.com/tdf-go/tdf/cmd/internal/servercmd"
	"github.com/tdf-go/tdf/cmd/internal/verbs"
	"github.com/tdf-go/tdf/cmd/internal/workercmd"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store/conn"
)

func main() {
	conn.Silence() // the error, or the log, says it once
	os.Exit(cli.Main(verbs.NewTDF(servercmd.New(), workercmd.New())))
}
