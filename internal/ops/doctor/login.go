package doctor

import "strings"

// judgeLogin looks at the user of this connection.
func judgeLogin(f *Facts) []Finding {
	const check = "login"
	account := f.Server.Login
	remedy := "give each program a user of its own: tdf-manager acl server, worker, manager and viewer print them"
	switch {
	case account == nil && f.Server.User == "":
		return unknown(check, "user", "ACL WHOAMI")
	case account == nil:
		return ok(check, "user "+f.Server.User+", no administrator")
	case account.NoPassword && !local(&f.Redis):
		return fail(check, "user "+f.Server.User+" needs no password, on a network", "set a password (requirepass); then "+remedy)
	case strings.Contains(" "+account.Commands+" ", " +@all "):
		return warn(check, "user "+f.Server.User+" is an administrator of Redis, who may read and delete every namespace", remedy)
	default:
		return warn(check, "user "+f.Server.User+" may read the list of users", remedy)
	}
}
