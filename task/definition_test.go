package task_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// TestEveryField: what a text sets the spec says again, a definition has and a record keeps.
func TestEveryField(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"program": "p", "source": "rsync:/p", "input": "1 2", "argv": `["a b",""]`, "start_after": "5.25", "end_before": "6.5",
		"timeout": "120", "max_fails": "1", "max_timeouts": "inf", "max_losses": "0", "max_faults": "4", "fail_on": "exit", "charge": "program", "archive": "at_once", "workdir": "shared", "on_cut": "fail", "return": `["a.b","out/*.csv"]`, "return_on": "end", "params": `{"a":[1,{"é":9007199254740993}],"b":"<&>"}`, "key_until": "end", "return_to": "file:/shared", "stdin": "blob:sha256=" + strings.Repeat("0a", 32), "memory_max": "2097152", "pids_max": "100", "nice": "10",
		"retry_delay": "60", "retry_backoff": "2.5", "retry_max_delay": "3600", "retry_jitter": "0.5", "retry_exit_codes": "2,75",
		"fatal_exit_codes": "1", "queue": "q", "env": "python", "labels": "a=1,b=2,memory_max=on,pids_max=on", "resources": "gpu=1,mem=2", "priority": "-3",
		"key": "k", "hold": "not yet", "comment": "again, with more memory", "class": "resize", "args": "files", "step": "s[1]",
		"meta": `{"tenant":"acme","trace":"00-a,b"}`, "variables": `{"A":"","B_1":"x=y\nz"}`,
	}
	var spec task.Spec
	for _, f := range task.Fields() {
		text, known := texts[f.Name]
		if !known {
			t.Fatalf("field %s is not tested", f.Name)
		}
		if err := spec.Set(f.Name, text, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if got, said := spec.Text(f.Name); got != text || !said {
			t.Errorf("%s: %q, %t, want %q", f.Name, got, said, text)
		}
		if f.Doc == "" || f.Usage() == "" || strings.Contains(f.Usage(), "`") {
			t.Errorf("%s: %q, %q", f.Name, f.Doc, f.Usage())
		}
	}
	d, err := task.Define(&spec)
	if err != nil {
		t.Fatal(err)
	}
	values := d.Values()
	for name, text := range texts {
		at := slices.Index(values, name)
		if d.Text(name) != text || at < 0 || at%2 != 0 || values[at+1] != text {
			t.Errorf("%s: %q in %q", name, d.Text(name), values)
		}
	}
	raw, err := json.Marshal(d)
	var again task.Definition
	if err == nil {
		err = json.Unmarshal(raw, &again)
	}
	if err != nil || !slices.Equal(again.Values(), values) {
		t.Errorf("%s, %v, want %q again", again.Values(), err, values)
	}
	opened := readBack(t, task.Decode(1, pairs(t, values)))
	opened.Variables = spec.Variables // whose values nobody sees
	if d, err = task.Define(&opened); err != nil || !slices.Equal(d.Values(), values) {
		t.Errorf("from JSON: %s, %v, want %q", d.Values(), err, values)
	}
	for name := range texts { // cleared, it is left to the defaults
		if err := spec.Set(name, "", time.Time{}); err != nil {
			t.Error(err)
		}
	}
	if texts := spec.Texts(); strings.Trim(strings.Join(texts, ""), "\x00") != "" {
		t.Errorf("%q, want nothing said", texts)
	}
}

// TestDefaultsComeInOrder: a spec's own value, then the first of the defaults that has one, then those of TDF.
func TestDefaultsComeInOrder(t *testing.T) {
	t.Parallel()
	queue := task.Defaults{"max_fails": "1", "timeout": "10"}
	configured := task.Defaults{"max_fails": "2", "timeout": "20", "max_timeouts": "20"}
	d, err := task.Define(&task.Spec{Program: "p", Timeout: time.Second, Labels: []string{}}, queue, configured)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"timeout": "1", "max_fails": "1", "max_timeouts": "20", "max_losses": "3", "labels": ""} {
		if got := d.Text(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if d, _ = task.Define(&task.Spec{Program: "p", Labels: []string{}}, task.Defaults{"labels": "a=1"}); d.Text("labels") != "" {
		t.Errorf("labels %q, want none, as the spec says", d.Text("labels"))
	}
}

// TestRecordOfAPlainTask has the fields of the original only.
func TestRecordOfAPlainTask(t *testing.T) {
	t.Parallel()
	d, err := task.Define(&task.Spec{Program: "p", Source: "s", Input: "1 2", Queue: task.DefaultQueue, FailOn: task.FailOnAny, Retry: task.Retry{Delay: -1}})
	want := "program p source s input 1 2 start_after 0 end_before inf timeout inf max_fails 0 max_timeouts 0"
	if got := strings.Join(d.Values(), " "); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if d.Bucket() != (task.Bucket{}) {
		t.Errorf("%+v", d.Bucket())
	}
}

// TestMeta: what is passed on is an object of texts with plain names, and empty is nothing.
// A command needs no name, goes to workers that run commands, and fails by its exit status
// unless its task says otherwise.
func TestDefineCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec     task.Spec
		defaults task.Defaults
		want     map[string]string
	}{
		{task.Spec{Source: "command:/usr/bin/convert"}, nil, map[string]string{"program": "convert", "fail_on": "exit", "labels": "commands=on"}},
		{task.Spec{Source: "command:convert", Program: "thumbs"}, nil, map[string]string{"program": "thumbs"}},
		{
			task.Spec{Source: "command:./convert" + task.Pin(strings.Repeat("0a", 32))}, nil,
			map[string]string{"program": "convert", "fail_on": "exit", "labels": "commands=on"},
		},
		{task.Spec{Source: "command:convert", FailOn: task.FailOnAny}, nil, map[string]string{"fail_on": "any"}},
		{task.Spec{Source: "command:convert"}, task.Defaults{"fail_on": "any", "labels": "zone=eu"}, map[string]string{"fail_on": "exit", "labels": "commands=on,zone=eu"}},
		{task.Spec{Source: "command:convert"}, task.Defaults{"fail_on": "stderr"}, map[string]string{"fail_on": "stderr"}},
		{task.Spec{Source: "command:convert", Labels: []string{}}, task.Defaults{"labels": "zone=eu"}, map[string]string{"labels": "commands=on"}},
		{task.Spec{Source: "rsync:run.sh", Program: "p"}, nil, map[string]string{"fail_on": "any", "labels": ""}},
	} {
		d, err := task.Define(&c.spec, c.defaults)
		if err != nil {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		for name, want := range c.want {
			if got := d.Text(name); got != want {
				t.Errorf("%s, defaults %v: %s = %q, want %q", c.spec.Source, c.defaults, name, got, want)
			}
		}
	}
	for _, c := range []struct {
		spec        task.Spec
		field, says string
	}{
		{task.Spec{Source: "command:./convert"}, "source", "relative path"},
		{task.Spec{Source: "command:/bin/ls "}, "program", "no blank"},
		{task.Spec{Source: "command:convert", Workdir: task.WorkdirShared}, "workdir", "share no directory"},
	} {
		_, err := task.Define(&c.spec)
		fe, ok := errors.AsType[*statemachine.FieldError](err)
		if !ok || fe.Field != c.field || !strings.Contains(fe.Want, c.says) {
			t.Errorf("%+v: %v, want the field %s and %q", c.spec, err, c.field, c.says)
		}
	}
}

func TestMeta(t *testing.T) {
	t.Parallel()
	many, long := map[string]string{}, strings.Repeat("x", 1025)
	for i := range 33 {
		many["n"+strconv.Itoa(i)] = ""
	}
	for name, m := range map[string]map[string]string{
		"capitals": {"Tenant": "a"}, "no name": {"": "a"}, "a dash": {"x-y": "a"}, "a digit": {"1a": "a"},
		"a long name": {long[:65]: ""}, "a long text": {"a": long}, "two lines": {"a": "b\nc"}, "no UTF-8": {"a": "\xff"}, "many": many,
	} {
		_, err := task.Define(&task.Spec{Program: "p", Meta: m})
		if fe, ok := errors.AsType[*statemachine.FieldError](err); !ok || fe.Field != "meta" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"a=b", `["a"]`, `{"a":1}`, "{"} {
		if err := new(task.Spec).Set("meta", text, time.Time{}); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	d, err := task.Define(&task.Spec{Program: "p", Meta: map[string]string{}})
	if err != nil || slices.Contains(d.Values(), "meta") {
		t.Errorf("%s, %v", d.Values(), err)
	}
	var spec task.Spec
	if err := spec.SetJSON("meta", json.RawMessage(`{"b":"2","a":"<1>"}`), time.Time{}); err != nil || spec.Meta["a"] != "<1>" || spec.Meta["b"] != "2" {
		t.Errorf("%v, %v", spec.Meta, err)
	}
	one, other := task.Spec{Program: "p", Meta: spec.Meta}, task.Spec{Program: "p"}
	if !slices.Equal(one.Texts(), other.Texts()) {
		t.Error("the meta is part of the digest of a request")
	}
}

func TestDefineRefuses(t *testing.T) {
	t.Parallel()
	past, later := time.Unix(5, 0), time.Unix(6, 0)
	for name, tc := range map[string]struct {
		change   func(*task.Spec)
		field    string
		defaults task.Defaults
	}{
		"no program":        {func(s *task.Spec) { s.Program = "" }, "program", nil},
		"path":              {func(s *task.Spec) { s.Program = "a/b" }, "program", nil},
		"dots":              {func(s *task.Spec) { s.Program = ".." }, "program", nil},
		"blank":             {func(s *task.Spec) { s.Program = "p " }, "program", nil},
		"NUL in the source": {func(s *task.Spec) { s.Source = "a\x00" }, "source", nil},
		"NUL in the input":  {func(s *task.Spec) { s.Input = "a\x00" }, "input", nil},
		"NUL in a word":     {func(s *task.Spec) { s.Argv = []string{"a\x00"} }, "argv", nil},
		"no text":           {func(s *task.Spec) { s.Argv = []string{"a\xff"} }, "argv", nil},
		"end before start":  {func(s *task.Spec) { s.StartAfter, s.EndBefore = later, past }, "start_after", nil},
		"end too early":     {func(s *task.Spec) { s.EndBefore = past }, "end_before", task.Defaults{"start_after": "6"}},
		"two starts":        {func(s *task.Spec) { s.StartAfter, s.StartIn = past, time.Second }, "start_in", nil},
		"start and none":    {func(s *task.Spec) { s.StartAfter, s.StartIn = past, -1 }, "start_in", nil},
		"two ends":          {func(s *task.Spec) { s.EndBefore, s.EndIn = later, time.Second }, "end_in", nil},
		"ends, then starts": {func(s *task.Spec) { s.StartIn, s.EndIn = time.Hour, time.Minute }, "start_in", nil},
		"negative count":    {func(s *task.Spec) { s.Retry.Limit = task.AtMost(-1) }, "max_fails", nil},
		"no count":          {func(s *task.Spec) { s.MaxLosses = "many" }, "max_losses", nil},
		"long delay":        {func(s *task.Spec) { s.Retry.Delay = 366 * 24 * time.Hour }, "retry_delay", nil},
		"no factor":         {func(s *task.Spec) { s.Retry.Backoff = 0.5 }, "retry_backoff", nil},
		"no exit code":      {func(s *task.Spec) { s.Retry.ExitCodes = []int{256} }, "retry_exit_codes", nil},
		"no label":          {func(s *task.Spec) { s.Labels = []string{"gpu"} }, "labels", nil},
		"no resource":       {func(s *task.Spec) { s.Resources = map[string]int{"GPU": 1} }, "resources", nil},
		"no priority":       {func(s *task.Spec) { s.Priority = new(1001) }, "priority", nil},
		"no queue":          {func(s *task.Spec) { s.Queue = "a b" }, "queue", nil},
		"no env":            {func(s *task.Spec) { s.Env = "a b" }, "env", nil},
		"no word":           {func(s *task.Spec) { s.FailOn = "stdout" }, "fail_on", nil},
		"long key":          {func(s *task.Spec) { s.Key = strings.Repeat("k", 4097) }, "key", nil},
		"no key":            {func(s *task.Spec) { s.KeyUntil = task.KeyUntilEnd }, "key", nil},
		"two lines":         {func(s *task.Spec) { s.Hold = "a\nb" }, "hold", nil},
		"long step":         {func(s *task.Spec) { s.Step = strings.Repeat("s", 129) }, "step", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := task.Spec{Program: "p"}
			tc.change(&spec)
			_, err := task.Define(&spec, tc.defaults)
			refused(t, err, tc.field)
		})
	}
}

// TestSetJSON: each form that a value may have in JSON.
func TestSetJSON(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, tc := range []struct{ name, raw, want string }{
		{"program", `"p"`, "p"}, {"max_fails", `3`, "3"}, {"max_fails", `"unlimited"`, "inf"}, {"timeout", `1.5`, "1.5"}, {"timeout", `"5m"`, "300"},
		{"start_after", `"+10m"`, "1600"}, {"end_before", `"1970-01-01T00:20:00Z"`, "1200"}, {"end_before", `"inf"`, "inf"},
		{"argv", `["a b", ""]`, `["a b",""]`}, {"hold", `true`, task.HeldText}, {"hold", `"why"`, "why"},
		{"labels", `["b=1","a=2"]`, "a=2,b=1"}, {"labels", `{"b":1}`, "b=1"}, {"labels", `[]`, ""}, {"labels", `"none"`, ""},
		{"resources", `{"gpu":2}`, "gpu=2"}, {"resources", `{}`, ""}, {"retry_exit_codes", `[75,2]`, "2,75"}, {"retry_exit_codes", `"75"`, "75"},
		{"retry_delay", `0`, "0"}, {"retry_backoff", `2`, "2"}, {"priority", `-5`, "-5"},
	} {
		var spec task.Spec
		err := spec.SetJSON(tc.name, json.RawMessage(tc.raw), now)
		if got, said := spec.Text(tc.name); err != nil || !said || got != tc.want {
			t.Errorf("%s=%s: %q, %t, %v, want %q", tc.name, tc.raw, got, said, err, tc.want)
		}
	}
	for _, tc := range []struct{ name, raw string }{
		{"program", `1`}, {"program", `null`}, {"max_fails", `true`}, {"max_fails", `-1`}, {"max_fails", `[1]`}, {"argv", `"a"`}, {"argv", `[1]`},
		{"hold", `null`}, {"hold", `""`}, {"labels", `1`}, {"labels", `{"a":"b c"}`}, {"retry_exit_codes", `[256]`}, {"resources", `{"gpu":0.5}`},
		{"start_after", `"soon"`}, {"no_field", `1`},
	} {
		var spec task.Spec
		err := spec.SetJSON(tc.name, json.RawMessage(tc.raw), now)
		if _, ok := errors.AsType[*statemachine.FieldError](err); !ok || len(strings.Trim(strings.Join(spec.Texts(), ""), "\x00")) > 0 {
			t.Errorf("%s=%s: %v, %+v, want it refused", tc.name, tc.raw, err, spec)
		}
	}
}

// TestRedefine: what ties a record to its task is left out, and what is damaged is refused.
func TestRedefine(t *testing.T) {
	t.Parallel()
	d, err := task.Redefine(map[string]string{"program": "p", "key": "k", "hold": "h", "labels": "b=1,a=1", "round": "7", "timeout": "3.50"})
	if err != nil || d.Text("key") != "" || d.Text("hold") != "" || d.Text("labels") != "a=1,b=1" || d.Text("timeout") != "3.50" || d.Text("max_losses") != "3" {
		t.Errorf("%q, %v", d.Values(), err)
	}
	for field, text := range map[string]string{"priority": "x", "argv": "[", "max_fails": "many", "program": ""} {
		fields := map[string]string{"program": "p"}
		fields[field] = text
		_, err := task.Redefine(fields)
		refused(t, err, field)
	}
	other := d
	if err := other.Set("timeout", "-1"); err == nil || other.Text("timeout") != "3.50" {
		t.Errorf("%v, %q", err, other.Text("timeout"))
	}
	if err := other.Set("timeout", "5"); err != nil || d.Text("timeout") != "3.50" {
		t.Errorf("%v, %q of the original, want it unchanged", err, d.Text("timeout"))
	}
}

// TestSetRefuses: no definition holds what a record must not.
func TestSetRefuses(t *testing.T) {
	t.Parallel()
	d, err := task.Redefine(map[string]string{"program": "p", "start_after": "20"})
	if err != nil {
		t.Fatal(err)
	}
	for field, text := range map[string]string{
		"program": "", "fail_on": "sometimes", "start_after": "inf", "end_before": "NaN", "timeout": "0.0000001", "max_fails": "1.5",
		"max_timeouts": "-1", "max_losses": "many", "max_faults": "-1", "charge": "nobody", "archive": "never", "retry_delay": "-5m", "retry_backoff": "0.5",
		"retry_max_delay": "0", "retry_jitter": "2", "retry_exit_codes": "1, 2", "fatal_exit_codes": "256", "queue": "a b", "env": "a:b",
		"labels": "a", "resources": "gpu=0", "priority": "1001", "key": strings.Repeat("k", 4097), "key_until": "never", "hold": strings.Repeat("h", 1025),
		"args": "none", "step": "a\nb", "argv": `{"a":1}`, "variables": `{"A":"***"}`,
	} {
		before := d.Values()
		refused(t, d.Set(field, text), field)
		if !slices.Equal(d.Values(), before) {
			t.Errorf("%s=%q was refused and set: %q", field, text, d.Values())
		}
	}
	refused(t, d.Set("end_before", "10"), "start_after")
}

// TestVariables: they have one form, and the names that a shell can set.
func TestVariables(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "{}": "", `{ "b" : "<2>", "A" : "" }`: `{"A":"","b":"\u003c2\u003e"}`, `{"_x9":"ü=\u0001"}`: `{"_x9":"ü=\u0001"}`,
	} {
		if got, err := task.Parse("variables", text); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	long := strings.Repeat("canary", 11000)
	for text, say := range map[string]string{
		`["canary"]`: "an object of texts", `{"A":7,"B":"canary"}`: "an object of texts", "canary": "an object of texts",
		"{\"A\":\"canary\xff\"}": "an object of texts", `{"9":"canary"}`: "letters, digits", `{"":"canary"}`: "letters, digits",
		`{"A-B":"canary"}`: `"A-B"`, `{"TDF_WORKER":"canary"}`: "begin with TDF_", `{"A":"canary\u0000"}`: "without NUL",
		`{"A":"` + long + `"}`: "at most 65536 bytes",
	} {
		_, err := task.Parse("variables", text)
		refused(t, err, "variables")
		if !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.40s: %v", text, err)
		}
		var spec task.Spec
		err = spec.SetJSON("variables", json.RawMessage(text), time.Time{})
		refused(t, err, "variables")
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%.40s as JSON: %v", text, err)
		}
	}
	_, err := task.Define(&task.Spec{Program: "p", Variables: map[string]string{"A": "canary\xff"}})
	refused(t, err, "variables")
	if !strings.Contains(err.Error(), `"A"`) || strings.Contains(err.Error(), "canary") {
		t.Errorf("not UTF-8: %v", err)
	}
	one, other := task.Spec{Variables: map[string]string{"A": "1"}}, task.Spec{Variables: map[string]string{"A": "2"}}
	if slices.Equal(one.Texts(), other.Texts()) {
		t.Error("a submission that is repeated with other variables is taken for the same")
	}
}

// TestVariablesAreMasked: a task that is read shows no value, and a definition with a mask is refused. The record keeps the values.
func TestVariablesAreMasked(t *testing.T) {
	t.Parallel()
	fields := map[string]string{"program": "p", "variables": `{"A":"canary","B":""}`}
	read := task.Decode(7, fields)
	if len(read.Variables) != 2 || read.Variables["A"] != "***" || read.Variables["B"] != "***" {
		t.Errorf("read as %q", read.Variables)
	}
	shown, err := json.Marshal(read)
	if err != nil || !strings.Contains(string(shown), `"variables":{"A":"***","B":"***"}`) || strings.Contains(string(shown), "canary") {
		t.Errorf("shown as %s, %v", shown, err)
	}
	d, err := task.Redefine(fields)
	if err != nil || d.Text("variables") != fields["variables"] {
		t.Errorf("opened again with %q, %v", d.Text("variables"), err)
	}
	fields["variables"], _ = read.Text("variables")
	_, err = task.Redefine(fields)
	refused(t, err, "variables")
	if !strings.Contains(err.Error(), "--env ") {
		t.Errorf("without a remedy: %v", err)
	}
	if odd := task.Decode(7, map[string]string{"variables": "canary"}); odd.Variables != nil {
		t.Errorf("what is no object is read as %q", odd.Variables)
	}
}

// Names of files to return are paths below a directory, in their shortest form.
func TestReturnNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`["./out/", "a//b", "."]`: `["out","a/b","."]`, `[]`: "", `["**/*.[ch]","größe"]`: `["**/*.[ch]","größe"]`,
	} {
		if got, err := task.Parse("return", text); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	var spec task.Spec
	if err := spec.SetJSON("return", []byte(`"out/"`), time.Time{}); err != nil || !slices.Equal(spec.Return, []string{"out"}) {
		t.Errorf("a name alone: %q, %v", spec.Return, err)
	}
	for _, text := range []string{
		`["../x"]`, `["a/../../x"]`, `["/etc/passwd"]`, `[""]`, `["[a"]`, `["a[/]b"]`, `["a\\/b"]`, `["` + disk.Reserved + `x"]`, `["a\u0000"]`, `["a\nb"]`, `x`, `{"a":"b"}`, `["` + strings.Repeat("x", 1025) + `"]`,
		`["a"` + strings.Repeat(`,"a"`, 100) + `]`,
	} {
		_, err := task.Parse("return", text)
		var field *statemachine.FieldError
		if !errors.As(err, &field) || field.Field != "return" {
			t.Errorf("%.40s: error %v", text, err)
		}
	}
}

// A stdin is a file where the task is opened, or what Redis keeps under a hash; nothing else.
func TestStdin(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0A", 32)
	for given, want := range map[string]string{
		"": "", "file:in": "file:in", "file:/a b": "file:/a b", "blob:sha256=" + hash: "blob:sha256=" + strings.ToLower(hash),
	} {
		if got, err := task.Parse("stdin", given); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"in", "-", "file:", "file:a\x00b", "file:" + strings.Repeat("x", 3000), "blob:sha256=0a", "blob:sha256=" + hash + "x", "http://h/in"} {
		if _, err := task.Parse("stdin", given); err == nil || !strings.Contains(err.Error(), "file:PATH") || len(err.Error()) > 1000 {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// A task with limits goes to workers that can keep them; what is no limit says nothing.
func TestOwnLimits(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string]map[string]string{
		"memory_max": {"": "", "0": "", "2GiB": "2147483648", "1MiB": "1048576", "1500000": "1500000", "1024TiB": "1125899906842624"},
		"pids_max":   {"": "", "0": "", "1": "1", "4194304": "4194304"},
		"nice":       {"": "", "0": "", "19": "19"},
	} {
		for given, want := range texts {
			if got, err := task.Parse(name, given); err != nil || got != want {
				t.Errorf("%s %q: %q, %v, want %q", name, given, got, err, want)
			}
		}
	}
	for name, texts := range map[string][]string{
		"memory_max": {"1023KiB", "2Gi", "-1", "1025TiB", "inf"}, "pids_max": {"-1", "4194305", "1.5", "all"}, "nice": {"-5", "20", "+1"},
	} {
		for _, given := range texts {
			if got, err := task.Parse(name, given); err == nil || !strings.Contains(err.Error(), "or 0 for none") {
				t.Errorf("%s %q: %q, %v", name, given, got, err)
			}
		}
	}
	for want, spec := range map[string]task.Spec{
		"":                        {Program: "p", Nice: 5},
		"a=1,memory_max=on":       {Program: "p", MemoryMax: 1 << 20, Labels: []string{"a=1"}},
		"commands=on,pids_max=on": {Source: "command:x", PidsMax: 9},
	} {
		d, err := task.Define(&spec)
		if err != nil || d.Text("labels") != want {
			t.Errorf("%+v: labels %q, %v, want %q", spec, d.Text("labels"), err, want)
		}
	}
	if _, err := task.Define(&task.Spec{Program: "p", MemoryMax: 5}); err == nil {
		t.Error("a limit of 5 bytes")
	}
}

// Parameters become one text, however the object is written; what is no object, or would not come out as it went in, is refused.
func TestParams(t *testing.T) {
	t.Parallel()
	const deep = `{"a":[1.50,1e400,9007199254740993,{"n":null,"é":"<&>"}],"b":"\"\u2028"}`
	for given, want := range map[string]string{
		"": "", "null": "", "{}": "", " {\n} ": "", deep: deep, `{"b":"\u0022\u2028", "a" : [1.50, 1e400,9007199254740993,{"n":null,"\u00e9":"\u003c\u0026>"}]}`: deep,
		`{"a":"\uFFFD"}`: `{"a":"\ufffd"}`,
	} {
		want = strings.ReplaceAll(want, `\ufffd`, "\uFFFD")
		if got, err := task.Parse("params", given); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", given, got, err, want)
		}
	}
	for _, given := range []string{"1", "[]", `"{}"`, "{", `{"a":1} {}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":"` + strings.Repeat("x", 64<<10) + `"}`, strings.Repeat(`{"a":`, 20000)} {
		_, err := task.Parse("params", given)
		if bad, ok := errors.AsType[*statemachine.FieldError](err); !ok || bad.Field != "params" || len(err.Error()) > 1000 {
			t.Errorf("%.100s: %.500v", given, err)
		}
	}
	var spec task.Spec
	for _, raw := range []string{`{"a":1}`, `"{\"a\":1}"`} {
		if err := spec.SetJSON("params", json.RawMessage(raw), time.Time{}); err != nil || string(spec.Params) != `{"a":1}` {
			t.Errorf("%s is %s, %v", raw, spec.Params, err)
		}
	}
	var written task.Spec
	if text, err := json.Marshal(task.Spec{Program: "p"}); err != nil || json.Unmarshal(text, &written) != nil {
		t.Fatal(err)
	}
	if d, err := task.Define(&written); err != nil || d.Text("params") != "" {
		t.Errorf("of a spec that was written as JSON: %q, %v", d.Text("params"), err)
	}
	if err := spec.SetJSON("params", json.RawMessage("[1]"), time.Time{}); err == nil || !strings.Contains(err.Error(), "a JSON object") {
		t.Errorf("%v", err)
	}
}
