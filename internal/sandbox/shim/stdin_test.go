package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A program reads the file that it is given, from where that stands on, and can reopen it; the next program reads nothing. So
// it does if its request does not fit into a packet, by way of a launcher, and as another user.
func TestStdin(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "stdin")
	if err := os.WriteFile(name, []byte("one\ntwo\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	p := Program{Dir: "/", File: "sh", Args: []string{"-c", "cat; head -n 1 < /dev/stdin; echo end", "sh"}}
	options := map[string]Options{"plain": {}, "launched": {Rlimits: map[string]uint64{"core": 0}}}
	if os.Geteuid() == 0 {
		options["other user"] = Options{RunAs: "nobody"}
	}
	for kind, o := range options {
		o.Name = t.Name() + kind
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			eachLayerWith(t, o, func(t *testing.T, s *Slot) {
				for _, argument := range []string{"again", strings.Repeat("x", 2*inline)} {
					p := p
					p.Args = append(slices.Clip(p.Args), argument[:len(argument)/2], argument[len(argument)/2:])
					file, err := os.Open(name)
					if err != nil {
						t.Fatal(err)
					}
					p.Stdin = file
					_, text := run(t, s, p)
					if err := file.Close(); err != nil || text != "one\ntwo\none\nend\n" {
						t.Errorf("it read %q, %v", text, err)
					}
					p.Stdin = nil
					if _, text = run(t, s, p); text != "end\n" {
						t.Errorf("the next one read %q", text)
					}
				}
			})
		})
	}
}
