package shim

import (
	"strings"
	"syscall"
	"testing"
)

func TestRunReportsHowTheProgramEnded(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body, output string
		exit         int
		signal       syscall.Signal
	}{
		"output":      {body: `printf 'a\nb'; printf c >&2`, output: "a\nbc"},
		"exit code":   {body: `exit 7`, exit: 7},
		"exit 255":    {body: `exit 255`, exit: 255},
		"signal":      {body: `kill -SEGV $$`, exit: -1, signal: syscall.SIGSEGV},
		"arguments":   {body: `printf '%s|' "$0" "$@"`, output: "./run.sh|-x||b c|\xff|"},
		"stdin":       {body: `cat; echo end`, output: "end\n"},
		"no terminal": {body: `(: < /dev/tty) 2>/dev/null || echo none`, output: "none\n"},
		"directory":   {body: `[ "$(pwd -P)" = "$PWD" ] && [ -x run.sh ] && echo here`, output: "here\n"},
	}
	eachLayer(t, func(t *testing.T, s *Slot) {
		for name, c := range cases {
			p := Program{Dir: script(t, c.body)}
			if strings.Contains(c.body, "$@") {
				p.Args = []string{"-x", "", "b c", "\xff"}
			}
			r, text := run(t, s, p)
			if text != c.output || r.ExitCode != c.exit || r.Signal != c.signal || !r.Started || r.Cause != Ended {
				t.Errorf("%s: got %+v and %q, want %q", name, r, text, c.output)
			}
		}
	})
}
