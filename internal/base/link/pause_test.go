package link

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/rs/zerolog"
)

// Whoever is told, the attempts are paced.
func TestEveryLinkPauses(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*Link{
		"zerolog": New(zerolog.Nop()), "slog": NewSlog(slog.New(slog.DiscardHandler)),
	} {
		for range 20 {
			if d := l.Failed(errors.New("gone")); d < shortestBackoff/2 || d > longestBackoff {
				t.Errorf("%s: a pause of %v", name, d)
			}
		}
	}
}
