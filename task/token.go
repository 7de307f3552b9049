package task

import (
	"slices"
	"time"
)

// TokenRole is what the holder of a token may do.
type TokenRole string

// The roles of tokens.
const (
	// TokenRead reads, and changes nothing.
	TokenRead TokenRole = "read"
	// TokenSubmit opens tasks, and reads.
	TokenSubmit TokenRole = "submit"
	// TokenWork works: it gets tasks, and reports on them, in the name of the worker
	// that the token is named after. It does nothing else.
	TokenWork TokenRole = "work"
	// TokenOperate changes tasks, queues, nodes and workers as well.
	TokenOperate TokenRole = "operate"
	// TokenAdmin makes and revokes tokens as well.
	TokenAdmin TokenRole = "admin"
)

// roles are those of people and their programs, each of which includes those before it.
var roles = []TokenRole{TokenRead, TokenSubmit, TokenOperate, TokenAdmin}

// May reports whether the role allows what needs the role need. A role includes
// those before it in this order: read, submit, operate, admin. The role work stands
// apart: it includes none, and none includes it. An unknown role may do nothing.
func (r TokenRole) May(need TokenRole) bool {
	if r == TokenWork {
		return need == TokenWork
	}
	needed := slices.Index(roles, need)
	return needed >= 0 && slices.Index(roles, r) >= needed
}

// TokenSpec is a token to be made.
type TokenSpec struct {
	// Name is what people call it: 1 to 64 letters, digits, dots, underscores and dashes,
	// no dot or dash in front. No two tokens have the same.
	Name string `json:"name"`
	// Role is what its holder may do.
	Role TokenRole `json:"role"`
	// Expires is when it ends, by the time of the namespace. Default: never.
	Expires time.Time `json:"expires,omitzero"`
}

// Check returns a *statemachine.FieldError about a name or a role that cannot be.
func (s *TokenSpec) Check() error {
	if !plainName.MatchString(s.Name) {
		return bad("name", s.Name, "the name of a token: "+wantName)
	}
	if s.Role != TokenWork && !slices.Contains(roles, s.Role) {
		return bad("role", string(s.Role), "read, submit, work, operate or admin")
	}
	return nil
}

// Token is an access token of the HTTP interface, without the secret that its holder
// shows: nothing keeps that.
type Token struct {
	// ID is short and random. It is no secret.
	ID string `json:"id"`
	TokenSpec

	// Created is when it was made, By who made it.
	Created time.Time `json:"created,omitzero"`
	By      string    `json:"by"`
}
