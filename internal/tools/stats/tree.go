package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// measureTree measures every Go file of one module. Nested modules, testdata,
// vendored and hidden directories are left out.
func measureTree(root string) ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && leftOut(path) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := measureFile(path)
		if err != nil {
			return err
		}
		if f != nil {
			f.classify(root)
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("measuring %s: %w", root, err)
	}
	return files, nil
}

func leftOut(dir string) bool {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "bin" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// classify tells tests, helpers of tests and tools of the project from the
// product. Helpers count as tests, as they only exist for them.
func (f *file) classify(root string) {
	rel, err := filepath.Rel(root, f.path)
	if err != nil {
		rel = f.path
	}
	f.path = filepath.ToSlash(rel)
	dir := filepath.ToSlash(filepath.Dir(rel))
	f.test = strings.HasSuffix(rel, "_test.go") || strings.HasPrefix(dir, "internal/testkit/")
	for _, top := range []string{"internal/tools", "bench", "examples"} {
		if dir == top || strings.HasPrefix(dir, top+"/") {
			f.tool = true
		}
	}
}
