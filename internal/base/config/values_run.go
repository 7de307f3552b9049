package config

import (
	"regexp"
	"strings"
)

// account is what names of users and groups look like, those of directory
// services included; a number is one too.
var account = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@+\\-]{0,127}\$?$`)

// checkRunAs takes user or user:group. Whether they exist is known only to the
// host the worker runs on, which looks at its start.
func checkRunAs(s string) error {
	for part := range strings.SplitSeq(s, ":") {
		if !account.MatchString(part) || strings.Count(s, ":") > 1 {
			return invalid("neither user nor user:group", "write names or numbers, for example nobody, nobody:nogroup or 65534:65534")
		}
	}
	return nil
}

// checkWrapper refuses what only a shell would understand: without one, a quote
// is an ordinary character, and a silent surprise.
func checkWrapper(s string) error {
	words := strings.Fields(s)
	switch {
	case len(words) == 0:
		return nil
	case strings.ContainsAny(s, "'\"`\\$|;<>&"):
		return invalid("contains a character that only a shell would understand",
			"write plain words split at blanks; what needs more goes into a script, whose absolute path stands here")
	case strings.HasPrefix(words[0], "-"):
		return invalid("starts with an option, not with a program", "write the program first, for example nice -n 10")
	case strings.Contains(words[0], "="):
		return invalid("starts with an assignment, not with a program", "write env before it, for example env LANG=C nice")
	case strings.Contains(words[0], "/") && !strings.HasPrefix(words[0], "/"):
		return invalid("a relative path would start in the directory of each task's program",
			"write an absolute path, or a name to be searched in PATH")
	}
	return nil
}

// checkCgroup wants a path that does not depend on a directory.
func checkCgroup(s string) error {
	if !strings.HasPrefix(s, "/") {
		return invalid("not an absolute path", "write for example /sys/fs/cgroup/tdf")
	}
	return nil
}

// checkSSHOptions refuses what rsync, which splits the words, would take apart
// in its own way.
func checkSSHOptions(s string) error {
	if strings.ContainsAny(s, "'\"\\") {
		return invalid("contains a quote or a backslash", "write plain words split at blanks, for example -i /etc/tdf/key -p 2222")
	}
	return nil
}
