// Command stats measures the Go code of a tree and prints the figures beside
// those of well-known projects: sizes of files and functions, test to code ratio,
// share of comments, share of exported names with a doc comment.
//
//	stats [-list] [DIRECTORY]
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	list := flag.Bool("list", false, "also list each function and file over the limit and each name without a doc comment")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	files, err := measureTree(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stats:", err)
		os.Exit(1)
	}
	printTable(os.Stdout, files)
	if *list {
		printFindings(os.Stdout, files)
	}
}
