package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// uploadName is the flag that names what is uploaded.
const uploadName = "upload"

// pack packs what --upload names, so that its hash is known. The caller closes it. It is nil without the flag.
func (sub *submission) pack(ctx context.Context, s *session) (*disk.Scratch, error) {
	if !s.cmd.Flags().Changed(uploadName) {
		return nil, nil //nolint:nilnil // there is nothing to upload
	}
	if program := *sub.texts[programField]; program != "" {
		if err := fetch.Uploadable(sub.upload, program); err != nil {
			return nil, cli.Usagef("--upload %s: %w", sub.upload, err)
		}
	}
	p, err := pack(ctx, sub.upload)
	if err != nil {
		return nil, fmt.Errorf("--upload: %w; nothing was opened", err)
	}
	sub.uploaded = p.SHA256()
	return p, nil
}

// put sends what was packed, before any task is opened that needs it.
func (sub *submission) put(ctx context.Context, s *session, p *disk.Scratch) error {
	if p == nil {
		return nil
	}
	if err := s.store.PutBlob(ctx, p.SHA256(), p.Size(), p); err != nil {
		return fmt.Errorf("--upload %s: %w; nothing was opened", cli.Safe(sub.upload), err)
	}
	return nil
}

// badStdin refuses a file that cannot be taken along, before anything is opened.
func badStdin(text string) error {
	name, here := strings.CutPrefix(text, task.FilePrefix)
	if !here {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("it is a directory")
	default: // not by opening it: a named pipe would lose what somebody writes into it
		err = unix.Access(name, unix.R_OK)
	}
	if err == nil {
		return nil
	}
	return cli.Usagef("stdin %q: %w; give the path of a file that can be read here", name, err)
}

// putStdin takes along what --stdin - reads. Files the manager takes along.
func (sub *submission) putStdin(ctx context.Context, s *session, specs []task.Spec) error {
	if sub.stdin != "-" {
		return nil
	}
	kept, err := s.manager.PutStdin(ctx, s.cmd.InOrStdin())
	if err != nil {
		return fmt.Errorf("--stdin: %w; nothing was opened", err)
	}
	for i := range specs {
		if specs[i].Stdin == task.FilePrefix+sub.stdin {
			specs[i].Stdin = kept
		}
	}
	return nil
}

// checkCommand refuses a command that would mean another file at each worker.
func (sub *submission) checkCommand(s *session, name string) error {
	uploading := s.cmd.Flags().Changed(uploadName)
	source := task.CommandPrefix + name
	if uploading { // any hash will do
		source += task.Pin(strings.Repeat("0", 64))
	}
	_, err := task.ParseSource(source)
	switch {
	case err == nil && uploading:
		return sub.checkTaken(s, name)
	case err == nil:
		return nil
	case uploading:
		return cli.Usagef("%q is no command: it lies outside of what --upload takes along; write a name, an absolute path, or a path such as "+
			"./%[1]s that begins in %s", name, sub.upload)
	default:
		return cli.Usagef("%q is no command: a relative path means another file at each worker; take it along with --upload DIRECTORY, "+
			"or write a name or an absolute path", name)
	}
}

// checkTaken refuses a path that no file of the upload has, and says of a word that could be one how that is written.
func (sub *submission) checkTaken(s *session, name string) error {
	if filepath.IsAbs(name) || strings.Contains(name, "{") {
		return nil // it lies at the worker, or each task has another one
	}
	upload, err := os.Stat(sub.upload)
	if err != nil {
		return badUpload(fmt.Errorf("--upload: %w", err))
	}
	dir, there := filepath.Dir(sub.upload), []string{filepath.Base(sub.upload)}
	if upload.IsDir() {
		files, err := os.ReadDir(sub.upload)
		if err != nil {
			return badUpload(fmt.Errorf("--upload: %w", err))
		}
		dir, there = sub.upload, nil
		for _, f := range files {
			there = append(there, f.Name())
		}
	}
	info, err := os.Stat(filepath.Join(dir, name))
	first, _, path := strings.Cut(filepath.Clean(name), "/")
	runs := err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && slices.Contains(there, first)
	switch path = path || strings.HasPrefix(name, "./"); {
	case path && !runs:
		return cli.Usagef("%q is no executable file of --upload %s, which holds %s; correct the path, or make the file executable",
			name, cli.Safe(sub.upload), clean.Shorten(cli.Safe(strings.Join(there, ", ")), 100))
	case runs && !path:
		s.warn("warning: the worker looks for %s in its PATH; for the file that --upload takes along, write ./%[1]s", cli.Safe(name))
	}
	return nil
}

// pack packs a directory, or a file alone; see [fetch.Pack]. The caller closes it.
func pack(ctx context.Context, name string) (*disk.Scratch, error) {
	p, err := disk.NewScratch("")
	if err != nil {
		return nil, err
	}
	if err = fetch.Pack(ctx, p, name); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}
