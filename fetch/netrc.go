package fetch

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// netrcLookup finds a host's credentials in a netrc file. The default entry
// does not count: tasks choose the host, and would get credentials meant for
// no host in particular. Errors never show the file's content.
func netrcLookup(file, host string) (login, password string, ok bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "", false, fmt.Errorf("read netrc file (%s): %w", setting("NetrcFile"), err)
	}
	words := netrcWords(string(text))
	here := false
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "default":
			here = false
			continue
		case "machine", "login", "password", "account":
		default:
			return "", "", false, fmt.Errorf("netrc file '%s' is malformed at word %d: expected machine, login or password", file, i+1)
		}
		if i+1 == len(words) {
			return "", "", false, fmt.Errorf("netrc file '%s' ends within an entry", file)
		}
		key, value := words[i], words[i+1]
		i++
		switch {
		case key == "machine" && ok:
			return login, password, true, nil
		case key == "machine":
			here = strings.EqualFold(value, host)
			ok = here
		case here && key == "login":
			login = value
		case here && key == "password":
			password = value
		}
	}
	return login, password, ok, nil
}

// netrcWords splits the file into words, without comment lines and macros; a
// macro ends at an empty line.
func netrcWords(text string) []string {
	var words []string
	inMacro := false
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
			inMacro = false
		case inMacro || strings.HasPrefix(fields[0], "#"):
		case fields[0] == "macdef":
			inMacro = true
		default:
			words = append(words, fields...)
		}
	}
	return words
}
