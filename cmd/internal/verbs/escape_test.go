package verbs

import (
	"bytes"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// A character that comes in two writes is shown as one, and an invalid one is
// escaped, wherever the writes are cut.
func TestTerminalKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[31mé€😀\xff\xe2\x82\nend\xf0\x9f"
	want := cli.SafeLines(text)
	for i := range len(text) + 1 {
		for j := i; j <= len(text); j++ {
			var out bytes.Buffer
			w := &terminal{w: &out}
			for _, part := range []string{text[:i], text[i:j], text[j:]} {
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			if err := w.Flush(); err != nil || out.String() != want {
				t.Fatalf("cut at %d and %d: %q, %v, want %q", i, j, out.String(), err, want)
			}
		}
	}
}
