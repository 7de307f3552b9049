package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// sighting is what a source without a pin held when it was looked at last. The zero value is that of one never seen.
type sighting struct {
	validator

	Source string `json:"source"`
	SHA256 string `json:"sha256"`
	looked time.Time
}

// validator tells whether a source has changed without reading it: by the entity tag or the date of an HTTP
// answer, or by size and times of a file. The zero value does not.
type validator struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	File     string `json:"file,omitempty"`
}

// identity is the validator of a local file.
func identity(fi os.FileInfo) string {
	text := fmt.Sprintf("%d %d", fi.Size(), fi.ModTime().UnixNano())
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		text += fmt.Sprintf(" %d %d", sys.Ino, sys.Ctim.Nano())
	}
	return text
}

// seenDir has a file for each program and source without a pin. When it was written is when the source was looked at.
const seenDir = ownDir + "/seen"

// seenFile is its name. A source may be longer than a name can be.
func seenFile(program, location string) string {
	sum := sha256.Sum256([]byte(location))
	return seenDir + "/" + program + "." + hex.EncodeToString(sum[:16])
}

// recall returns what a source was when this process or another one looked last, if that version is there still, and
// whether that was so short a while ago that it counts. The program's lock is held.
func (f *Fetcher) recall(program string, src task.Source) (s sighting, fresh bool) {
	if src.SHA256 != "" {
		return sighting{}, false
	}
	name := filepath.Join(f.opts.Dir, seenFile(program, src.Location))
	text, err := readPlain(name)
	if err != nil || json.Unmarshal(text, &s) != nil || s.Source != src.Location || !f.installed(program, s.SHA256) {
		return sighting{}, false
	}
	info, err := os.Stat(name)
	if err != nil {
		return s, false
	}
	s.looked = info.ModTime()
	if !f.fresh(&s, src) {
		return s, false
	}
	f.remember(program, s)
	return s, true
}

// sighted says that a source was looked at now, in this process.
func (f *Fetcher) sighted(program string, s sighting) {
	s.looked = time.Now()
	f.remember(program, s)
}

// remember forgets what is no longer fresh, so the map cannot grow for ever.
func (f *Fetcher) remember(program string, s sighting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.seen, func(_ string, old sighting) bool { return time.Since(old.looked) >= f.opts.Revalidate })
	f.seen[program+"\x00"+s.Source] = s
}

// record says so to other processes too. Where it cannot, they look for themselves.
func (f *Fetcher) record(program string, s sighting) {
	f.sighted(program, s)
	mode := os.FileMode(0o644)
	if clean.Source(s.Source) != s.Source {
		mode = 0o600 // it may hold a token
	}
	text, err := json.Marshal(s)
	if err == nil {
		_ = disk.WriteFile(filepath.Join(f.opts.Dir, seenFile(program, s.Source)), append(text, '\n'), mode)
	}
}
