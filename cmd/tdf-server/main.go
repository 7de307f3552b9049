// Command tdf-server settles the tasks of one namespace.
package main

import (
	"os"

	"github.com/tdf-go/tdf/cmd/internal/servercmd"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store/conn"
)

func main() {
	conn.Silence() // the error, or the log, says it once
	os.Exit(cli.Main(servercmd.New()))
}
