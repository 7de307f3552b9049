package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	from := []string{
		"PATH=/bin", "LC_ALL=C", "LC_TIME=de=x", "LC=no", "SECRET=s", "REDIS_PASSWORD=p", "TZ=",
		"HOME=/first", "HOME=/last", "broken", "=empty",
	}
	extra := map[string]string{"TDF_TASK_ID": "7", "PATH": "/over"}
	for name, c := range map[string]struct {
		allow []string
		want  []string
	}{
		"default": {DefaultAllow(), []string{
			"HOME=/last", "LC_ALL=C", "LC_TIME=de=x", "PATH=/over", "TDF_TASK_ID=7", "TZ=",
		}},
		"nothing": {nil, []string{"PATH=/over", "TDF_TASK_ID=7"}},
		"exact":   {[]string{"LC"}, []string{"LC=no", "PATH=/over", "TDF_TASK_ID=7"}},
		"all": {[]string{"*"}, []string{
			"HOME=/last", "LC=no", "LC_ALL=C", "LC_TIME=de=x", "PATH=/over", "REDIS_PASSWORD=p",
			"SECRET=s", "TDF_TASK_ID=7", "TZ=",
		}},
	} {
		if diff := cmp.Diff(c.want, Environment(c.allow, from, extra)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := Environment(nil, nil, nil); len(got) != 0 {
		t.Errorf("empty: %q", got)
	}
}

func TestDefaultAllowIsACopy(t *testing.T) {
	t.Parallel()
	DefaultAllow()[0] = "SECRET"
	if DefaultAllow()[0] == "SECRET" {
		t.Error("a caller can change the default for all")
	}
}

func TestSplitInput(t *testing.T) {
	t.Parallel()
	for input, want := range map[string][]string{
		"":                  {},
		" \t\n ":            {},
		"10 11 12":          {"10", "11", "12"},
		"  a\t\tb\nc ":      {"a", "b", "c"},
		`'a b' "c" \ d`:     {"'a", "b'", `"c"`, `\`, "d"},
		"$(id) * ~":         {"$(id)", "*", "~"},
		"a\rb c\vd e\u00a0": {"a\rb", "c\vd", "e\u00a0"},
		"\xff\x00 ü":        {"\xff\x00", "ü"},
	} {
		if diff := cmp.Diff(want, SplitInput(input)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", input, diff)
		}
	}
}
