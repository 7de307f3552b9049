package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/task"
)

// The values of --pin.
const (
	pinName    = "pin"
	pinAuto    = "auto"
	pinRequire = "require"
	pinOff     = "off"
)

// withPin adds --pin to a verb that opens tasks.
func withPin(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String(pinName, pinAuto, "have all tasks run the version of the program that its source holds now, which Redis\n"+
		"keeps if it is not too large: auto (where the source can be read from here), require or off")
	return cmd
}

// pin is the function that pins sources, nil for none.
func (s *session) pin() (func(ctx context.Context, source string) (string, error), error) {
	flag := s.cmd.Flags().Lookup(pinName)
	switch {
	case flag == nil || flag.Value.String() == pinOff:
		return nil, nil //nolint:nilnil // none is a good answer
	case flag.Value.String() == pinAuto:
		return s.pinIfPossible, nil
	case flag.Value.String() == pinRequire:
		return s.pinned, nil
	default:
		return nil, cli.Usagef("--pin %q is unknown; write auto, require or off", flag.Value)
	}
}

// pinIfPossible leaves a source as it is that cannot be read from here, and says so.
func (s *session) pinIfPossible(ctx context.Context, source string) (string, error) {
	if strings.HasPrefix(source, task.CommandPrefix) {
		return source, nil
	}
	pinned, err := s.pinned(ctx, source)
	if err == nil || ctx.Err() != nil {
		return pinned, err
	}
	if !errors.Is(err, errRelative) && !errors.Is(err, task.ErrInvalidSource) && !errors.Is(err, task.ErrInvalidFormat) {
		s.warn("warning: source %s is not pinned, so each worker runs what it finds there: %s",
			cli.Safe(clean.Source(source)), cli.Safe(clean.URLs(err.Error())))
	}
	return source, nil
}

// errRelative means that only a worker knows which file is meant.
var errRelative = errors.New("a relative path means another file at each worker; write an absolute one")

// pinned downloads what the source holds, and keeps it in Redis, as far as there is room, for workers who do not find it there.
func (s *session) pinned(ctx context.Context, source string) (pinned string, err error) {
	src, err := task.ParseSource(source)
	if err != nil || src.SHA256 != "" {
		return source, err
	}
	if src.Kind == task.SourceCommand {
		return "", errors.New("a command has no versions: each worker runs what it has; write --pin auto or off")
	}
	if src.Kind == task.SourceLocal && !filepath.IsAbs(src.Path) {
		return "", errRelative
	}
	o := fetch.DefaultOptions()
	if o.Dir, err = os.MkdirTemp("", "tdf-pin-"); err != nil {
		return "", fmt.Errorf("directory for what is downloaded: %w", err)
	}
	defer func() { err = errors.Join(err, remove.Tree(o.Dir)) }()
	w := &s.cfg.Worker
	o.NetrcFile, o.CAFile, o.RsyncPath, o.SSHExtra = w.NetrcFile, w.CAFile, w.RsyncPath, strings.Fields(w.SSHOptions)
	o.MaxBytes, o.Timeout, o.MaxRedirects = w.FetchMaxBytes, w.FetchTimeout, w.FetchMaxRedirects
	f, err := fetch.New(o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Pin(ctx, source, func(sha256 string, size int64, file io.ReaderAt) {
		err := s.store.PutBlob(ctx, sha256, size, file)
		if err != nil && !errors.Is(err, task.ErrNoRoom) && ctx.Err() == nil {
			s.warn("warning: Redis does not keep what source %s holds, so workers have to find it there: %s",
				cli.Safe(clean.Source(source)), cli.Safe(err.Error()))
		}
	})
}
