// Command tdf-manager opens, lists, waits for and archives tasks, and checks a
// namespace, from the command line.
package main

import (
	"os"

	"github.com/tdf-go/tdf/internal/cli"
)

func main() { os.Exit(cli.Main(newCommand())) }
