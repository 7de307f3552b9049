package redistest

import (
	"fmt"
	"strings"
)

// info asks the server for one section of INFO, or of what else answers in lines
// of name:value. It is empty while the server does not answer.
func (s *Server) info(command ...string) map[string]string {
	found := map[string]string{}
	answer, err := s.call(command...)
	if err != nil {
		return found
	}
	for line := range strings.Lines(fmt.Sprint(answer)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found[name] = value
		}
	}
	return found
}

// texts are the elements of a flat answer as text, nil while there is none.
func (s *Server) texts(command ...string) []string {
	answer, err := s.call(command...)
	if err != nil {
		return nil
	}
	list, _ := answer.([]any)
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = fmt.Sprint(e)
	}
	return texts
}

// has reports whether the answer has all of these lines, each name:value.
func has(found map[string]string, lines ...string) bool {
	for _, line := range lines {
		if name, value, _ := strings.Cut(line, ":"); found[name] != value {
			return false
		}
	}
	return true
}
