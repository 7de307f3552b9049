package config

import (
	"strings"

	"github.com/tdf-go/tdf/internal/route"
)

// envPrefix starts every environment variable read here.
const envPrefix = "TDF_"

// envName returns the variable of a key: TDF_SECTION_KEY.
func envName(section, key string) string {
	return envPrefix + strings.ToUpper(section+"_"+key)
}

// readEnviron adds the settings of the environment. An empty variable counts as
// not set, because that is what compose files and scripts make of a missing one.
func (l *loader) readEnviron() {
	vars := map[string]string{}
	for _, entry := range l.environ {
		if name, text, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, envPrefix) && text != "" {
			vars[name] = text
		}
	}
	var known []string
	for _, sec := range l.schema {
		for _, k := range sec.keys {
			name := envName(sec.name, k.name)
			known = append(known, name)
			if text, ok := vars[name]; ok {
				l.put(sec.name, k.name, setting{text: trimmed(k, text), level: fromEnvironment, place: "environment " + name})
				delete(vars, name)
			}
		}
	}
	l.refuseTypos(vars, known)
}

// trimmed removes the blanks around a value, as in a file, but not those of a secret.
func trimmed(k key, text string) string {
	if k.secret {
		return text
	}
	return strings.TrimSpace(text)
}

// refuseTypos reports variables that look like a known one with a slip. Others
// stay unnoticed: a service named tdf-redis makes Kubernetes set
// TDF_REDIS_SERVICE_HOST, and programs see TDF_TASK_ID and so on.
func (l *loader) refuseTypos(vars map[string]string, known []string) {
	for _, entry := range l.environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, left := vars[name]; !left {
			continue
		}
		delete(vars, name)
		for _, candidate := range known {
			if route.Distance(name, candidate) <= 2 {
				l.report(&Error{
					File: "environment " + name, Problem: "unknown variable",
					Remedy: "did you mean " + candidate + "?", Err: ErrUnknown,
				})
				break
			}
		}
	}
}

// readFlags adds the settings of the command line.
func (l *loader) readFlags() {
	for _, flag := range l.flags {
		l.readFlag(flag)
	}
}

func (l *loader) readFlag(flag string) {
	const place = "flag --set"
	name, text, given := strings.Cut(flag, "=")
	secName, keyName, dotted := strings.Cut(strings.TrimSpace(name), ".")
	if !given || !dotted {
		l.report(&Error{
			File: place, Problem: "not of the form section.key=value",
			Remedy: "write for example --set server.round_duration=0.5", Err: ErrInvalid,
		})
		return
	}
	sec := l.schema.section(secName)
	k, ok := sec.key(keyName)
	var problem *Error
	switch {
	case sec.name == "":
		problem = l.schema.unknownSection(secName)
	case !ok:
		problem = l.schema.unknownKey(keyName, sec)
	case k.secret:
		problem = &Error{
			Section: secName, Key: keyName, Err: ErrInvalid,
			Problem: "a secret on the command line can be read by every user of this machine",
			Remedy:  "set " + envName(secName, keyName) + " or write it into the file",
		}
	default:
		l.put(secName, keyName, setting{text: strings.TrimSpace(text), level: fromFlag, place: place})
		return
	}
	problem.File = place
	l.report(problem)
}
