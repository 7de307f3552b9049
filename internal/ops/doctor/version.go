package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// judgeVersion compares the version with known weaknesses. A distribution mends
// its packages without raising the version of Redis, so that it can only be a warning.
func judgeVersion(f *Facts) []Finding {
	const check = "version"
	version := f.Server.Info["redis_version"]
	if version == "" {
		return warn(check, "Redis does not tell its version", "allow INFO to this user, or look at the version by hand")
	}
	var open []string
	for _, h := range holes {
		if len(h.fixed) > 0 && !mended(version, h.fixed) {
			open = append(open, h.id+" ("+h.what+")")
		}
	}
	if len(open) == 0 {
		return ok(check, "Redis "+version+"; see the security notices of its maker for what came later")
	}
	return warn(check, fmt.Sprintf("Redis %s: by its version open to %s", version, strings.Join(open, ", ")),
		"upgrade Redis. The package of a distribution may be mended all the same: its changelog names the ids, and also "+unversioned())
}

// unversioned are the weaknesses that only a changelog tells of.
func unversioned() string {
	var ids []string
	for _, h := range holes {
		if len(h.fixed) == 0 {
			ids = append(ids, h.id)
		}
	}
	return strings.Join(ids, ", ")
}

// mended reports whether a version has a fix that came with these versions.
func mended(version string, fixed []string) bool {
	mine := numbers(version)
	for _, f := range fixed {
		theirs := numbers(f)
		if mine[0] == theirs[0] && mine[1] == theirs[1] {
			return mine[2] >= theirs[2]
		}
	}
	newest := slices.MaxFunc(fixed, func(a, b string) int { return compare(numbers(a), numbers(b)) })
	return compare(mine, numbers(newest)) > 0
}

func compare(a, b [3]int) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
}

// numbers are the first three parts of a version; what is no number is 0.
func numbers(version string) (n [3]int) {
	for i, part := range strings.SplitN(version, ".", 3) {
		n[i], _ = strconv.Atoi(part)
	}
	return n
}
