package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/task"
)

const pinName = "pin"

// withPin adds --pin to a verb that opens tasks.
func withPin(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String(pinName, "", "have all tasks run the version of the program that its source holds now, which Redis "+
		"keeps if it is not too large: auto (where the source can be read from here), require or off "+
		"(default [manager] pin)")
	return cmd
}

// pin is the function that checks sources, takes along what lies here, and pins the rest as far as --pin says.
func (s *session) pin() (func(ctx context.Context, source string) (string, error), error) {
	flag := s.cmd.Flags().Lookup(pinName)
	if flag == nil {
		return nil, nil //nolint:nilnil // none is a good answer
	}
	how := s.cfg.Pin
	if flag.Changed {
		how = flag.Value.String()
	}
	switch how {
	case config.PinOff:
		return remembering(s.checked), nil
	case config.PinAuto:
		return remembering(s.pinIfPossible), nil
	case config.PinRequire:
		return remembering(func(ctx context.Context, source string) (string, error) {
			source, err := s.checked(ctx, here(source))
			if err != nil {
				return "", err
			}
			return s.downloaded(ctx, source)
		}), nil
	default:
		return nil, cli.Usagef("--pin %q is unknown; write auto, require or off", how)
	}
}

// remembering makes a function that pins each source once.
func remembering(pin func(context.Context, string) (string, error)) func(context.Context, string) (string, error) {
	pins := map[string]string{}
	return func(ctx context.Context, source string) (string, error) {
		if pinned, known := pins[source]; known {
			return pinned, nil
		}
		pinned, err := pin(ctx, source)
		if err == nil {
			pins[source] = pinned
		}
		return pinned, err
	}
}

// pinIfPossible leaves a source as it is that cannot be read from here, and says so, unless its host answers that it has no such
// file. A path may be there at a worker.
func (s *session) pinIfPossible(ctx context.Context, source string) (string, error) {
	source, err := s.checked(ctx, here(source))
	if err != nil || strings.HasPrefix(source, task.CommandPrefix) {
		return source, err // a command has no versions
	}
	pinned, err := s.downloaded(ctx, source)
	switch {
	case err == nil || ctx.Err() != nil:
		return pinned, err
	case errors.Is(err, fetch.ErrMissing):
		return "", fmt.Errorf("%w; correct the address, or write --pin off if only workers can see the file", err)
	case errors.Is(err, errRelative):
		s.warn("warning: source %s does not lie here, so each worker looks for it in its own working directory; write a path that all of them "+
			"have, or, for what lies here, file:PATH or --upload", cli.Safe(source))
	default:
		s.warn("warning: source %s cannot be read from here, so all tasks run what the first worker finds there: %s",
			cli.Safe(clean.Source(source)), cli.Safe(clean.URLs(err.Error())))
		return strings.TrimSuffix(source, task.PinFirst) + task.PinFirst, nil
	}
	return source, nil
}

// localPath is the path of a source on a file system, empty for another source.
func localPath(source string) string {
	if name, ok := strings.CutPrefix(source, task.FilePrefix); ok {
		return strings.TrimPrefix(name, "//")
	}
	name, ok := strings.CutPrefix(source, "rsync:")
	if first, _, _ := strings.Cut(name, "/"); !ok || strings.Contains(first, ":") || strings.HasPrefix(name, "//") {
		return "" // of another host
	}
	return name
}

// here makes a relative path absolute if there is something of that name here.
func here(source string) string {
	name := localPath(source)
	if name == "" || filepath.IsAbs(name) || strings.HasPrefix(source, task.FilePrefix) {
		return source
	}
	full, err := filepath.Abs(name)
	if err == nil {
		_, err = os.Stat(full)
	}
	if err != nil {
		return source
	}
	return "rsync:" + full
}

// usable refuses a source that no worker could use.
func usable(source string) error {
	if source == "" {
		return nil // see warnNoSource
	}
	if name := localPath(source); name != "" {
		info, err := os.Stat(name)
		switch mine := strings.HasPrefix(source, task.FilePrefix); {
		case err == nil && info.IsDir():
			return fetch.Uploadable(name, filepath.Base(name))
		case err != nil && mine:
			return fmt.Errorf("%w: '%s': nothing of that name lies here", task.ErrInvalidSource, cli.Safe(source))
		case mine:
			source = "rsync:/" + filepath.Base(name) // for the ending
		}
	}
	_, err := task.ParseSource(source)
	switch {
	case errors.Is(err, task.ErrInvalidFormat):
		err = fmt.Errorf("%w, or a directory that lies here", err)
	case err != nil && !strings.Contains(source, ":"):
		err = fmt.Errorf("%w; for a file or directory here, write file:PATH or use --upload", err)
	}
	return err
}

// badSource is usable for what a person wrote.
func badSource(source string) error { return cli.WithCode(cli.ExitUsage, usable(source)) }

// checked refuses a source that no worker could use, and takes a directory along that lies here.
func (s *session) checked(ctx context.Context, source string) (string, error) {
	if err := usable(source); err != nil {
		return "", err
	}
	name := localPath(source)
	if info, err := os.Stat(name); name != "" && err == nil && info.IsDir() {
		return s.takenAlong(ctx, name)
	}
	if strings.HasPrefix(source, task.FilePrefix) {
		full, err := filepath.Abs(name)
		if err != nil {
			return "", fmt.Errorf("the path from the root: %w", err)
		}
		source = "rsync:" + full
	}
	return source, nil
}

// takenAlong puts a directory into Redis, and returns the source that means it.
func (s *session) takenAlong(ctx context.Context, name string) (source string, err error) {
	p, err := pack(ctx, name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return task.BlobSource(p.SHA256()), s.store.PutBlob(ctx, p.SHA256(), p.Size(), p)
}

// errRelative means that only a worker knows which file is meant.
var errRelative = errors.New("a relative path means another file at each worker; write an absolute one")

// downloaded downloads what the source holds, and keeps it in Redis, as far as there is room, for workers who do not find it there.
func (s *session) downloaded(ctx context.Context, source string) (pinned string, err error) {
	src, err := task.ParseSource(source)
	if err != nil {
		return source, err
	}
	if src.Kind == task.SourceBlob {
		if _, there, err := s.store.BlobSize(ctx, src.SHA256); err == nil && !there {
			s.warn("warning: Redis does not keep %s, so tasks run only where a worker has it; take it along with --upload", source)
		}
	}
	if src.SHA256 != "" {
		return source, nil
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

// warnNoSource says of tasks without a source and without a class, as which Go functions are called, who runs them.
func (s *session) warnNoSource(ctx context.Context, specs []task.Spec) {
	i := slices.IndexFunc(specs, func(spec task.Spec) bool { return spec.Source == "" && spec.Class == "" })
	if i < 0 {
		return
	}
	queue := cmp.Or(specs[i].Queue, s.cfg.TaskDefaults.Defaults[queueField], task.DefaultQueue)
	ofClass := func(r task.Reason) bool { return r.Kind == task.KindClass }
	if q, err := readQueue(ctx, s, queue); err == nil && slices.ContainsFunc(task.Unfit(task.Bucket{}, q.QueueSpec, task.Offer{}), ofClass) {
		return
	}
	s.warn("warning: no --source says where to get program %s, so it runs only where a worker has it: in its program_dir, or as a Go function",
		cli.Safe(specs[i].Program))
}
