package main

import (
	"fmt"
	"os"
	"path"
	"strings"
)

// module is cut off the import paths.
const module = "github.com/tdf-go/tdf/"

// readAllowed reads the list of tests that may be skipped: one a line, a
// pattern and a reason; lines that begin with # are comments.
func readAllowed(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("allowed skips: %w", err)
	}
	var patterns []string
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, why, _ := strings.Cut(line, " ")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s line %d: %q has no reason: write PACKAGE.TEST, a space and why", file, i+1, pattern)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("%s line %d: pattern %q: %w", file, i+1, pattern, err)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

func (s skip) allowed(patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, s.String()); ok {
			return true
		}
	}
	return false
}
