package doctor

import "strings"

// judgeDurability says whether Redis keeps what [redis] durability promises, which
// every program checks at its start.
func judgeDurability(f *Facts) []Finding {
	const check = "durability"
	switch {
	case f.Refused != nil:
		return fail(check, "programs refuse this Redis: "+f.Refused.Error(), "see there")
	case len(f.CheckWarnings) > 0:
		return warn(check, "at its start a program warns: "+strings.Join(f.CheckWarnings, "; "), "see there")
	default:
		return ok(check, "durability="+f.Redis.Durability+" fits the server")
	}
}
