package archive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// recover seals the parts of the namespace that nobody has locked: their writers have ended. What is wrong with one of them is
// told, and it stays.
func (w *Writer) recover() error {
	_, parts, err := names(w.opt.Dir, w.opt.Namespace)
	if err != nil {
		return err
	}
	for _, name := range parts {
		if err := w.take(name); err != nil {
			w.opt.Problem(err)
		}
	}
	return nil
}

// take seals a part unless somebody has it.
func (w *Writer) take(name string) error {
	file, err := os.OpenFile(filepath.Join(w.opt.Dir, name+partEnd), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody was first
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was made safe before
	if mine, err := lock(file); err != nil || !mine {
		return err
	}
	p := &part{file: file, name: name}
	if err := p.read(); err != nil {
		return err
	}
	return p.seal(&w.opt)
}

// read counts the whole frames of a part that was left, makes them safe, and cuts off what follows. It cuts nothing out of the
// middle: each frame was on the disk before the next one was begun, so that is damage.
func (p *part) read() error {
	text, err := io.ReadAll(p.file)
	if err != nil {
		return err
	}
	d, err := newDecoder()
	if err != nil {
		return err
	}
	defer d.close()
	found, err := d.scan(text, func(raw []byte) error {
		p.raw += int64(len(raw))
		return eachLine(raw, func(line []byte) error {
			h, err := parseHead(line)
			if err == nil {
				p.counts.add(&h)
			}
			return err
		})
	})
	if err == nil && len(found.holes) > 0 {
		err = fmt.Errorf("bytes %d to %d are no whole frame, and whole ones follow", found.holes[0][0], found.holes[0][1]-1)
	}
	if err != nil {
		return &DamageError{Path: p.file.Name(), Problem: "was left unsealed, and is damaged: " + err.Error(), Remedy: restoreRemedy}
	}
	p.size, p.cut = int64(found.whole), int64(len(text)-found.whole)
	p.sum = sha256.New()
	_, _ = p.sum.Write(text[:found.whole]) // it never fails
	if p.cut > 0 {
		err = p.file.Truncate(p.size)
	}
	return errors.Join(err, p.file.Sync())
}

// eachLine calls visit for each line.
func eachLine(text []byte, visit func([]byte) error) error {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		if err := visit(line); err != nil {
			return err
		}
		text = rest
	}
	return nil
}
