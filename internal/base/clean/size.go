package clean

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// units are those of a size, the largest first in each family, and how many bytes each has.
var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1}, {"", 1},
}

// What is wrong with the text of a size.
var (
	ErrNoSize    = errors.New("not a size")
	ErrLargeSize = errors.New("too large")
)

// Size reads a number of bytes, with a unit if wanted: B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000).
func Size(text string) (int64, error) {
	digits := strings.TrimRight(text, "BbiKkMGTmgt")
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
	for _, u := range units {
		switch {
		case u.name != text[len(digits):] || err != nil:
		case n > uint64(math.MaxInt64/u.bytes):
			return 0, ErrLargeSize
		default:
			return int64(n) * u.bytes, nil
		}
	}
	return 0, ErrNoSize
}

// SizeText writes a size with the largest unit that divides it.
func SizeText(n int64) string {
	for _, u := range units[:4] {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
