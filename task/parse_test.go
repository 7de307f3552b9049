package task_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/task"
)

func TestResources(t *testing.T) {
	t.Parallel()
	r, err := task.ParseResources("mem=2048,gpu=1")
	if diff := cmp.Diff(task.Resources{"mem": 2048, "gpu": 1}, r); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	if got := r.Text(); got != "gpu=1,mem=2048" {
		t.Errorf("text %q", got)
	}
	if r, err := task.ParseResources(""); r != nil || err != nil || r.Text() != "" {
		t.Errorf("no resources are %v, %v", r, err)
	}
	many := "a0=1"
	for _, c := range "bcdefghijklmnop" {
		many += "," + string(c) + "=1"
	}
	if _, err := task.ParseResources(many); err != nil {
		t.Errorf("sixteen: %v", err)
	}
	for _, text := range []string{
		many + ",q=1", "gpu", "gpu=", "=1", "gpu=0", "gpu=-1", "gpu=1.5", "gpu=1000000001", "gpu=x", "gpu=1,gpu=1", "GPU=1", "1gpu=1", "gpu=1,",
		",", " gpu=1", "gpu=1, mem=1", "g-u=1", "gpu=+1", "gpu=01", "gpu=1=1", strings.Repeat("a", 65) + "=1",
	} {
		r, err := task.ParseResources(text)
		refused(t, err, "resources")
		if r != nil {
			t.Errorf("%q gave %v", text, r)
		}
	}
}

func TestResourcesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := someResources().Draw(t, "resources")
		got, err := task.ParseResources(want.Text())
		if err != nil || got.Text() != want.Text() || len(got) != len(want) {
			t.Fatalf("%v came back as %v, %v", want, got, err)
		}
	})
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a=b": "a=b", "zone=eu,gpu=a100,zone=eu": "gpu=a100,zone=eu", "ü=ö": "ü=ö", "v=1.2/x:y": "v=1.2/x:y",
	} {
		if got, err := task.ParseLabels(text); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	var many []string
	for i := range 65 {
		many = append(many, "a="+string(rune('A'+i)))
	}
	for _, text := range []string{
		"a", "a=", "=b", "a=b=c", "a=b,", ",", "a = b", "a=b, c=d", "a=b\u00a0", "a=\t", "a=\x00", "a=\xff", "a=\u202e",
		"a=" + strings.Repeat("b", 127), strings.Join(many, ","),
	} {
		_, err := task.ParseLabels(text)
		refused(t, err, "labels")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]task.Limit{
		"": task.Unlimited, "none": task.Unlimited, "null": task.Unlimited, "0": task.AtMost(0), "7": task.AtMost(7), "1000000000": task.AtMost(1e9),
	} {
		got, err := task.ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
		if again, err := task.ParseLimit(got.Text()); err != nil || again != got {
			t.Errorf("%s came back as %s, %v", got, again, err)
		}
	}
	for _, text := range []string{"-1", "1.5", "x", "1000000001", "inf", " 1", "+1", "01", "None", "99999999999999999999"} {
		_, err := task.ParseLimit(text)
		refused(t, err, "")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	for _, tc := range []struct {
		field string
		check func(string) error
		good  []string
		bad   []string
	}{
		{"queue", task.CheckQueueName, []string{"default", "a", "9", "_x", "a.b-c_d", long},
			[]string{"", ".a", "-a", "a b", "a:b", "a/b", "a*", "ä", "{a}", long + "x", "a\n"}},
		{"env", task.CheckEnv, []string{"", "python", "py3.12"}, []string{"a b", "-x", long + "x"}},
		{"class", task.CheckClass, []string{"", "render", "Disbatch::Plugin"}, []string{"a b", "a,b", "a=1", "\x00", long + long + "x"}},
		{"classes", task.CheckOffer, []string{"render", "render=2.1"}, []string{"", "=1", "render=", "a=b=c", "a b", "a,b"}},
		{"node", task.CheckNode, []string{"n", "host-1.example", "::1", "ä"}, []string{"", ".", "..", "a b", "a,b", "a/b", `a\b`, "a\u00a0b", "\x1b", long + long + "x"}},
	} {
		for _, name := range tc.good {
			if err := tc.check(name); err != nil {
				t.Errorf("%s %q: %v", tc.field, name, err)
			}
		}
		for _, name := range tc.bad {
			refused(t, tc.check(name), tc.field)
		}
	}
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"0": "0", "-1000": "-1000", "1000": "1000"} {
		if got, err := task.Parse("priority", text); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"1001", "-1001", "x", "1.5", "+1", " 1"} {
		_, err := task.Parse("priority", text)
		refused(t, err, "priority")
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		good      map[string]string // text and what it becomes
		bad       []string
		emptyGood bool
	}{
		{"charge", map[string]string{"all": "all", "program": "program"}, []string{"Program"}, true},
		{"archive", map[string]string{"manager": "manager", "at_once": "at_once"}, []string{"At_once", "never"}, true},
		{"env", map[string]string{"python": "python"}, []string{"a b"}, true},
		{"fail_on", map[string]string{"any": "any", "stderr": "stderr", "exit": "exit"}, []string{"stdout"}, true},
		{"fatal_exit_codes", map[string]string{"75,1,75,255,0": "0,1,75,255"}, []string{"256", "-1", "1,", "1, 2", "x"}, true},
		{"labels", map[string]string{"b=1,a=1": "a=1,b=1"}, []string{"a"}, true},
		{"max_fails", map[string]string{"3": "3", "inf": "inf", "Infinity": "inf", "unlimited": "inf", "0": "0"}, []string{"-1", "1.5", "1000000001", "none", "Unlimited"}, false},
		{"max_faults", map[string]string{"3": "3"}, []string{"-1"}, false},
		{"max_losses", map[string]string{"3": "3"}, []string{"-1"}, false},
		{"max_timeouts", map[string]string{"3": "3"}, []string{"-1"}, false},
		{"priority", map[string]string{"-5": "-5"}, []string{"1001", "x"}, false},
		{"resources", map[string]string{"mem=2,gpu=1": "gpu=1,mem=2"}, []string{"gpu"}, true},
		{"retry_backoff", map[string]string{"1": "1", "2.50": "2.5", "1000": "1000"}, []string{"0.9", "1001", "inf", "NaN", "0x2p0", "x"}, false},
		{"retry_delay", map[string]string{"0": "0", "1.5": "1.5", "5m": "300", "31536000": "31536000"}, []string{"inf", "-1", "-1s", "31536001", "NaN"}, false},
		{"retry_exit_codes", map[string]string{"2,1": "1,2"}, []string{"a"}, true},
		{"retry_jitter", map[string]string{"0": "0", "0.25": "0.25", "1": "1"}, []string{"1.1", "-0.1", "NaN"}, false},
		{"retry_max_delay", map[string]string{"inf": "inf", "1h": "3600"}, []string{"0", "-1", "NaN"}, false},
		{"timeout", map[string]string{"inf": "inf", "90": "90", "1.3s": "1.3"}, []string{"0", "-1", "1e-9"}, false},
	} {
		for text, want := range tc.good {
			got, err := task.Parse(tc.name, text)
			if err != nil || got != want {
				t.Errorf("%s=%q is %q, %v; want %q", tc.name, text, got, err, want)
			}
			if again, err := task.Parse(tc.name, got); err != nil || again != got {
				t.Errorf("%s=%q came back as %q, %v", tc.name, got, again, err)
			}
		}
		for _, text := range tc.bad {
			_, err := task.Parse(tc.name, text)
			refused(t, err, tc.name)
		}
		if _, err := task.Parse(tc.name, ""); (err == nil) != tc.emptyGood {
			t.Errorf("%s empty: %v", tc.name, err)
		}
	}
	_, err := task.Parse("max_fial", "1")
	refused(t, err, "name")
}

func TestDisbatchNode(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"mig01": true, "a": true, "A_1": true, "abcdefgh": true,
		"": false, "1abc": false, "_a": false, "a-b": false, "abcdefghi": false, "a.b": false,
	} {
		if task.DisbatchNode(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
