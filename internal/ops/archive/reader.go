package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Reader reads the records of a namespace from some directories: the segments, and those that still grow as far as they are. It
// holds one segment at a time in memory.
type Reader struct {
	// Dirs are the directories; servers may have one of their own each.
	Dirs      []string
	Namespace string
	// Wants, if set, says whether tasks with ids from first to last are looked for; what has none is not read.
	Wants func(first, last int64) bool
	// Damaged is told of everything that is wrong; reading goes on.
	Damaged func(*DamageError)
	// Verify compares each segment with its manifest.
	Verify bool
}

// Entry is a record as it is found. It is valid until the next one.
type Entry struct {
	Head

	// File is where it is.
	File string
	text []byte
	at   position
}

// position is where an entry is: the segment by its place among all, and how many come before it there.
type position struct {
	segment int
	number  int64
}

// Record reads all of it.
func (e *Entry) Record() (Record, error) {
	r, err := ParseRecord(e.text)
	if err != nil {
		return r, fmt.Errorf("%s: %w", e.File, err)
	}
	return r, nil
}

// Line is the record as it is in the segment, without the end of the line.
func (e *Entry) Line() []byte { return e.text }

// segment is one to read.
type segment struct {
	path string
	// grows says that it was not sealed when it was looked for; then its size counts, so that each pass reads the same.
	grows bool
	size  int64
}

// Each calls visit for each record, also for those that are there more than once, in the order of the directories and in each
// of them in that in which segments were begun. It returns the error of visit or of ctx, or that a directory cannot be read.
func (r *Reader) Each(ctx context.Context, visit func(*Entry) error) error {
	all, err := r.segments()
	if err != nil {
		return err
	}
	return r.pass(ctx, all, r.Damaged, visit)
}

// segments are all to be read.
func (r *Reader) segments() ([]segment, error) {
	var all []segment
	for _, dir := range r.Dirs {
		sealed, parts, err := listed(dir, r.Namespace)
		if err != nil {
			return nil, err
		}
		for _, name := range sealed {
			all = append(all, segment{path: filepath.Join(dir, name)})
		}
		for _, name := range parts {
			s := segment{path: filepath.Join(dir, name), grows: true}
			if info, err := os.Stat(s.path + partEnd); err == nil {
				s.size = info.Size()
			} else if info, err := os.Stat(s.path); err == nil { // sealed just now
				s.size = info.Size()
			}
			all = append(all, s)
		}
		if err := r.orphans(dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// listed is names, also while segments are sealed: one that is renamed while a directory is listed may be missed once, and not twice.
func listed(dir, namespace string) (sealed, parts []string, err error) {
	for range 2 {
		s, p, err := names(dir, namespace)
		if err != nil {
			return nil, nil, err
		}
		sealed, parts = append(sealed, s...), append(parts, p...)
	}
	slices.Sort(sealed)
	slices.Sort(parts)
	sealed, parts = slices.Compact(sealed), slices.Compact(parts)
	isSealed := func(name string) bool { _, is := slices.BinarySearch(sealed, name); return is }
	return sealed, slices.DeleteFunc(parts, isSealed), nil
}

// orphans looks for manifests without a segment.
func (r *Reader) orphans(dir string) error {
	if !r.Verify {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), manifestEnd)
		found := segmentName.FindStringSubmatch(name)
		path := filepath.Join(dir, name)
		if is && found != nil && found[1] == r.Namespace && missing(path+partEnd) && missing(path) { // a part may be sealed in between
			r.Damaged(&DamageError{Path: path, Problem: "is missing, and its manifest is there", Remedy: restoreRemedy})
		}
	}
	return nil
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// pass reads segments once.
func (r *Reader) pass(ctx context.Context, all []segment, damaged func(*DamageError), visit func(*Entry) error) error {
	d, err := newDecoder()
	if err != nil {
		return err
	}
	defer d.zstd.Close()
	for i, s := range all {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		one := reading{r: r, d: d, damaged: damaged, visit: visit, segment: s, number: i}
		if err := one.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reading is the reading of one segment.
type reading struct {
	segment

	r       *Reader
	d       *decoder
	damaged func(*DamageError)
	visit   func(*Entry) error
	// number is the place of the segment among all, bad how many lines were no records; badWhy is about the last of those.
	number, bad int
	badWhy      error
	counts      Counts
}

// read visits the records. The error is that of visit or ctx.
func (r *reading) read(ctx context.Context) error {
	m, err := r.manifest()
	if err != nil {
		r.fault(err)
	}
	if m != nil && r.r.Wants != nil && !r.r.Wants(m.FirstID, m.LastID) {
		return nil
	}
	text, sealed, err := r.content()
	if err != nil {
		r.fault(err)
		return nil
	}
	var stop error
	found, err := r.d.scan(text, func(raw []byte) error {
		stop = r.frame(ctx, raw)
		return stop
	})
	if err != nil {
		return stop
	}
	r.judge(m, text, found, sealed)
	return nil
}

// manifest reads it. Each sealed segment must have one.
func (r *reading) manifest() (*Manifest, error) {
	if r.grows {
		return nil, nil //nolint:nilnil // it may be sealed at any moment, and is read anyway
	}
	m, err := readManifest(r.path)
	if m == nil && err == nil {
		err = &DamageError{Path: r.path, Problem: "has no manifest", Remedy: resealRemedy(r.path)}
	}
	return m, err
}

// content is the text of the segment; that of a part as far as it was when it was looked for.
func (r *reading) content() (text []byte, sealed bool, err error) {
	sealed = !r.grows
	if r.grows {
		f, err := os.Open(r.path + partEnd)
		if err == nil {
			defer func() { _ = f.Close() }() // it is only read
			text, err = io.ReadAll(io.LimitReader(f, r.size))
			return text, false, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
	}
	text, err = os.ReadFile(r.path)
	if r.grows && errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil // it was empty, and its writer has removed it
	}
	if r.grows && int64(len(text)) > r.size {
		text = text[:r.size]
	}
	return text, sealed, err
}

// frame visits the records of a frame. What is no record is damage, and does not end it.
func (r *reading) frame(ctx context.Context, raw []byte) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for line := range bytes.Lines(raw) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		h, err := parseHead(line)
		if err != nil {
			r.bad, r.badWhy = r.bad+1, err
			continue
		}
		r.counts.add(&h)
		if err := r.visit(&Entry{Head: h, File: r.path, text: line, at: position{r.number, r.counts.Records}}); err != nil {
			return err
		}
	}
	return nil
}

// judge tells what is wrong with the segment as a whole.
func (r *reading) judge(m *Manifest, text []byte, found scanned, sealed bool) {
	switch torn := len(text) - found.whole; {
	case len(found.holes) > 0:
		hole := found.holes[0]
		r.tell(fmt.Sprintf("is damaged: %d places are no whole frame, the first is bytes %d to %d", len(found.holes), hole[0], hole[1]-1))
	case r.bad > 0:
		r.tell(fmt.Sprintf("has %d lines that are not the record of a task, the last one: %v", r.bad, r.badWhy))
	case torn > 0 && sealed:
		r.tell(fmt.Sprintf("is cut: the last %d bytes are no whole frame", torn))
	case m != nil && (m.Bytes != int64(len(text)) || m.Records != r.counts.Records):
		r.tell(fmt.Sprintf("has %d bytes and %d records, and its manifest says %d and %d", len(text), r.counts.Records, m.Bytes, m.Records))
	case m == nil || !r.r.Verify:
	case fmt.Sprintf("%x", sha256.Sum256(text)) != m.SHA256:
		r.tell("has not the checksum that is in its manifest")
	case !reflect.DeepEqual(m.Counts, r.counts):
		r.tell("has other tasks than its manifest says")
	}
}

func (r *reading) tell(problem string) {
	path := r.path
	if r.grows {
		path += partEnd
	}
	r.damaged(&DamageError{Path: path, Problem: problem, Remedy: restoreRemedy})
}

// fault tells of a file that cannot be read.
func (r *reading) fault(err error) {
	var damage *DamageError
	if !errors.As(err, &damage) {
		damage = &DamageError{Path: r.path, Problem: "cannot be read: " + err.Error(), Remedy: "check the path and the permissions"}
	}
	r.damaged(damage)
}
