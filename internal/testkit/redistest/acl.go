package redistest

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
)

// User is a Redis user that may use the keys and channels of one namespace only.
type User struct {
	// Name and Password are what a client logs in with.
	Name, Password string

	server *Server
}

// Limited creates a user for the keys "ns:*" and "{ns}:*" and the channels
// "ns:*" and "{ns}:*". Commands of the category @dangerous (KEYS, FLUSHDB, CONFIG
// and their like) are refused, except INFO, which the daemons check the server
// with. The rules hold inside scripts too. The user is removed when the test ends.
func (s *Server) Limited(tb testing.TB, ns string) User {
	tb.Helper()
	ns = strings.Trim(ns, "{}")
	u := User{Name: "u-" + ns, Password: rand.Text(), server: s}
	s.Do(tb, "ACL", "SETUSER", u.Name, "reset", "resetchannels", "on", ">"+u.Password,
		"~"+ns+":*", "~{"+ns+"}:*", "&"+ns+":*", "&{"+ns+"}:*",
		"+@all", "-@dangerous", "+info", "-flushdb", "-flushall", "-keys")
	tb.Cleanup(func() { _, _ = s.call("ACL", "DELUSER", u.Name) })
	return u
}

// EnsureEmptyACLLog fails the test if Redis refused this user anything, also
// when the code under test swallowed the error. Call it at the end of the test.
func (u User) EnsureEmptyACLLog(tb testing.TB) {
	tb.Helper()
	for _, refusal := range u.Refusals(tb) {
		tb.Errorf("redis refused user %s: %s", u.Name, refusal)
	}
}

// Refusals lists what Redis refused this user, newest first, one text each, for
// example "key tdf:stray in lua".
func (u User) Refusals(tb testing.TB) []string {
	tb.Helper()
	entries, _ := u.server.Do(tb, "ACL", "LOG", "128").([]any)
	var refusals []string
	for _, entry := range entries {
		if f := fields(entry); f["username"] == u.Name {
			refusals = append(refusals, fmt.Sprintf("%s %s in %s", f["reason"], f["object"], f["context"]))
		}
	}
	return refusals
}

// fields reads a flat list of names and values.
func fields(entry any) map[string]string {
	list, _ := entry.([]any)
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return m
}
