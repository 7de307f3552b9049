package store

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	remark   = regexp.MustCompile(`(?m)--(?:\[\[.*?\]\]|.*$)`)
	leftOver = regexp.MustCompile(`\b[KA]\.\w+|#[KA]\b`)
	madeKey  = regexp.MustCompile(`\bK\.\w+(\(.*)`)
	operands = regexp.MustCompile(`^\((?:#?[\w.\[\]]+|'[^']*')(?: \.\. (?:#?[\w.\[\]]+|'[^']*'))*\)`)
)

// TestNamesHavePlaces: each name in a script has got a place, so each is one of keys.go or of the header; and what makes a key
// of it needs no parentheses of its own.
func TestNamesHavePlaces(t *testing.T) {
	t.Parallel()
	for name := range scriptList {
		text := remark.ReplaceAllString(placed(common.text("", name), headerOf(common.body(name)), nil), "")
		if left := leftOver.FindString(text); left != "" {
			t.Errorf("script %s: nothing is called %s", name, left)
		}
	}
	for _, dir := range []string{".", "lib"} {
		files, err := fs.ReadDir(common.Files, dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if file.IsDir() {
				continue
			}
			text := remark.ReplaceAllString(common.read(path.Join(dir, file.Name())), "")
			for _, made := range madeKey.FindAllStringSubmatch(text, -1) {
				if !operands.MatchString(made[1]) {
					t.Errorf("%s: give a name to what makes the key %s", file.Name(), made[0])
				}
			}
		}
	}
}

// TestHeadersNameTheirKeys: a header names what the script uses, and what it names is used, but for keys that are only declared.
func TestHeadersNameTheirKeys(t *testing.T) {
	t.Parallel()
	for name := range scriptList {
		body := common.body(name)
		h, code := headerOf(body), remark.ReplaceAllString(body, "")
		if len(h.keys) == 0 || h.keys[0] != "meta" {
			t.Errorf("script %s: the first of its keys is to be meta: %v", name, h.keys)
		}
		for _, arg := range h.args {
			if !regexp.MustCompile(`\bA\.` + arg + `\b`).MatchString(code) {
				t.Errorf("script %s: the argument %s is not used", name, arg)
			}
		}
		if positions := regexp.MustCompile(`(?:KEYS|ARGV)\[\d+\]`).FindAllString(code, -1); positions != nil {
			t.Errorf("script %s: positions instead of names: %s", name, strings.Join(positions, " "))
		}
	}
}
