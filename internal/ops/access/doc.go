// Package access knows what each role may do in Redis, as data, and writes it as
// rules of an access list (ACL).
//
// A role has grants: commands together with the keys they may be used on. The
// rules of Redis hold inside scripts as well, so a grant names what the scripts
// of the role call. Names of keys are those of docs/PROTOCOL.md. What an access
// list stops, and what not: docs/decisions/0019-access-lists.md.
package access
