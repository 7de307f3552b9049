package conn_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
)

var (
	remark   = regexp.MustCompile(`(?m)--(?:\[\[.*?\]\]|.*$)`)
	leftOver = regexp.MustCompile(`\b[KA]\.\w+|#[KA]\b`)
	madeKey  = regexp.MustCompile(`\bK\.\w+(\(.*)`)
	operands = regexp.MustCompile(`^\((?:#?[\w.\[\]]+|'[^']*')(?: \.\. (?:#?[\w.\[\]]+|'[^']*'))*\)`)
)

var rooms = []conn.Scripts{conn.Common, tasks.Scripts, fleet.Scripts, plans.Scripts, upkeep.Scripts}

// TestNamesHavePlaces: each name in a script has got a place, so each is one of keys.go or of the header; and what makes a key
// of it needs no parentheses of its own.
func TestNamesHavePlaces(t *testing.T) {
	t.Parallel()
	for _, room := range rooms {
		for name := range room.List {
			text := remark.ReplaceAllString(room.Placed(name), "")
			if left := leftOver.FindString(text); left != "" {
				t.Errorf("script %s: nothing is called %s", name, left)
			}
		}
		for _, pattern := range []string{"*.lua", "lib/*.lua"} {
			files, err := fs.Glob(room.Files, pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text := remark.ReplaceAllString(room.Read(file), "")
				for _, made := range madeKey.FindAllStringSubmatch(text, -1) {
					if !operands.MatchString(made[1]) {
						t.Errorf("%s: give a name to what makes the key %s", file, made[0])
					}
				}
			}
		}
	}
}

// TestHeadersNameTheirKeys: a header names what the script uses, and what it names is used, but for keys that are only declared.
func TestHeadersNameTheirKeys(t *testing.T) {
	t.Parallel()
	for _, room := range rooms {
		for name := range room.List {
			keys, args := room.Names(name)
			code, all := remark.ReplaceAllString(room.Body(name), ""), remark.ReplaceAllString(room.Text(name), "")
			if len(keys) == 0 || keys[0] != "meta" {
				t.Errorf("script %s: the first of its keys is to be meta: %v", name, keys)
			}
			for _, arg := range args {
				if !regexp.MustCompile(`\bA\.` + arg + `\b`).MatchString(all) {
					t.Errorf("script %s: the argument %s is not used", name, arg)
				}
			}
			if positions := regexp.MustCompile(`(?:KEYS|ARGV)\[\d+\]`).FindAllString(code, -1); positions != nil {
				t.Errorf("script %s: positions instead of names: %s", name, strings.Join(positions, " "))
			}
		}
	}
}
