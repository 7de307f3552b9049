package config

import (
	"math"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/route"
)

// optional makes a check let the empty text pass.
func optional(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

// RlimitNames are the resource limits that can be set, as getrlimit(2) names
// them without RLIMIT_ and in lower case.
func RlimitNames() []string {
	return []string{"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"}
}

// Unlimited is the value of a resource limit that does not limit.
const Unlimited = math.MaxUint64

// ParseRlimit reads name=value: a number or a size as [ParseSize] reads it, or
// unlimited or inf for [Unlimited]. The error is an *Error.
func ParseRlimit(s string) (name string, value uint64, err error) {
	name, text, ok := strings.Cut(s, "=")
	if !ok || !slices.Contains(RlimitNames(), name) {
		return "", 0, invalid("not a resource limit",
			"write name=value with one of "+strings.Join(RlimitNames(), " ")+", for example nofile=1024")
	}
	if text == route.Unlimited || text == infinite {
		return name, Unlimited, nil
	}
	n, err := ParseSize(text)
	if err != nil {
		return "", 0, invalid("not a value of "+name, "write a number (for cpu: seconds), a size such as 1GiB, or unlimited")
	}
	return name, uint64(n), nil
}

func checkRlimit(s string) error {
	_, _, err := ParseRlimit(s)
	return err
}
