package acceptance

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fencePattern   = regexp.MustCompile("(?s)```.*?```")
	headingPattern = regexp.MustCompile(`(?m)^#+ (.*)$`)
	markPattern    = regexp.MustCompile(`\]\([^)]*\)|[^\pL\pN _-]`)
)

// Every link from one page to another leads to a file that is there, and to a
// heading that it has.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := pages(t)
	if len(pages) < 40 {
		t.Fatalf("only %d pages found", len(pages))
	}
	for page, text := range pages {
		for _, match := range linkPattern.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(match[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			_, err := os.Stat(target)
			if err != nil || heading != "" && !anchors(pages[target])[heading] {
				t.Errorf("%s links %s, which is not there", page, match[1])
			}
		}
	}
}

// pages are the texts of all Markdown files, without their code, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		pages[path] = fencePattern.ReplaceAllString(string(text), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// anchors are the headings of a page as links name them.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, match := range headingPattern.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(markPattern.ReplaceAllString(match[1], ""))
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}
