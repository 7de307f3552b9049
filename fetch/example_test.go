package fetch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tdf-go/tdf/fetch"
)

func ExampleFetcher_Ensure() {
	dir, err := os.MkdirTemp("", "fetch")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "run.sh")
	if err := os.WriteFile(source, []byte("#!/bin/sh\necho hello\n"), 0o600); err != nil {
		panic(err)
	}
	options := fetch.DefaultOptions()
	options.Dir = filepath.Join(dir, "programs")
	f, err := fetch.New(options)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	installed, err := f.Ensure(context.Background(), "greet", "rsync:"+source, nil)
	fmt.Println(filepath.Base(installed.Dir) == installed.SHA256, installed.SHA256[:8], err)
	// Output:
	// true bfdeaeb0 <nil>
}
