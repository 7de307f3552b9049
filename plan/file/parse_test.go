package file

import (
	"strings"
	"testing"
)

// TestRefuses gives for each file all that is wrong with it, one line each.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for yaml, want := range refusals {
		if got := refusal(t, yaml, map[string]string{}); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", yaml, got, want)
		}
	}
}

const stepA = "steps: {a: {program: p"

var refusals = map[string]string{
	"":                             "p.yaml:1: this is not a plan: write steps, each with a program",
	"just text":                    "p.yaml:1: this is not a plan: write steps, each with a program",
	"name: x":                      "p.yaml:1: steps: is missing; write steps, each with a program",
	"steps:":                       "p.yaml:1: steps: is nothing; write the name of each step with its fields",
	stepA + "}}\nstps: 1":          `p.yaml:2: field "stps" is unknown; did you mean "steps"?`,
	stepA + "}}\n---\nsteps: {}":   "p.yaml:3: a second document begins here; write one plan in a file",
	stepA + "}}\non_failure: holt": `p.yaml:2: on_failure: "holt" is unknown; did you mean "hold"?`,
	stepA + "}}\nname: [x]":        "p.yaml:2: name: is a list; write one text",
	"steps:\n  a: {program: p}\n  b:\n    source: s": `p.yaml:3: steps.b: field "program" is missing; write which program the step runs, or source: command:NAME`,
	"steps:\n  a:\n    program: p\n    max_fail: 3":  `p.yaml:4: steps.a: field "max_fail" is unknown; did you mean "max_fails"?`,
	"steps:\n  a:\n    program: p\n    need: b":      `p.yaml:4: steps.a: field "need" is unknown; did you mean "needs"?`,
	"steps:\n  a:\n    program:\n":                   "p.yaml:3: steps.a.program: has no value; write one, or leave the line out",
	"steps:\n  a: p":                                 "p.yaml:2: steps.a: is a text; write its fields, program first",
	"steps:\n  a b: {program: p}":                    `p.yaml:2: steps.a b: "a b" cannot be a name; write up to 64 letters, digits, _ and -`,
	stepA + ", argv: x y}}":                          `p.yaml:1: steps.a.argv: "x y" is not a list; write [word, word], or input: for words between blanks`,
	stepA + ",\n argv: [x], input: x}}":              "p.yaml:2: steps.a: fields input and argv exclude each other; write one of them",
	stepA + ",\n argv: [x, [y]]}}":                   "p.yaml:2: steps.a.argv: has a list in its list; write texts or numbers only",
	stepA + ",\n labels: {a: [y]}}}":                 "p.yaml:2: steps.a.labels.a: is a list; write one text",
	stepA + ",\n hold: true}}":                       "p.yaml:2: steps.a: field hold is not for tasks of a plan; hold the plan instead, with plan hold ID",
	"defaults:\n  key: k\n" + stepA + "}}":           "p.yaml:2: defaults: field key is not for tasks of a plan; name the plan instead, with plan submit --key KEY",
	"defaults:\n  argv: [k]\n" + stepA + "}}":        `p.yaml:2: defaults: field "argv" belongs to a step; write it there`,
	"defaults:\n  queu: k\n" + stepA + "}}":          `p.yaml:2: defaults: field "queu" is unknown; did you mean "queue"?`,
	"defaults: x\n" + stepA + "}}":                   "p.yaml:1: defaults: is a text; write fields of tasks with their values",
	"params: [x]\n" + stepA + "}}": "p.yaml:1: params: is a list; write names with their values, " +
		"and nothing behind a name whose value must be given",
	"params: {x: {y: z}}\n" + stepA + "}}":      "p.yaml:1: params.x: is a mapping; write a text, a number or a list",
	stepA + ", params: {n: 1}}}":                `p.yaml:1: steps.a.params: is a mapping; write the JSON object as a text, such as '{"depth": 3}'`,
	"defaults:\n  params: [n]\n" + stepA + "}}": `p.yaml:2: defaults.params: is a list; write the JSON object as a text, such as '{"depth": 3}'`,
	"params:\n  x:\n" + stepA + "}}":            "p.yaml:2: params.x: has no default and was not given; give it as a parameter, x=VALUE",
	stepA + ", args: word}}":                    `p.yaml:1: steps.a.args: "word" is unknown; did you mean "words"?`,
	stepA + ", needs: {x: y}}}":                 "p.yaml:1: steps.a.needs: is a mapping; write a list of steps, such as [fetch, {step: check, when: any}]",
	stepA + ",\n needs: [{when: any}]}}":        "p.yaml:2: steps.a.needs: names no step; write its name, or {step: name, when: any}",
	stepA + ", needs: [{step: a, whem: any}]}}": `p.yaml:1: steps.a.needs: field "whem" is unknown; did you mean "when"?`,
	stepA + ", needs: [{step: a, when: ok}]}}":  `p.yaml:1: steps.a.needs.when: "ok" is unknown; write one of any, failure, success`,
	"steps:\n  fetch: {program: p}\n  load:\n    program: p\n    needs:\n    - fetch\n    - fetsh": `p.yaml:7: steps.load.needs: there is no step "fetsh"; ` +
		`did you mean "fetch"?`,
	"steps:\n  a: {program: p}\n  b: {program: p, needs: [a, {step: a, when: any}]}": "p.yaml:3: steps.b.needs: " +
		`step "a" is needed with when: success and with when: any; write the same each time`,
	stepA + ", needs: [a]}}": "p.yaml:1: steps.a.needs: the steps need one another in a circle: a -> a; take one of these needs out",
	"steps:\n  z: {program: p, needs: [a]}\n  a:\n    program: p\n    needs: [b]\n  b: {program: p, needs: c}\n  c: {program: p, needs: a}": "p.yaml:5: " +
		"steps.a.needs: the steps need one another in a circle: a -> b -> c -> a; take one of these needs out",
	stepA + ", foreach: []}}":                               "p.yaml:1: steps.a.foreach: is an empty list; write an item at least",
	stepA + ", foreach: {param: x}}}":                       `p.yaml:1: steps.a.foreach: there is no parameter "x"; the file declares none`,
	"params: {xs: 1}\n" + stepA + ", foreach: {param: x}}}": `p.yaml:2: steps.a.foreach: there is no parameter "x"; did you mean "xs"?`,
	"params: {x: 1}\n" + stepA + ", foreach: {param: x}}}":  `p.yaml:2: steps.a.foreach: parameter "x" is not a list; write [1] as its default`,
	"params: {x: []}\n" + stepA + ", foreach: {param: x}}}": `p.yaml:2: steps.a.foreach: parameter "x" is an empty list; give an item at least`,
	stepA + ", foreach: b}}": "p.yaml:1: steps.a.foreach: is a text; write [item, item], {param: name} for a parameter that is a list, " +
		"or {lines: name} for the lines of the result of a step",
	stepA + ", foreach: {step: b}}}":             `p.yaml:1: steps.a.foreach: "step" is unknown; write {lines: name} for the lines of the result of a step`,
	stepA + ",\n foreach: {lines: b}}}":          `p.yaml:2: steps.a.foreach: there is no step "b"; did you mean "a"?`,
	stepA + ",\n foreach: {lines: }}}":           "p.yaml:2: steps.a.foreach.lines: is nothing; write one text",
	stepA + ",\n foreach: {lines: ''}}}":         "p.yaml:2: steps.a.foreach.lines: names no step; write the name of one",
	stepA + ",\n foreach: {lines: a, mst: 1}}}":  `p.yaml:2: steps.a.foreach: field "mst" is unknown; did you mean "most"?`,
	stepA + ",\n foreach: {lines: a, most: 0}}}": `p.yaml:2: steps.a.foreach.most: "0" is not a number of lines; write one from 1 to 10000`,
	stepA + "},\n b: {program: p, foreach: {lines: c}},\n c: {program: p, foreach: [1]}}": `p.yaml:2: steps.b.foreach: step "c" has a foreach of its own, ` +
		"so it has many results and not one; put a step between that needs it and prints all lines",
	stepA + "},\n b: {program: p, foreach: {lines: c}},\n c: {program: p, needs: b}}": "p.yaml:2: steps.b.needs: the steps need one another in a circle: b -> c -> b; take one of these needs out",
	stepA + "},\n b: {program: p, foreach: {lines: a},\n  queue: '${item}'}}": "p.yaml:3: steps.b.queue: ${item} is a line that is known only when the plan runs: " +
		"it can stand in input and argv",
	stepA + "},\n b: {program: p, foreach: {lines: a},\n  input: \"x\\0 ${item}\"}}": "p.yaml:3: steps.b.input: has a NUL character; leave it out",
	stepA + ", input: '${item}'}}":                      "p.yaml:1: steps.a.input: ${item} is known in a step with foreach only; add foreach, or write ${params.NAME}",
	stepA + ",\n input: '${day}'}}":                     "p.yaml:2: steps.a.input: ${day} is unknown; write ${item}, ${params.NAME}, or $${ for a ${ that stays",
	stepA + ", foreach: [1, 2], input: '${params.x}'}}": `p.yaml:1: steps.a.input: ${params.x}: there is no parameter "x"; the file declares none`,
	stepA + ", input: 'a ${item'}}":                     "p.yaml:1: steps.a.input: ${item has no }; add it, or write $${ for a ${ that stays",
	"params: {x: [1]}\n" + stepA + ", input: '${params.x}'}}": "p.yaml:2: steps.a.input: ${params.x} is a list; " +
		"write foreach: {param: x} and ${item}",
	"name: ${item}\n" + stepA + "}}": "p.yaml:1: name: ${item} is known in a step with foreach only; add foreach, or write ${params.NAME}",
	"x: &a 1\n" + stepA + "}}": "p.yaml:1: anchors and aliases are not read; put what steps share under defaults or params\n" +
		`p.yaml:1: field "x" is unknown; write one of defaults, name, on_failure, params, steps`,
	stepA + ", input: !!str 1}}": "p.yaml:1: tags such as !!str are not read; leave it out\n" +
		"p.yaml:1: steps.a.input: has no value; write one, or leave the line out",
	"steps:\n  a: {program: p}\n  a: {program: q}": `p.yaml:3: not YAML: mapping key "a" already defined at [2:3]`,
}

// TestRefusesBadYAML is about what the library says, but for its words.
func TestRefusesBadYAML(t *testing.T) {
	t.Parallel()
	for yaml, line := range map[string]string{
		"steps:\n  a: {program: p\n":       "p.yaml:2: not YAML: ",
		"steps:\n\ta: 1":                   "p.yaml:2: not YAML: ",
		"name: x\nsteps:\n  a: [1\n  b: 2": "p.yaml:4: not YAML: ",
	} {
		if got := refusal(t, yaml, nil); !strings.HasPrefix(got, line) {
			t.Errorf("%q: %s", yaml, got)
		}
	}
}

// The parser needs the square of the depth in memory.
func TestRefusesDepth(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[", "{a: ", "- ", "a: {", "[\n", "- [{a: "} {
		if _, err := parse("p.yaml", []byte(strings.Repeat(text, 100_000))); err == nil || !strings.Contains(err.Error(), "more than 100 lists and mappings") {
			t.Errorf("%q: %.200v", text, err)
		}
	}
}

func TestGivenIsUnknown(t *testing.T) {
	t.Parallel()
	got := refusal(t, "params: {day: 1}\n"+stepA+"}}", map[string]string{"days": "2"})
	if got != `p.yaml: unknown parameter days=2; did you mean "day"?` {
		t.Error(got)
	}
}

// TestManyErrors are told in the order of the lines, and not all.
func TestManyErrors(t *testing.T) {
	t.Parallel()
	yaml := "steps:\n" + strings.Repeat("  a:\n    x: 1\n", 1)
	for i := range 30 {
		yaml += "  s" + string(rune('A'+i%26)) + strings.Repeat("x", i) + ": {y: 1}\n"
	}
	lines := strings.Split(refusal(t, yaml, nil), "\n")
	if len(lines) != mostErrors+1 || lines[mostErrors] != "p.yaml: and 42 more" || !strings.HasPrefix(lines[0], "p.yaml:2: ") {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

// FuzzParse looks whether any file is either read or refused with lines.
func FuzzParse(f *testing.F) {
	f.Add(whole)
	for yaml := range refusals {
		f.Add(yaml)
	}
	f.Fuzz(func(t *testing.T, yaml string) {
		if text := refusal(t, yaml, nil); text != "" && !strings.HasPrefix(text, "p.yaml") {
			t.Errorf("%q", text)
		}
	})
}
