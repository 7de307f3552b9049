package link

import (
	"log/slog"
	"time"

	"github.com/rs/zerolog"
)

// teller is the logger of a program, of whichever kind.
type teller interface {
	lost(err error, text string)
	still(err error, text string)
	back(away time.Duration, text string)
}

// NewSlog is New for the logger that package manager takes from its caller.
func NewSlog(log *slog.Logger) *Link { return newLink(slogTeller{log}) }

type zeroTeller struct{ log zerolog.Logger }

func (z zeroTeller) lost(err error, text string)  { z.log.Error().Err(err).Msg(text) }
func (z zeroTeller) still(err error, text string) { z.log.Debug().Err(err).Msg(text) }
func (z zeroTeller) back(away time.Duration, text string) {
	z.log.Info().Dur("away", away).Msg(text)
}

type slogTeller struct{ log *slog.Logger }

func (s slogTeller) lost(err error, text string)  { s.log.Error(text, "error", err) }
func (s slogTeller) still(err error, text string) { s.log.Debug(text, "error", err) }
func (s slogTeller) back(away time.Duration, text string) {
	s.log.Info(text, "away", away)
}
