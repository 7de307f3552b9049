package fn

import (
	"fmt"
	"testing"
)

// References are read as they are written, and JSON is not a reference.
func TestReferences(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		`1`: "[] false", `"$1"`: "[] false", `[]`: "[] false", `["$1"]`: "[] false", `null`: "[] false",
		"$1": "[{1 false}] false", "$12:text": "[{12 true}] false",
		"[$1]": "[{1 false}] true", "[$1..3,$7..8:text]": "[{1 false} {2 false} {3 false} {7 true} {8 true}] true",
	} {
		refs, several, err := references(word)
		if got := fmt.Sprint(refs, several); err != nil || got != want {
			t.Errorf("%s is read as %s, %v, want %s", word, got, err, want)
		}
	}
	for _, word := range []string{"$", "$0", "$-1", "$x", "$1..", "$3..2", "$1..1001", "$1,2", "[$1,]", "[$1,2]", "[$1 ]", "$1:texts"} {
		if refs, _, err := references(word); err == nil {
			t.Errorf("%s is read as %v", word, refs)
		}
	}
}
