// Command tdf-manager opens, lists, waits for and archives tasks, and checks a
// namespace, from the command line.
package main

import (
	"os"

	"github.com/tdf-go/tdf/cmd/internal/verbs"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store/conn"
)

func main() {
	conn.Silence() // the error, or the log, says it once
	os.Exit(cli.Main(verbs.New(verbs.Manager)))
}
