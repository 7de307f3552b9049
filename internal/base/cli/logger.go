package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/tdf-go/tdf/internal/base/gather"
)

// Formats of the log.
const (
	FormatAuto    = "auto"    // console on a terminal, JSON otherwise
	FormatConsole = "console" // for people
	FormatJSON    = "json"    // one object a line
)

// NewLogger returns a logger that writes to w with a timestamp. level is trace,
// debug, info, warn, error or disabled; format is one of the constants above.
// In the console format, control characters are escaped: a task's name cannot
// move the cursor or forge a line. Wrong words are a UsageError.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	lowest, err := parseLevel(level)
	if err != nil {
		return nil, err
	}
	out := gather.New(w)
	now, later := io.Writer(out), out.Keeper()
	switch {
	case format == FormatConsole, format == FormatAuto && IsTerminal(w):
		now, later = console(now, IsTerminal(w)), console(later, IsTerminal(w))
	case format == FormatJSON, format == FormatAuto:
	default:
		return nil, Usagef("unknown --log-format %q; write auto, console or json", format)
	}
	to := func(w io.Writer) untimed {
		return untimed{zerolog.NewSlogHandler(zerolog.New(w).Level(lowest).Hook(zerolog.HookFunc(stamp)))}
	}
	return slog.New(handler{to(now), to(byLevel{now, later}), out.Flush}), nil
}

// byLevel writes lines of level info later than others.
type byLevel struct {
	io.Writer

	later io.Writer
}

// WriteLevel chooses.
func (w byLevel) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if level == zerolog.InfoLevel {
		return w.later.Write(line)
	}
	return w.Write(line)
}

func parseLevel(name string) (zerolog.Level, error) {
	for _, level := range []zerolog.Level{
		zerolog.TraceLevel, zerolog.DebugLevel, zerolog.InfoLevel,
		zerolog.WarnLevel, zerolog.ErrorLevel, zerolog.Disabled,
	} {
		if level.String() == name {
			return level, nil
		}
	}
	return zerolog.NoLevel, Usagef("unknown --log-level %q; write trace, debug, info, warn, error or disabled", name)
}

// stampFormat is RFC 3339 with milliseconds; zerolog's own format is global
// and has none.
const stampFormat = "2006-01-02T15:04:05.000Z07:00"

func stamp(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format(stampFormat))
}

// untimed keeps the time of a record from the handler, which would write it in
// zerolog's own format beside the stamp.
type untimed struct{ slog.Handler }

// Handle passes the record on without its time.
func (u untimed) Handle(ctx context.Context, r slog.Record) error {
	r.Time = time.Time{}
	return u.Handler.Handle(ctx, r) //nolint:wrapcheck // one handler in the place of another
}

// WithAttrs keeps the wrapper.
func (u untimed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return untimed{u.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapper.
func (u untimed) WithGroup(name string) slog.Handler { return untimed{u.Handler.WithGroup(name)} }

// handler writes lines at once; see [gather.Log].
type handler struct {
	untimed

	gathering untimed
	flush     func()
}

// WithAttrs adds to both.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.untimed, h.gathering = untimed{h.Handler.WithAttrs(attrs)}, untimed{h.gathering.Handler.WithAttrs(attrs)}
	return h
}

// WithGroup adds to both.
func (h handler) WithGroup(name string) slog.Handler {
	h.untimed, h.gathering = untimed{h.Handler.WithGroup(name)}, untimed{h.gathering.Handler.WithGroup(name)}
	return h
}

// Gather returns the handler that keeps lines.
func (h handler) Gather() (slog.Handler, func()) { return h.gathering, h.flush }

// console returns a writer of lines for people, in local time.
func console(w io.Writer, terminal bool) io.Writer {
	name := func(v any) string { return safeValue(v) + "=" }
	return zerolog.ConsoleWriter{
		Out:     w,
		NoColor: os.Getenv("NO_COLOR") != "" || !terminal,
		FormatTimestamp: func(v any) string {
			t, err := time.Parse(stampFormat, fmt.Sprint(v))
			if err != nil {
				return safeValue(v)
			}
			return t.Local().Format("2006-01-02 15:04:05")
		},
		FormatMessage: func(v any) string {
			if v == nil {
				return ""
			}
			return safeValue(v)
		},
		FormatFieldName: name, FormatErrFieldName: name,
		FormatFieldValue: safeValue, FormatErrFieldValue: safeValue,
	}
}

// safeValue escapes a value; the writer has quoted texts with blanks already.
func safeValue(v any) string {
	if raw, ok := v.([]byte); ok {
		return Safe(string(raw))
	}
	return Safe(fmt.Sprint(v))
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
