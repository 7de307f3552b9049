package scenario

import (
	"bytes"
	"fmt"
	"strings"
)

// Run plays a story on w and returns it with the answers that w gives. The
// story is as expected if the result equals the script. The error is that of a
// broken promise, of an unknown command, or of the world itself.
func Run(w World, script []byte) ([]byte, error) {
	p, err := newPlay(w)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	answered := false // the lines that follow a command are its old answer
	for n, line := range strings.Split(strings.TrimSuffix(string(script), "\n"), "\n") {
		command, isCommand := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			answer, err := p.command(strings.Fields(command))
			if err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", n+1, command, err)
			}
			fmt.Fprintln(&out, line)
			out.WriteString(answer)
			answered = true
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			answered = false
		case !answered:
			return nil, fmt.Errorf("line %d: %q answers no command", n+1, line)
		}
	}
	return out.Bytes(), nil
}
