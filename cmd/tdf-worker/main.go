// The command tdf-worker executes the tasks of one namespace.
package main

import (
	"os"

	"github.com/tdf-go/tdf/internal/cli"
)

func main() {
	os.Exit(cli.Main(newCommand()))
}
