package verbs

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/access"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.run("token", "ls")
	if r.code != 0 || r.out != "" || !strings.Contains(r.err, "token add NAME --role ROLE") {
		t.Errorf("none: %+v", r)
	}
	if list := b.value(0, "token", "ls").([]any); len(list) != 0 {
		t.Errorf("none: %v, want []", list)
	}
	wantText(t, b.unchanged("token", "add", "ci", "--role", "submit", "-n").out, "would add token ci: role submit, good until it is revoked")
	wantText(t, b.unchanged("token", "add", "ci", "--role", "submit", "-n", "--expires", "90d").out, "good until 2")
	ci := b.run("token", "add", "ci", "--role", "submit")
	if ci.code != 0 || strings.Count(ci.out, "\n") != 1 || !strings.HasPrefix(ci.out, "tdf_") {
		t.Errorf("stdout has more than the secret: %+v", ci)
	}
	wantText(t, ci.err, "not shown again", "Authorization: Bearer")
	if strings.Contains(ci.err, ci.out[13:64]) {
		t.Errorf("stderr has the secret: %q", ci.err)
	}
	object := b.value(0, "token", "add", "grafana", "--role", "read", "--expires", "90d").(map[string]any)
	made, expires := instant(t, object["created"]), instant(t, object["expires"])
	secret, _ := object["secret"].(string)
	if days := expires.Sub(made).Hours() / 24; days < 89.9 || days > 90 || !strings.HasPrefix(secret, "tdf_"+object["id"].(string)+"_") ||
		object["name"] != "grafana" || object["role"] != "read" || object["by"] != operator() || object["dry_run"] != false {
		t.Errorf("JSON: %v", object)
	}
	b.store.Redis.HSet(t.Context(), b.ns+":tokens", "odd", "x", "old", "z read 0a 1 2 ann\x1b[1m")
	list := b.must("token", "ls")
	wantText(t, list, "NAME", "-        odd       damaged  -  ", "ci       "+ci.out[4:12]+"  submit   never", "grafana  ", "z        old       read     expired", operator())
	if strings.Contains(list, "\x1b") || strings.Contains(list, secret[13:]) || strings.Contains(b.must("token", "ls", "--json"), "sha256") {
		t.Errorf("the list shows too much: %q", list)
	}
}

func TestTokenRm(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("token", "add", "ci", "--role", "admin")
	b.store.Redis.HSet(t.Context(), b.ns+":tokens", "odd", "x")
	for args, say := range map[string]string{"ci nobody": "token ls", "cii": `did you mean "ci"?`} {
		if r := b.unchanged(append([]string{"token", "rm"}, fields(args)...)...); r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("rm %s: %+v, want 2 and %q", args, r, say)
		}
	}
	wantText(t, b.unchanged("token", "rm", "ci", "-n").out, "would remove token ci\n")
	if out := b.must("token", "rm", "ci", "odd", "ci"); out != "removed token ci\nremoved token odd\n" {
		t.Errorf("removed %q", out)
	}
	if list := b.value(0, "token", "ls").([]any); len(list) != 0 {
		t.Errorf("left %v", list)
	}
}

func TestTokenAddRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("token", "add", "ci", "--role", "read")
	for args, say := range map[string]string{
		"x": "role", "x --role king": "king", "x --role read --expires 90": "90d", "x --role read --expires=": "90d",
		".x --role read": ".x", "--role read": "expecting 1 argument",
	} {
		if r := b.unchanged(append([]string{"token", "add"}, fields(args)...)...); r.code != 2 || !strings.Contains(r.err, say) || r.out != "" {
			t.Errorf("%s: %+v, want 2 and %q", args, r, say)
		}
	}
	if r := b.unchanged("token", "add", "ci", "--role", "admin"); r.code != 1 || !strings.Contains(r.err, "tdf-manager token rm ci") {
		t.Errorf("a second one: %+v", r)
	}
}

// Who only looks sees who has tokens, and makes none.
func TestTokensOfAViewer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("token", "add", "ci", "--role", "read")
	b.as(access.Viewer)
	wantText(t, b.must("token", "ls"), "ci")
	for _, args := range []string{"add x --role read", "rm ci"} {
		if r := b.unchanged(append([]string{"token"}, fields(args)...)...); r.code != 3 || !strings.Contains(r.err, "acl manager") {
			t.Errorf("%s: %+v", args, r)
		}
	}
	b.as(access.Manager)
	b.must("token", "rm", "ci")
}
