package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// lineSink writes lines of JSON.
type lineSink struct{ out io.Writer }

func (*lineSink) known(*archive.Record) bool { return false }

func (l *lineSink) write(records []archive.Record) error {
	for i := range records {
		text, err := records[i].Line()
		if err != nil {
			return err
		}
		if _, err := l.out.Write(text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

func (*lineSink) close(error) error { return nil }

// fileSink writes lines of JSON to a file, which has its name when it is whole.
type fileSink struct {
	lineSink

	file  *os.File
	lines *bufio.Writer
	name  string
}

func newFileSink(name string) (sink, error) {
	const draft = ".part"
	file, err := os.OpenFile(name+draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("--output: %w", err))
	}
	f := &fileSink{file: file, lines: bufio.NewWriter(file), name: name}
	f.out = f.lines
	return f, nil
}

func (f *fileSink) close(err error) error {
	if err == nil {
		err = f.lines.Flush()
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err = errors.Join(err, f.file.Close()); err == nil {
		err = os.Rename(f.file.Name(), f.name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}

// dirSink writes segments.
type dirSink struct {
	disk *archive.Writer
	has  map[archive.Key]int64
}

// newDirSink opens a directory, and looks for what it has of the tasks that are meant: memory is some hundred bytes for each task that is
// in Redis and in the directory.
func newDirSink(ctx context.Context, s *session, dir string, sel manager.Selection) (sink, error) {
	d := &dirSink{has: map[archive.Key]int64{}}
	var err error
	problem := func(err error) { fmt.Fprintf(s.cmd.ErrOrStderr(), "tdf-manager: %s\n", cli.Safe(err.Error())) }
	namespace := s.cfg.TDF.Namespace
	d.disk, err = archive.Open(archive.Options{Dir: dir, Namespace: namespace, TDF: cli.ThisBuild().Version, Problem: problem})
	if err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w; name a directory that you can write to", err))
	}
	if err := d.learn(ctx, s, dir, sel); err != nil {
		return nil, errors.Join(err, d.disk.Close())
	}
	return d, nil
}

// learn notes what had left Redis before, and reads which revisions there are.
func (d *dirSink) learn(ctx context.Context, s *session, dir string, sel manager.Selection) error {
	origin, err := s.store.Origin(ctx)
	if err != nil {
		return err
	}
	err = archive.Begin(dir, s.cfg.TDF.Namespace, origin, func() ([]archive.Range, error) {
		spans, err := s.store.PurgedAll(ctx)
		ranges := make([]archive.Range, len(spans))
		for i, p := range spans {
			ranges[i] = archive.Range{p.First, p.Last}
		}
		return ranges, err
	})
	if err != nil {
		return err
	}
	var meant archive.IDs
	for found, err := range s.manager.Select(ctx, sel, page) {
		if err != nil {
			return err
		}
		for i := range found {
			if found[i].State == statemachine.Archived {
				meant.Add(found[i].ID)
			}
		}
	}
	damaged := 0
	r := s.archiveReader([]string{dir}, s.cfg.TDF.Namespace, &damaged)
	return r.Each(ctx, func(e *archive.Entry) error {
		if rev, there := d.has[e.Key()]; meant.Has(e.ID) && (!there || rev < e.Rev) {
			d.has[e.Key()] = e.Rev
		}
		return nil
	})
}

func (d *dirSink) known(r *archive.Record) bool {
	rev, there := d.has[r.Key()]
	return there && rev >= r.Rev
}

func (d *dirSink) write(records []archive.Record) error { return d.disk.Write(records) }

// close seals what is there, also in the middle.
func (d *dirSink) close(error) error { return d.disk.Close() }
