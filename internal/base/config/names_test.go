package config

import (
	"errors"
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worker-A", "worker-34", "worker-156.3.1.38", "w", "ä", "a b", strings.Repeat("x", 128)} {
		if err := ValidName("worker", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "a/b", "/", `a\b`, "a\nb", "a\x00", "\x1b[31m", "a\x7f", "\u202ea", "a\u200bb", "\xff", " a", "a ", strings.Repeat("x", 129),
	} {
		var e *Error
		err := ValidName("worker", name)
		if !errors.As(err, &e) || e.Remedy == "" || !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if strings.ContainsAny(err.Error(), "\x00\n\x1b") {
			t.Errorf("%q: control characters in %q", name, err)
		}
	}
}

func TestValidNamespace(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"t", "MyProject", "{sum}", "a-b_c.d", "ä", strings.Repeat("x", 128)} {
		if err := ValidNamespace(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "a b", "a:b", "a/b", `a\b`, "a*", "a?", "[a]", "{}", "{a", "a}", "a{b}", "{a}b", "{{a}}", "{a}{b}", "a\tb", "\x1b", strings.Repeat("x", 129),
	} {
		var e *Error
		if err := ValidNamespace(name); !errors.As(err, &e) || e.Remedy == "" || !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
