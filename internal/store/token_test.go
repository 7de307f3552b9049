package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// tokenLosses are the scenarios of access tokens; they join scriptLosses.
var tokenLosses = map[string]map[string]loss{
	"grant":  {"first": {call: grantCall}, "another": {prepare: granted("other"), call: grantCall}},
	"revoke": {"one of two": {prepare: granted("other", "id"), call: revokeCall}, "the last": {prepare: granted("id"), call: revokeCall}},
}

// tokenOf is a token that may read.
func tokenOf(id, name string) fleet.TokenRecord {
	return fleet.TokenRecord{SHA256: strings.Repeat("0a", 32), Token: task.Token{
		ID: id, By: "ann, at home", TokenSpec: task.TokenSpec{Name: name, Role: task.TokenRead},
	}}
}

func grantCall(t *testing.T, st *store.Store) step {
	t.Helper()
	r := tokenOf("id", "ci")
	r.Expires = task.Moment(noon.Add(second))
	return func() (any, error) { return st.AddToken(t.Context(), r) }
}

// granted has tokens with these ids.
func granted(ids ...string) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		for _, id := range ids {
			if _, err := sp.Store.AddToken(t.Context(), tokenOf(id, "of-"+id)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func revokeCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.RemoveToken(t.Context(), "id") })
}

// What is read is what was given, with the time of its making.
func TestTokenComesBack(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	made := grantCall(t, sp.Store).must(t)
	want := tokenOf("id", "ci")
	want.Created, want.Expires = task.Moment(noon), task.Moment(noon.Add(second))
	found, err := sp.Store.Token(t.Context(), "id")
	if err != nil || found != want || made != any(want.Token) {
		t.Errorf("made %+v, found %+v, %v, want %+v", made, found, err, want)
	}
	if _, err := sp.Store.Token(t.Context(), "ci"); !errors.Is(err, task.ErrNoToken) {
		t.Errorf("by name: %v", err)
	}
}

// Neither a name nor an id is given twice, and nothing changes then.
func TestTokenIsGivenOnce(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	first := grantCall(t, sp.Store).must(t)
	before := dump(t, sp)
	for _, c := range []struct {
		id, name string
		want     error
	}{{"id2", "ci", task.ErrTokenExists}, {"id", "other", statemachine.ErrConflict}} {
		if _, err := sp.Store.AddToken(t.Context(), tokenOf(c.id, c.name)); !errors.Is(err, c.want) {
			t.Errorf("%s %s: %v, want %v", c.id, c.name, err, c.want)
		}
	}
	other := tokenOf("id", "ci")
	other.SHA256 = strings.Repeat("0b", 32)
	if _, err := sp.Store.AddToken(t.Context(), other); !errors.Is(err, statemachine.ErrConflict) {
		t.Errorf("another secret under the same id and name: %v", err)
	}
	sameDump(t, before, dump(t, sp), "after refusals")
	if _, err := sp.Store.AddToken(t.Context(), tokenOf("id3", "c")); err != nil {
		t.Errorf("a name that another begins with: %v", err)
	}
	if all, err := sp.Store.Tokens(t.Context()); err != nil || len(all) != 2 || all[0].Name != "c" || any(all[1]) != first {
		t.Errorf("%+v, %v", all, err)
	}
}

// There are at most so many tokens.
func TestTokensAreBounded(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	var fields []any
	for i := range fleet.MostTokens {
		fields = append(fields, fmt.Sprint("x", i), fmt.Sprintf("n%d read 0a 1 inf ann", i))
	}
	sp.Raw.HSet(t.Context(), sp.Key("tokens"), fields...)
	if _, err := sp.Store.AddToken(t.Context(), tokenOf("id", "ci")); err == nil || !strings.Contains(err.Error(), "10000 already; revoke") {
		t.Errorf("one more: %v", err)
	}
	if err := sp.Store.RemoveToken(t.Context(), "x7"); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Store.AddToken(t.Context(), tokenOf("id", "ci")); err != nil {
		t.Errorf("in the place of another: %v", err)
	}
}

// A record that somebody has damaged is good for nothing, and can be removed.
func TestDamagedToken(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sha := strings.Repeat("0a", 32)
	for _, text := range []string{
		"", "ci", "ci read " + sha + " 1 inf", ".ci read " + sha + " 1 inf ann", "ci king " + sha + " 1 inf ann",
		"ci read " + sha + " 1 soon ann", "ci read " + sha + " 1  ann", "ci read " + sha + " 1 0 ann",
	} {
		sp.Raw.HSet(t.Context(), sp.Key("tokens"), "id", text)
		want := fleet.TokenRecord{Token: task.Token{ID: "id"}}
		if found, err := sp.Store.Token(t.Context(), "id"); err != nil || found != want {
			t.Errorf("%q is read as %+v, %v", text, found, err)
		}
	}
	revokeCall(t, sp.Store).must(t)
	if all, err := sp.Store.Tokens(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left %+v, %v", all, err)
	}
}

// A flush removes tokens, as it does queues.
func TestFlushRemovesTokens(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	grantCall(t, sp.Store).must(t)
	if _, err := sp.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Store.Token(t.Context(), "id"); !errors.Is(err, task.ErrNoToken) {
		t.Errorf("after a flush: %v", err)
	}
}

// If the key of the tokens is something else, the error says so.
func TestTokensAreNoHash(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Raw.Set(t.Context(), sp.Key("tokens"), "x", 0)
	for name, call := range map[string]step{"grant": grantCall(t, sp.Store), "revoke": revokeCall(t, sp.Store)} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), "tokens is a string, want a hash") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
