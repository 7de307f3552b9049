package process

import (
	"maps"
	"slices"
	"strings"
)

// DefaultAllow lists the variables a program gets from its worker unless the
// worker is configured otherwise: where to find programs and files, who runs,
// language and time zone. Everything else may hold credentials or change what
// the program loads (LD_PRELOAD), so it has to be allowed by name. PWD is not
// among them because it would name the worker's directory.
func DefaultAllow() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ",
		"LANG", "LANGUAGE", "LC_*",
	}
}

// Environment builds a program's environment from the entries of from
// (NAME=value, as os.Environ gives them) whose name is in allow, and from extra,
// which wins. A trailing * in allow stands for any rest of the name. Of several
// entries with one name the last counts. The result is sorted by name.
func Environment(allow []string, from []string, extra map[string]string) []string {
	chosen := make(map[string]string, len(allow)+len(extra))
	for _, entry := range from {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && allowed(allow, name) {
			chosen[name] = value
		}
	}
	maps.Copy(chosen, extra)
	env := make([]string, 0, len(chosen))
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		env = append(env, name+"="+chosen[name])
	}
	return env
}

func allowed(allow []string, name string) bool {
	return slices.ContainsFunc(allow, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return pattern == name
	})
}
