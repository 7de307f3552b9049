package file

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const whole = `# a plan with all there is
name: day ${params.day}
on_failure: hold
params:
  day: 007
  regions: [eu, us]
defaults:
  source: rsync:run.sh
  max_fails: 5
steps:
  report:
    program: report
    needs: [{step: count, when: any}, fetch, fetch]
    args: files
    max_fails: inf
  fetch: {program: fetch, argv: ["${params.day}", "a b", '$${HOME} $x'], retry_exit_codes: [75, 111], labels: {disk: ssd}}
  count:
    program: count
    foreach: {param: regions}
    input: |
      ${item} ${ params.day }
    needs: fetch
`

func TestExpand(t *testing.T) {
	t.Parallel()
	p := expanded(t, whole, nil)
	if p.Name != "day 007" || p.OnFailure != "hold" {
		t.Errorf("%q, %q", p.Name, p.OnFailure)
	}
	var got []string
	for i, task := range p.tasks {
		got = append(got, fmt.Sprintf("%d %s:%s %v %s line %d", i, task.name(), task.item, task.needs, task.args, task.line))
		for _, f := range task.fields {
			got = append(got, fmt.Sprintf("  %s=%s line %d", f.name, f.json(), f.line))
		}
	}
	want := []string{
		"0 fetch: []  line 16",
		"  source=\"rsync:run.sh\" line 8", "  max_fails=\"5\" line 9", "  program=\"fetch\" line 16",
		`  argv=["007","a b","${HOME} $x"] line 16`, `  retry_exit_codes="75,111" line 16`, `  labels={"disk":"ssd"} line 16`,
		"1 count[1]:eu [{0 success}]  line 17",
		"  source=\"rsync:run.sh\" line 8", "  max_fails=\"5\" line 9", "  program=\"count\" line 18", `  input="eu 007\n" line 20`,
		"2 count[2]:us [{0 success}]  line 17",
		"  source=\"rsync:run.sh\" line 8", "  max_fails=\"5\" line 9", "  program=\"count\" line 18", `  input="us 007\n" line 20`,
		"3 report: [{1 any} {2 any} {0 success} {0 success}] files line 11",
		"  source=\"rsync:run.sh\" line 8", "  program=\"report\" line 12", "  max_fails=\"inf\" line 15",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExpandGiven(t *testing.T) {
	t.Parallel()
	p := expanded(t, whole, map[string]string{"day": "${item}", "regions": "a,b,c"})
	if p.Name != "day ${item}" || len(p.tasks) != 5 || p.tasks[3].item != "c" || p.tasks[3].fields[3].value.text != "c ${item}\n" {
		t.Errorf("a value is filled in again, or not at all: %+v", p)
	}
	required := "params: {x: , l: }\nsteps: {a: {program: '${params.x}', foreach: {param: l}}, b: {program: b, foreach: ['${params.x}', z]}}"
	p = expanded(t, required, map[string]string{"x": "v", "l": "1,2"})
	if len(p.tasks) != 4 || p.tasks[1].item != "2" || p.tasks[2].item != "v" || p.tasks[1].fields[0].value.text != "v" {
		t.Errorf("%+v", p)
	}
}

// TestExpandChain is about a file whose steps come in the wrong order, and about its size.
func TestExpandChain(t *testing.T) {
	t.Parallel()
	const n = 3_000
	var yaml strings.Builder
	yaml.WriteString("defaults: {program: p}\nsteps:\n")
	for i := n; i > 0; i-- {
		fmt.Fprintf(&yaml, "  s%d: {needs: s%d}\n", i, i-1)
	}
	yaml.WriteString("  s0: {}\n")
	p := expanded(t, yaml.String(), nil)
	if len(p.tasks) != n+1 || p.tasks[0].step != "s0" || p.tasks[n].needs[0].Task != n-1 {
		t.Errorf("%d tasks, %+v", len(p.tasks), p.tasks[n])
	}
}

func TestExpandIsBounded(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("x,", 1000) + "x"
	wide := "params: {l: []}\nsteps:\n  a: {program: p, foreach: {param: l}}\n  b: {program: p, needs: a}"
	if text := refusal(t, wide, map[string]string{"l": many}); !strings.Contains(text, "p.yaml:4: steps.b.needs: these are 1001 tasks") {
		t.Error(text)
	}
	if text := refusal(t, wide, map[string]string{"l": strings.Repeat("x,", maxTasks) + "x"}); !strings.Contains(text, "more than 100000 tasks") {
		t.Error(text)
	}
	dense := "params: {l: [], m: []}\nsteps:\n  a: {program: p, foreach: {param: l}}\n  b: {program: p, needs: a, foreach: {param: m}}"
	if text := refusal(t, dense, map[string]string{"l": many[2:], "m": many}); !strings.Contains(text, "1000000 needs") {
		t.Error(text)
	}
	long := "params: {l: []}\nsteps:\n  a: {program: p, input: " + strings.Repeat("x", 1<<20) + ", foreach: {param: l}}"
	if text := refusal(t, long, map[string]string{"l": many}); !strings.Contains(text, "p.yaml:3: steps.a: with this step the tasks of the plan have more than") {
		t.Error(text)
	}
}

const forLines = `params: {tag: "${item}"}
defaults: {program: p}
steps:
  report: {needs: [count, {step: list, when: any}]}
  count:
    foreach: {lines: list, most: 20}
    argv: ["-t", "${params.tag}", "${item}/${item}"]
    needs: list
  list: {}
  names: {foreach: [a, b], input: "${item}", needs: report}
  fast: {foreach: {lines: list}, input: "x ${item}"}
  alone: {needs: list}
`

// TestExpandLater is about steps that are known once the plan runs.
func TestExpandLater(t *testing.T) {
	t.Parallel()
	p := expanded(t, forLines, nil)
	var got []string
	for _, task := range p.tasks {
		got = append(got, fmt.Sprintf("%s %v", task.name(), task.needs))
	}
	for _, l := range p.later {
		line := fmt.Sprintf("%s of %q at most %d", l.tasks[0].step, l.lines, l.most)
		for _, n := range l.needs {
			line += fmt.Sprintf(" <- %s %s", n.Step, n.When)
		}
		for _, task := range l.tasks {
			line += fmt.Sprintf("; %s %v", task.name(), task.needs)
			for _, f := range task.fields {
				if f.name != "program" {
					line += fmt.Sprintf(" %q%q", f.value.text, f.value.list)
				}
			}
		}
		got = append(got, line)
	}
	want := []string{
		"list []", "alone [{0 success}]",
		`count of "list" at most 20 <- list success; count [] ""["-t" "${item}" "\x00/\x00"]`,
		`report of "" at most 0 <- count success <- list any; report []`,
		`names of "" at most 0 <- report success; names[1] [] "a"[]; names[2] [] "b"[]`,
		`fast of "list" at most 10000; fast [] "x \x00"[]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text, err := p.Draw("text"); err != nil ||
		text != "1 list (p)\n  2 count (p) for each line  <- 1, 1 lines\n    3 report (p)  <- 2, 1 any\n      4 names (p) x2  <- 3\n  5 fast (p) for each line  <- 1 lines\n  6 alone (p)  <- 1\n" {
		t.Errorf("error %v\n%s", err, text)
	}
}
