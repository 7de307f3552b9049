package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// MostTokens is how many access tokens a namespace may have.
const MostTokens = 10_000

// Access has the access tokens of one namespace.
type Access struct{ *conn.Conn }

// TokenRecord is an access token with what its holder is known by.
type TokenRecord struct {
	task.Token

	// SHA256 is the hash of its secret, in hex.
	SHA256 string
}

// AddToken makes a token; its Created becomes the time of the call. The error matches
// [task.ErrTokenExists] if there is one of the name, or statemachine.ErrConflict if there is one of the id.
func (s *Access) AddToken(ctx context.Context, r TokenRecord) (task.Token, error) {
	expires := statemachine.Never
	if !r.Expires.IsZero() {
		expires = task.Stamp(r.Expires)
	}
	v, err := s.Run(ctx, "grant", conn.Subject{}, r.ID, r.Name, string(r.Role), r.SHA256, expires.Text(), r.By, MostTokens)
	switch {
	case err != nil:
		return task.Token{}, err
	case v == int64(-1):
		return task.Token{}, fmt.Errorf("token %s: %w", conn.Quote(r.Name), task.ErrTokenExists)
	case v == int64(-2):
		return task.Token{}, fmt.Errorf("token id %s is given already: %w", conn.Quote(r.ID), statemachine.ErrConflict)
	case v == int64(-3):
		return task.Token{}, fmt.Errorf("token %s: there are %d already; revoke those that nobody needs", conn.Quote(r.Name), MostTokens)
	}
	text, _ := v.(string)
	return parseToken(r.ID, text).Token, nil
}

// RemoveToken takes a token away. Removing one that is gone is no error.
func (s *Access) RemoveToken(ctx context.Context, id string) error {
	_, err := s.Run(ctx, "revoke", conn.Subject{}, id)
	return err
}

// Token returns one token by its id. The error matches [task.ErrNoToken].
func (s *Access) Token(ctx context.Context, id string) (TokenRecord, error) {
	text, err := s.Redis.HGet(ctx, s.Keys.Tokens(), id).Result()
	switch {
	case conn.IsNil(err):
		return TokenRecord{}, fmt.Errorf("%w: %s", task.ErrNoToken, conn.Quote(id))
	case err != nil:
		return TokenRecord{}, s.Failed("token", err)
	}
	return parseToken(id, text), nil
}

// Tokens returns all tokens, by name.
func (s *Access) Tokens(ctx context.Context) ([]task.Token, error) {
	texts, err := s.Redis.HGetAll(ctx, s.Keys.Tokens()).Result()
	if err != nil {
		return nil, s.Failed("tokens", err)
	}
	all := make([]task.Token, 0, len(texts))
	for id, text := range texts {
		all = append(all, parseToken(id, text).Token)
	}
	slices.SortFunc(all, func(a, b task.Token) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// parseToken reads what the script grant wrote. A record that somebody has damaged has its id and nothing
// else, so it fits no secret and no role.
func parseToken(id, text string) TokenRecord {
	damaged := TokenRecord{Token: task.Token{ID: id}}
	f := strings.SplitN(text, " ", 6)
	if len(f) < 6 {
		return damaged
	}
	expires, err := statemachine.ParseTime(f[4])
	r := TokenRecord{SHA256: f[2], Token: task.Token{
		ID: id, TokenSpec: task.TokenSpec{Name: f[0], Role: task.TokenRole(f[1]), Expires: task.Moment(expires)},
		Created: task.ParseMoment(f[3]), By: f[5],
	}}
	if err != nil || r.Check() != nil || r.Expires.IsZero() && expires != statemachine.Never {
		return damaged
	}
	return r
}
