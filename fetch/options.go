package fetch

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options configures a [Fetcher]. Start from [DefaultOptions].
type Options struct {
	// Dir is the directory that holds the program directories; created if
	// missing. Workers that share it fetch a program once. Required.
	Dir string
	// WorkDir is what relative rsync: paths are relative to. Default: the
	// working directory of the process when New is called.
	WorkDir string
	// Worker is the worker's name as shown in errors; may be empty.
	Worker string

	// MaxBytes limits the file fetched, and all files of an archive together. Default 1 GiB.
	MaxBytes int64
	// MaxFileBytes limits one unpacked file. Default 512 MiB.
	MaxFileBytes int64
	// MaxEntries limits the number of archive entries. Default 100000.
	MaxEntries int

	// CacheBytes is the room for versions in Dir, as the file system counts it: when a new one
	// has been installed, those go that were used longest ago and that nobody holds (see
	// [Version.Hold]), until the rest fits. Default 10 GiB; no limit if 0 or negative.
	CacheBytes int64

	// Timeout limits one fetch from the first byte to the rename, without the
	// wait for another worker's fetch. Default 10 minutes.
	Timeout time.Duration
	// MaxRedirects limits HTTP redirects. Default 5.
	MaxRedirects int
	// FailureBackoff is how long the failure of a remote source is remembered
	// and answered without asking again, plus up to as much jitter. 0 switches
	// it off. Default 5 s.
	FailureBackoff time.Duration

	// NetrcFile holds HTTP credentials by host; its default entry is ignored,
	// since tasks choose the host. Read at each fetch. Default none.
	NetrcFile string
	// CAFile holds PEM certificates trusted for https besides the system's.
	CAFile string

	// RsyncPath is the rsync program, used for remote paths only. Default
	// "rsync", looked up in PATH.
	RsyncPath string
	// SSHExtra are arguments for ssh, which fetches host:path sources. They stand before those for batch mode, strict host key
	// checking and a connect timeout of 10 s; as ssh keeps the first value it sees of an option, they win. Default none.
	SSHExtra []string

	// Revalidate is how long a source without a pin is taken for unchanged; a local path is looked
	// at each time. Default 60 s.
	Revalidate time.Duration
	// RequirePinned refuses sources without #sha256=HEX.
	RequirePinned bool
	// Blob writes what Redis keeps under a SHA-256 to w. Default nil: sources of that kind cannot be fetched.
	Blob func(ctx context.Context, sha256 string, w io.Writer) error
	// ReadAs runs what opens a local source, with the rights of a user who shall be able
	// to read it: what a fetch installs, all programs can read. Default nil: with those
	// of this process.
	ReadAs func(open func() error) error

	maxDepth     int           // directories above an entry of an archive
	maxRatio     int           // unpacked bytes per archive byte, looked at once 10 MiB are unpacked
	stallTimeout time.Duration // how long a sender may be silent, and the dial
	retryDelay   time.Duration // the first pause between repeated GETs, doubled each time, with jitter
}

// httpRetries is how often a GET is repeated after a 429, a 5xx or a broken connection.
const httpRetries = 2

// sshOptions stand behind SSHExtra.
var sshOptions = []string{"-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oConnectTimeout=10"}

// DefaultOptions gives the documented defaults; Dir remains to be set.
func DefaultOptions() Options {
	return Options{
		MaxBytes:       1 << 30,
		MaxFileBytes:   512 << 20,
		MaxEntries:     100_000,
		CacheBytes:     10 << 30,
		Timeout:        10 * time.Minute,
		MaxRedirects:   5,
		FailureBackoff: 5 * time.Second,
		Revalidate:     time.Minute,
		RsyncPath:      "rsync",
		maxDepth:       32,
		maxRatio:       200,
		stallTimeout:   30 * time.Second,
		retryDelay:     300 * time.Millisecond,
	}
}

func (o *Options) validate() error {
	if o.Dir == "" {
		return badOption("Dir", o.Dir, "name the directory that shall hold the programs")
	}
	if err := o.validateNumbers(); err != nil {
		return err
	}
	return o.validateCommands()
}

func (o *Options) validateNumbers() error {
	for _, n := range []struct {
		field string
		value int64
		least int64
	}{
		{"MaxBytes", o.MaxBytes, 1}, {"MaxFileBytes", o.MaxFileBytes, 1}, {"MaxEntries", int64(o.MaxEntries), 1},
		{"MaxRedirects", int64(o.MaxRedirects), 0},
	} {
		if n.value < n.least {
			return badOption(n.field, n.value, fmt.Sprintf("use a number of at least %d, or DefaultOptions", n.least))
		}
	}
	if o.Timeout < time.Millisecond {
		return badOption("Timeout", o.Timeout, "use a duration of at least 1ms, or DefaultOptions")
	}
	for field, d := range map[string]time.Duration{"FailureBackoff": o.FailureBackoff, "Revalidate": o.Revalidate} {
		if d < 0 {
			return badOption(field, d, "use a duration of at least 0s, or DefaultOptions")
		}
	}
	return nil
}

func (o *Options) validateCommands() error {
	if o.RsyncPath == "" {
		return badOption("RsyncPath", o.RsyncPath, `name the rsync program, for example "rsync"`)
	}
	for _, word := range o.SSHExtra { // rsync splits its -e option at blanks and knows quotes
		if word == "" || strings.ContainsAny(word, " \t\r\n'\"\\") {
			return badOption("SSHExtra", word, "use words without blanks, quotes and backslashes, one per argument")
		}
	}
	if o.NetrcFile != "" {
		if fi, err := os.Stat(o.NetrcFile); err != nil || fi.IsDir() {
			return badOption("NetrcFile", o.NetrcFile, "name a readable file or leave it empty")
		}
	}
	return nil
}

// absolute makes all paths independent of later changes of directory.
func (o *Options) absolute() error {
	for _, p := range []*string{&o.Dir, &o.WorkDir, &o.NetrcFile, &o.CAFile} {
		if *p == "" && p != &o.WorkDir {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("make '%s' absolute: %w", *p, err)
		}
		*p = abs
	}
	return nil
}

// settings are the keys of worker.cfg that fields of Options come from.
var settings = map[string]string{
	"Dir":          "program_dir",
	"MaxBytes":     "fetch_max_bytes",
	"MaxFileBytes": "fetch_max_file_bytes",
	"MaxEntries":   "fetch_max_entries",
	"CacheBytes":   "program_cache",
	"MaxRedirects": "fetch_max_redirects",
	"Timeout":      "fetch_timeout",
	"NetrcFile":    "netrc_file",
	"CAFile":       "ca_file",
	"SSHExtra":     "ssh_options",
	"RsyncPath":    "rsync_path",
	"Revalidate":   "revalidate",
}

// setting is what people know a field of Options by, or empty: errors reach
// those who read a task's log, who cannot set fields of Go.
func setting(field string) string {
	if key, ok := settings[field]; ok {
		return "[worker] " + key
	}
	return ""
}
