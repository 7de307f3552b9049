package doctor

import (
	"errors"
	"strings"

	"github.com/tdf-go/tdf/internal/store"
)

// judgeDurability says whether Redis keeps what [redis] durability promises, which
// every program checks at its start.
func judgeDurability(f *Facts) []Finding {
	const check = "durability"
	if f.Refused != nil {
		return refusal(check, f.Refused)
	}
	var found []Finding
	for _, w := range f.CheckWarnings {
		if strings.Contains(w, "not checked") {
			found = append(found, skip(check, w)...)
		} else {
			found = append(found, warn(check, "at its start a program warns: "+w, "see persistence and replication here, and docs/OPERATIONS.md")...)
		}
	}
	switch {
	case found != nil:
		return found
	case f.Server.Info["aof_enabled"] == "":
		return unknown(check, "durability="+f.Redis.Durability, "INFO")
	default:
		return ok(check, "durability="+f.Redis.Durability+" fits the server")
	}
}

// refusal is the finding of what no program starts with. The error names its remedy.
func refusal(check string, err error) []Finding {
	text, remedy := err.Error(), "see [redis] durability in docs/CONFIGURATION.md"
	if setup, is := errors.AsType[*store.SetupError](err); is {
		remedy = setup.Remedy
		text = strings.TrimSuffix(text, "; "+remedy)
	}
	return fail(check, "programs refuse this Redis: "+text, remedy)
}
