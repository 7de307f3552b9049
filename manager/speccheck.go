package manager

import (
	"strings"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// checkTexts refuses what no worker could run.
func (s *Spec) checkTexts() error {
	if config.ValidName("program", s.Program) != nil {
		return fieldError("program", s.Program,
			"a name for a directory: 1 to 128 bytes of visible text without a slash, not a dot or two, no blank at its ends")
	}
	switch s.FailOn {
	case "", FailOnAny, FailOnStderr, FailOnExit:
	default:
		return fieldError("fail_on", s.FailOn, "any, stderr or exit")
	}
	if s.Timeout < 0 {
		return fieldError("timeout", s.Timeout.String(), "a duration above 0")
	}
	for field, text := range map[string]string{"source": clean.Source(s.Source), "input": s.Input} {
		if strings.ContainsRune(text, 0) {
			return fieldError(field, text, "a text without NUL characters")
		}
	}
	for _, word := range s.Argv {
		if strings.ContainsRune(word, 0) || !utf8.ValidString(word) {
			return fieldError("argv", word, "UTF-8 text without NUL characters")
		}
	}
	return s.checkNew()
}

// maxKey is the longest key, in bytes.
const maxKey = 256

// checkNew is about what the original does not know.
func (s *Spec) checkNew() error {
	switch {
	case s.Queue != "" && route.CheckQueueName(s.Queue) != nil:
		return route.CheckQueueName(s.Queue)
	case s.RetryDelay < 0 && s.RetryDelay != NoDelay:
		return fieldError("retry_delay", s.RetryDelay.String(), "a duration that is not negative, or NoDelay")
	case s.RetryMaxDelay < 0:
		return fieldError("retry_max_delay", s.RetryMaxDelay.String(), "a duration above 0")
	case len(s.Key) > maxKey:
		return fieldError("key", s.Key, "a line of printable text of at most 256 bytes")
	}
	if err := checkLine("key", s.Key); err != nil {
		return err
	}
	if err := checkLine("step", s.Step); err != nil {
		return err
	}
	return checkLine("hold", s.Hold)
}

func fieldError(field, value, want string) error {
	return &statemachine.FieldError{Field: field, Value: value, Want: want}
}
