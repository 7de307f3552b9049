package main

import (
	"strconv"

	"github.com/tdf-go/tdf/internal/route"
)

// meant asks for the known name that is nearest to an unknown one; if none is
// near, it is the remedy given.
func meant(name string, known []string, remedy string) string {
	if near := route.Nearest(name, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	return remedy
}
