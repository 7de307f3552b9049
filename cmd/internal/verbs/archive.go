package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
)

// archiveName is the flag that names directories of an archive.
const archiveName = "archive"

// archiveFlag adds --archive.
func archiveFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArray(archiveName, nil,
		"read tasks that have left Redis from this directory, the archive_dir of servers; may be given several times")
}

// withArchive makes a verb that reads an archive and needs no Redis. What is damaged is told, and makes the exit code 1.
func (a *app) withArchive(
	dirs *[]string, do func(ctx context.Context, s *session, r *archive.Reader) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s := a.session(cmd, args)
		namespace, done, err := a.namespaceOf(cmd, *dirs)
		if done || err != nil {
			return err
		}
		damaged := 0
		r := s.archiveReader(*dirs, namespace, &damaged)
		err = do(cmd.Context(), s, r)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w", err))
		}
		if err == nil && damaged > 0 {
			return cli.Exit(cli.ExitTaskFailed)
		}
		return withExitCode(orSignal(cmd.Context(), err))
	}
}

// archiveReader reads directories, tells what is damaged on stderr, and counts it.
func (s *session) archiveReader(dirs []string, namespace string, damaged *int) *archive.Reader {
	return &archive.Reader{Dirs: dirs, Namespace: namespace, Damaged: func(e *archive.DamageError) {
		*damaged++
		s.warn("damaged: %s", cli.Safe(e.Error()))
	}}
}

// namespaceOf is the namespace of the configuration. An archive can also be read where there is none: then it is the only one
// that the directories have.
func (a *app) namespaceOf(cmd *cobra.Command, dirs []string) (namespace string, done bool, err error) {
	if a.configured() {
		cfg, done, err := a.load(cmd)
		if done || err != nil {
			return "", done, err
		}
		return cfg.TDF.Namespace, false, nil
	}
	seen := map[string]bool{}
	var all []string
	for _, dir := range dirs {
		found, err := archive.Namespaces(dir)
		if err != nil {
			return "", false, cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w", err))
		}
		for _, name := range found {
			if !seen[name] {
				all = append(all, name)
			}
			seen[name] = true
		}
	}
	switch len(all) {
	case 0:
		return "", false, cli.Usagef("--archive %s: there is no segment of an archive", strings.Join(dirs, ", "))
	case 1:
		return all[0], false, nil
	default:
		return "", false, cli.Usagef("--archive %s: there are tasks of the namespaces %s; say which is meant by --config",
			strings.Join(dirs, ", "), strings.Join(all, ", "))
	}
}

// configured reports whether there is a configuration, in whatever way.
func (a *app) configured() bool {
	if a.asked() || a.path() != defaultConfig || a.file != "" {
		return true
	}
	_, err := os.Stat(defaultConfig)
	return err == nil
}

// noLast is the answer to the word last, which an archive does not know.
func noLast() (int64, error) {
	return 0, cli.Usagef("tasks %q: only Redis knows which task was opened last; name tasks of an archive by their ids", manager.LastTask)
}

// findTask reads the task that the only argument names from an archive.
func (s *session) findTask(ctx context.Context, r *archive.Reader) (*manager.Task, error) {
	id, err := manager.ParseID(s.args[0], noLast)
	if err != nil {
		return nil, err
	}
	found, err := r.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("task %d: %w in %s", id, store.ErrNotFound, strings.Join(r.Dirs, ", "))
	}
	if len(found) > 1 {
		s.warn("%d tasks had the id %d, because the namespace was flushed; this is the "+
			"one opened last, and zstdcat shows all of them as lines of the segments", len(found), id)
	}
	return manager.ArchivedTask(id, found[0].Fields), nil
}
