package manager

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/task"
)

// NewToken makes an access token and returns what its holder shows ([Manager.Authenticate]), which nothing keeps and
// nobody can read again. In a dry run there is none, and the token has no ID. The error matches
// [task.ErrTokenExists] if there is a token of that name, also an expired one, or is a *statemachine.FieldError.
// There may be 10,000 tokens.
func (m *Manager) NewToken(ctx context.Context, spec task.TokenSpec, o ChangeOptions) (secret string, _ task.Token, err error) {
	if o, err = m.complete(o); err == nil {
		err = spec.Check()
	}
	if err == nil {
		err = m.stillToCome(ctx, spec.Expires)
	}
	if err != nil {
		return "", task.Token{}, err
	}
	made := task.Token{TokenSpec: spec, By: o.By}
	if o.DryRun {
		return "", made, m.tokenFree(ctx, spec.Name)
	}
	made.ID = randomText(tokenID)
	secret = randomText(tokenSecret)
	if made, err = m.store.AddToken(ctx, fleet.TokenRecord{Token: made, SHA256: secretHash(secret)}); err != nil {
		return "", task.Token{}, err
	}
	m.did(o, "added token", "token", made.Name, "id", made.ID, "role", made.Role)
	return "tdf_" + made.ID + "_" + secret, made, m.note(ctx, o, "token add", []string{made.Name}, nil)
}

// The lengths of the parts of a token. A letter has 5 bits, and a secret 260.
const (
	tokenID     = 8
	tokenSecret = 52
)

// tokenText is what the holder of a token shows.
var tokenText = regexp.MustCompile(fmt.Sprintf(`^tdf_([a-z2-7]{%d})_([a-z2-7]{%d})$`, tokenID, tokenSecret))

// randomText is n random letters of base32, at most two texts of crypto/rand.
func randomText(n int) string { return strings.ToLower(rand.Text() + rand.Text())[:n] }

// secretHash is what is kept of a secret. It is random, so that nobody finds it by trying words.
func secretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// stillToCome refuses an end that is over.
func (m *Manager) stillToCome(ctx context.Context, end time.Time) error {
	if end.IsZero() {
		return nil
	}
	over, err := m.over(ctx, end)
	if err == nil && over {
		err = fieldError("expires", end.UTC().Format(time.RFC3339), "a moment to come, or none for a token that does not expire")
	}
	return err
}

// over reports whether a moment has come by the time of the namespace, which never goes back.
func (m *Manager) over(ctx context.Context, end time.Time) (bool, error) {
	now, err := m.store.Now(ctx)
	return err == nil && now >= task.Stamp(end), err
}

func (m *Manager) tokenFree(ctx context.Context, name string) error {
	all, err := m.store.Tokens(ctx)
	if slices.ContainsFunc(all, func(t task.Token) bool { return t.Name == name }) {
		err = fmt.Errorf("token %q: %w", name, task.ErrTokenExists)
	}
	return err
}

// Tokens lists the access tokens by name. One whose record somebody has damaged has its ID and nothing else,
// and is good for nothing.
func (m *Manager) Tokens(ctx context.Context) ([]task.Token, error) { return m.store.Tokens(ctx) }

// RevokeToken removes an access token, by its name or its ID, from the next request on. The error matches
// [task.ErrNoToken] if there is none.
func (m *Manager) RevokeToken(ctx context.Context, name string, o ChangeOptions) error {
	o, err := m.complete(o)
	if err != nil {
		return err
	}
	all, err := m.store.Tokens(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(t task.Token) bool { return t.Name == name })
	if at < 0 {
		at = slices.IndexFunc(all, func(t task.Token) bool { return t.ID == name })
	}
	if at < 0 {
		return fmt.Errorf("%w: %q; tdf token ls lists them", task.ErrNoToken, name)
	}
	if o.DryRun {
		return nil
	}
	if err := m.store.RemoveToken(ctx, all[at].ID); err != nil {
		return err
	}
	m.did(o, "revoked token", "token", all[at].Name, "id", all[at].ID)
	return m.note(ctx, o, "token rm", []string{cmp.Or(all[at].Name, all[at].ID)}, nil)
}

// Authenticate returns the token that a text stands for, which [Manager.NewToken] has returned. The error matches
// [task.ErrToken] if it stands for none: malformed, unknown, revoked and expired ones are not told apart. Another error
// means that it could not be found out, and matches [task.ErrUnreachable] while Redis is away.
func (m *Manager) Authenticate(ctx context.Context, text string) (task.Token, error) {
	parts := tokenText.FindStringSubmatch(text)
	if parts == nil {
		return task.Token{}, task.ErrToken
	}
	found, err := m.store.Token(ctx, parts[1])
	if errors.Is(err, task.ErrNoToken) {
		return task.Token{}, task.ErrToken
	}
	if err != nil {
		return task.Token{}, err
	}
	if subtle.ConstantTimeCompare([]byte(found.SHA256), []byte(secretHash(parts[2]))) != 1 {
		return task.Token{}, task.ErrToken
	}
	if found.Expires.IsZero() {
		return found.Token, nil
	}
	over, err := m.over(ctx, found.Expires)
	if err == nil && over {
		err = task.ErrToken
	}
	if err != nil {
		return task.Token{}, err
	}
	return found.Token, nil
}
