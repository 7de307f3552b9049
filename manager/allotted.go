package manager

import (
	"regexp"
	"strconv"
	"strings"
)

// Allotted is a part of a resource of a node.
type Allotted struct {
	Count int
	// IDs says which pieces, counted from 0, where the node tells them apart.
	IDs []int
}

// allotment is one resource in the hash field "<round>:resources": gpu:2[0 3].
var allotment = regexp.MustCompile(`(\w+):(\d+)\[([\d ]*)\]`)

// allottedOf reads that field; nil for nothing.
func allottedOf(text string) map[string]Allotted {
	var got map[string]Allotted
	for _, m := range allotment.FindAllStringSubmatch(text, -1) {
		if got == nil {
			got = map[string]Allotted{}
		}
		a := Allotted{Count: int(number(m[2]))}
		for id := range strings.FieldsSeq(m[3]) {
			if n, err := strconv.Atoi(id); err == nil {
				a.IDs = append(a.IDs, n)
			}
		}
		got[m[1]] = a
	}
	return got
}
