package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
)

// reading is the reading of one segment.
type reading struct {
	segment

	r       *Reader
	d       *decoder
	damaged func(*DamageError)
	visit   func(*Entry) error
	// number is the place of the segment among all, entries how many there were, lines how many of them were no records.
	number, entries int
	bad             int
	badWhy          error
	counts          Counts
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
	return eachLine(raw, func(line []byte) error {
		h, err := parseHead(line)
		if err != nil {
			r.bad, r.badWhy = r.bad+1, err
			return nil //nolint:nilerr // judge tells
		}
		r.counts.add(&h)
		r.entries++
		return r.visit(&Entry{Head: h, File: r.path, text: line, at: position{r.number, r.entries}})
	})
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
	case m != nil && r.r.Verify:
		r.compare(m, text)
	}
}

// compare looks at everything that the manifest says.
func (r *reading) compare(m *Manifest, text []byte) {
	sum := sha256.Sum256(text)
	switch {
	case hex.EncodeToString(sum[:]) != m.SHA256:
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
