package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/access"
)

// user makes the login of a role, with the password secret.
func (b *bench) user(role access.Role) access.User {
	b.t.Helper()
	u := access.User{Role: role, Namespace: b.ns, PasswordHash: access.Hash("secret")}
	rules, err := u.Rules()
	if err != nil {
		b.t.Fatal(err)
	}
	b.srv.Do(b.t, append([]string{"ACL", "SETUSER", u.Login()}, rules...)...)
	return u
}

// as makes the bench work with the login of a role. The scripts it needs are loaded.
func (b *bench) as(role access.Role) {
	b.t.Helper()
	u := b.user(role)
	b.file = filepath.Join(b.t.TempDir(), string(role)+".cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\nusername=%s\npassword=secret\n[tdf]\nnamespace=%s\n", b.srv.Socket(), u.Login(), b.ns)
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// What an access list forbids is told with the login that may do it.
func TestDenied(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.as(access.Viewer)
	b.must("stats")
	wantText(t, b.must("why", "5"), "no worker is alive") // asked of a claim that writes nothing
	b.must("why", "--queue", "default")
	for args, want := range map[string]string{
		"cancel 5":                     "acl manager",
		"cancel all --yes":             "acl manager",
		"retry 1":                      "acl manager",
		"submit --program p --class c": "acl manager",
		"queue add q":                  "acl manager",
		"node set n maxthreads=1":      "acl manager",
		"flush --yes":                  "an administrator",
	} {
		r := b.run(fields(args)...)
		say := "tdf-manager: [redis] username = tdf-viewer-" + b.ns + ": Redis does not let this user do it; use the login of "
		if r.code != 3 || !strings.HasPrefix(r.err, say) || strings.Count(r.err, "[redis]") != 1 {
			t.Errorf("%s: %+v", args, r)
		}
		wantText(t, r.err, want)
	}
	if object := b.value(3, "cancel", "5").(map[string]any); object["code"] != 3.0 || strings.Count(fmt.Sprint(object["error"]), "[redis]") != 1 {
		t.Errorf("JSON: %v", object)
	}
}
