package manager

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

// newToken makes a token that does not expire.
func newToken(t *testing.T, m *Manager, name string, role task.TokenRole) (secret string, made task.Token) {
	t.Helper()
	secret, made, err := m.NewToken(t.Context(), task.TokenSpec{Name: name, Role: role}, ChangeOptions{By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return secret, made
}

// authenticates checks which token a text stands for; without one it must stand for none, and the error say nothing of it.
func authenticates(t *testing.T, m *Manager, what, text string, want task.Token) {
	t.Helper()
	got, err := m.Authenticate(t.Context(), text)
	switch {
	case want.ID != "" && (err != nil || got != want):
		t.Errorf("%s: %+v, %v, want %+v", what, got, err, want)
	case want.ID == "" && (err != task.ErrToken || got != task.Token{}): //nolint:errorlint // it must say nothing else
		t.Errorf("%s: %+v, %v, want none", what, got, err)
	}
}

// A token is good for its holder and nobody else, until it is revoked.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	ci, made := newToken(t, m, "ci", task.TokenSubmit)
	other, madeToo := newToken(t, m, "other", task.TokenAdmin)
	if made.Name != "ci" || made.Role != task.TokenSubmit || made.By != "ann" || made.Created.IsZero() || !made.Expires.IsZero() {
		t.Errorf("made %+v", made)
	}
	authenticates(t, m, "the first", ci, made)
	authenticates(t, m, "the second", other, madeToo)
	id, secret := ci[:13], ci[13:]
	for what, text := range map[string]string{
		"nothing": "", "a word": "tdf", "no secret": id, "no id": "tdf__" + secret, "another secret": id + other[13:],
		"another id": "tdf_aaaaaaaa_" + secret, "the name": "tdf_ci_" + secret, "a letter less": ci[:64], "a letter more": ci + "a",
		"capitals": strings.ToUpper(ci), "a line": ci + "\n", "a blank": " " + ci, "a glob": "tdf_*_" + secret, "a megabyte": strings.Repeat("a", 1<<20),
	} {
		authenticates(t, m, what, text, task.Token{})
	}
	if err := m.RevokeToken(t.Context(), "ci", ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	authenticates(t, m, "a revoked one", ci, task.Token{})
	authenticates(t, m, "the other", other, madeToo)
	if err := m.RevokeToken(t.Context(), madeToo.ID, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	authenticates(t, m, "one revoked by id", other, task.Token{})
}

// A token ends by the time of the namespace, and one that would have ended already is not made.
func TestTokenExpires(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	now, err := m.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spec := task.TokenSpec{Name: "ci", Role: task.TokenRead, Expires: now.Add(time.Hour).In(time.FixedZone("", 3600))}
	secret, made, err := m.NewToken(t.Context(), spec, ChangeOptions{})
	if err != nil || !made.Expires.Equal(spec.Expires) {
		t.Fatalf("made %+v, %v", made, err)
	}
	authenticates(t, m, "in its hour", secret, made)
	forever, madeToo := newToken(t, m, "forever", task.TokenRead)
	ahead := fmt.Sprintf("%d %d", now.UnixMicro(), (2 * time.Hour).Microseconds())
	redisOf(m).Redis.HSet(t.Context(), m.Namespace()+":meta", "clock", ahead)
	authenticates(t, m, "after its hour", secret, task.Token{})
	authenticates(t, m, "the other", forever, madeToo)
	for _, o := range []ChangeOptions{{}, {DryRun: true}} {
		_, _, err := m.NewToken(t.Context(), task.TokenSpec{Name: "late", Role: task.TokenRead, Expires: now.Add(time.Hour)}, o)
		if fieldOf(err) != "expires" {
			t.Errorf("one that has ended: %v", err)
		}
	}
}

// A name is given once, and names and roles are checked, also by a dry run, which makes nothing.
func TestNewTokenRefuses(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	dry := ChangeOptions{DryRun: true}
	if secret, made, err := m.NewToken(t.Context(), task.TokenSpec{Name: "ci", Role: task.TokenRead}, dry); err != nil || secret != "" ||
		made.ID != "" || made.Name != "ci" || made.By != "m" {
		t.Errorf("a dry run: %q, %+v, %v", secret, made, err)
	}
	_, first := newToken(t, m, "ci", task.TokenRead)
	for _, o := range []ChangeOptions{{}, dry} {
		if _, _, err := m.NewToken(t.Context(), task.TokenSpec{Name: "ci", Role: task.TokenAdmin}, o); !errors.Is(err, task.ErrTokenExists) {
			t.Errorf("a second one: %v", err)
		}
		if _, _, err := m.NewToken(t.Context(), task.TokenSpec{Name: "c i", Role: task.TokenAdmin}, o); fieldOf(err) != "name" {
			t.Errorf("a bad name: %v", err)
		}
		if _, _, err := m.NewToken(t.Context(), task.TokenSpec{Name: "x"}, o); fieldOf(err) != "role" {
			t.Errorf("no role: %v", err)
		}
		err := m.RevokeToken(t.Context(), "nobody", o)
		if !errors.Is(err, task.ErrNoToken) || !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), "tdf token ls") {
			t.Errorf("revoked nobody: %v", err)
		}
	}
	if err := m.RevokeToken(t.Context(), "ci", dry); err != nil {
		t.Error(err)
	}
	if all, err := m.Tokens(t.Context()); err != nil || len(all) != 1 || all[0] != first {
		t.Errorf("%+v, %v", all, err)
	}
}

// A secret is neither in Redis nor in the log; who made and who revoked its token is in the log.
func TestSecretOfATokenIsNowhere(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	ns := redistest.Namespace(t)
	m := newManager(t, ns, withLogger(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	shown, made := newToken(t, m, "ci", task.TokenSubmit)
	authenticates(t, m, "it", shown, made)
	wrong := strings.Replace(shown, made.ID, "aaaaaaaa", 1)
	authenticates(t, m, "another", wrong, task.Token{})
	said := map[string]string{}
	for _, key := range redisOf(m).Redis.Keys(t.Context(), ns+":*").Val() {
		said[key] = fmt.Sprint(redisOf(m).Redis.HGetAll(t.Context(), key).Val())
		if key == ns+":changes" {
			said[key] = fmt.Sprint(redisOf(m).Redis.LRange(t.Context(), key, 0, -1).Val())
		}
		if said[key] == "map[]" {
			t.Errorf("%s is no hash: read it otherwise", key)
		}
	}
	if said[ns+":tokens"] == "" {
		t.Errorf("redis has %v", said)
	}
	if err := m.RevokeToken(t.Context(), "ci", ChangeOptions{By: "bob", Reason: "left"}); err != nil {
		t.Fatal(err)
	}
	said["the log"] = text.String()
	for where, text := range said {
		if strings.Contains(text, shown[13:]) {
			t.Errorf("%s has the secret: %q", where, text)
		}
	}
	for _, want := range []string{`added token" .*token=ci id=` + made.ID + ` role=submit by=ann\n`, `revoked token" .*token=ci .*by=bob reason=left\n`} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("want %s in\n%s", want, text.String())
		}
	}
}

// A request costs one HGET, and the clock only where a token expires. Without Redis nobody learns that a token was no good.
func TestAuthenticateAsksRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := newManager(t, redistest.Namespace(t), at(srv.Socket(), "0"))
	forever, _ := newToken(t, m, "forever", task.TokenRead)
	until, _, err := m.NewToken(t.Context(), task.TokenSpec{Name: "until", Role: task.TokenRead, Expires: time.Now().Add(time.Hour)}, ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, text  string
		hget, times int
	}{
		{"malformed", forever[:60], 0, 0}, {"unknown", "tdf_aaaaaaaa_" + forever[13:], 1, 0}, {"wrong", forever[:13] + until[13:], 1, 0},
		{"for ever", forever, 1, 0}, {"until then", until, 2, 1}, // the clock is TIME and HGET, in one trip
	} {
		srv.Do(t, "CONFIG", "RESETSTAT")
		_, _ = m.Authenticate(t.Context(), c.text)
		stats, _ := srv.Do(t, "INFO", "commandstats").(string)
		for command, want := range map[string]int{"hget": c.hget, "time": c.times} {
			if got := strings.Contains(stats, fmt.Sprintf("cmdstat_%s:calls=%d,", command, want)); got != (want > 0) {
				t.Errorf("%s: want %d %s in %s", c.what, want, command, stats)
			}
		}
	}
	srv.Do(t, "SET", m.Namespace()+":tokens", "x")
	if _, err := m.Authenticate(t.Context(), forever); err == nil || errors.Is(err, task.ErrToken) || strings.Contains(err.Error(), forever[13:]) {
		t.Errorf("a key of another type: %v", err)
	}
	srv.Kill(t)
	if _, err := m.Authenticate(t.Context(), until); !errors.Is(err, task.ErrUnreachable) || errors.Is(err, task.ErrToken) {
		t.Errorf("without Redis: %v", err)
	}
}
