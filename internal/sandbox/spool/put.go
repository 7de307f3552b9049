package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// Put stores data under a name: 1 to 1024 bytes of UTF-8. An entry of that name
// is replaced and becomes the newest. When Put returns nil, the entry outlives
// a crash; else the one before it may still be there, but never half of one.
// The error matches syscall.ENOSPC if the disk is full.
func (s *Spool) Put(name string, data []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	order, err := s.order()
	if err != nil {
		return err
	}
	line, err := headLine(name, order, data)
	if err != nil {
		return err
	}
	temp := tempPrefix + strconv.FormatUint(order, 10)
	if err := s.place(temp, fileName(name)+ending, line, data); err != nil {
		_ = s.root.Remove(temp) // if that fails too, Open will do it
		return s.explain(name, len(data), err)
	}
	return nil
}

// place writes line and data durably aside and renames them.
func (s *Spool) place(temp, file string, line, data []byte) error {
	f, err := s.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.root.Rename(temp, file); err != nil {
		return err
	}
	return s.syncDir()
}

// syncDir makes the names in the spool durable.
func (s *Spool) syncDir() error {
	dir, err := s.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (s *Spool) explain(name string, size int, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("the disk of spool_dir '%s' is full, '%s' of %d bytes is not stored: make room: %w",
			s.dir, clean.Line(name, 0), size, err)
	}
	return fmt.Errorf("store '%s' in the spool: %w", clean.Line(name, 0), err)
}

// Remove deletes an entry, which was delivered. That there is none is no error.
func (s *Spool) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := s.use(); err != nil {
		return err
	}
	err := s.root.Remove(fileName(name) + ending)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.syncDir()
	}
	if err != nil {
		return fmt.Errorf("remove '%s' from the spool: %w", clean.Line(name, 0), err)
	}
	return nil
}
