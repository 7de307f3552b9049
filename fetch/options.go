package fetch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

	// MaxDownloadBytes limits the file fetched. Default 1 GiB.
	MaxDownloadBytes int64
	// MaxBytes limits all files of an archive together. Default 1 GiB.
	MaxBytes int64
	// MaxFileBytes limits one unpacked file. Default 512 MiB.
	MaxFileBytes int64
	// MaxEntries limits the number of archive entries. Default 100000.
	MaxEntries int
	// MaxDepth limits the directories above an entry. Default 32.
	MaxDepth int
	// MaxRatio limits unpacked bytes per archive byte, looked at once 10 MiB
	// are unpacked. Default 200.
	MaxRatio int

	// Timeout limits one fetch from the first byte to the rename, without the
	// wait for another worker's fetch. Default 10 minutes.
	Timeout time.Duration
	// StallTimeout limits how long a sender may be silent, and the dial.
	// Default 30 s.
	StallTimeout time.Duration
	// MaxRedirects limits HTTP redirects. Default 5.
	MaxRedirects int
	// HTTPRetries is how often a GET is repeated after a 429, a 5xx or a
	// broken connection. Default 2.
	HTTPRetries int
	// RetryDelay is the first pause between repeated GETs, doubled each time,
	// with jitter. Default 300 ms.
	RetryDelay time.Duration
	// FailureBackoff is how long the failure of a remote source is remembered
	// and answered without asking again, plus up to as much jitter. 0 switches
	// it off. Default 5 s.
	FailureBackoff time.Duration

	// NetrcFile holds HTTP credentials by host; its default entry is ignored,
	// since tasks choose the host. Read at each fetch. Default none.
	NetrcFile string
	// CAFile holds PEM certificates trusted for https besides the system's.
	CAFile string
	// ProxyFromEnvironment makes HTTP use HTTP_PROXY and its like.
	ProxyFromEnvironment bool
	// AllowLinkLocal permits HTTP to link-local addresses, where cloud hosts
	// offer their credentials.
	AllowLinkLocal bool

	// RsyncPath is the rsync program, used for remote paths only. Default
	// "rsync", looked up in PATH.
	RsyncPath string
	// RsyncPasswordFile holds the password for rsync:// sources.
	RsyncPasswordFile string
	// SSHCommand is the program for host:path sources. Default "ssh".
	SSHCommand string
	// SSHOptions are its arguments. Default: batch mode, strict host key
	// checking and a connect timeout of 10 s.
	SSHOptions []string
	// SSHExtra are arguments put before SSHOptions. As ssh keeps the first
	// value it sees of an option, they win. Default none.
	SSHExtra []string

	// RequirePinned refuses sources without #sha256=HEX.
	RequirePinned bool
	// ReadAs runs what opens a local source, with the rights of a user who shall be able
	// to read it: what a fetch installs, all programs can read. Default nil: with those
	// of this process.
	ReadAs func(open func() error) error
	// LocalRoots, if not empty, are the only directories local paths may lie
	// in; links inside them must not lead out.
	LocalRoots []string
}

// DefaultOptions gives the documented defaults; Dir remains to be set.
func DefaultOptions() Options {
	return Options{
		MaxDownloadBytes: 1 << 30,
		MaxBytes:         1 << 30,
		MaxFileBytes:     512 << 20,
		MaxEntries:       100_000,
		MaxDepth:         32,
		MaxRatio:         200,
		Timeout:          10 * time.Minute,
		StallTimeout:     30 * time.Second,
		MaxRedirects:     5,
		HTTPRetries:      2,
		RetryDelay:       300 * time.Millisecond,
		FailureBackoff:   5 * time.Second,
		RsyncPath:        "rsync",
		SSHCommand:       "ssh",
		SSHOptions:       []string{"-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oConnectTimeout=10"},
	}
}

func (o *Options) validate() error {
	if o.Dir == "" {
		return &OptionError{"Dir", o.Dir, "name the directory that shall hold the programs"}
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
		{limitDownload, o.MaxDownloadBytes, 1}, {limitBytes, o.MaxBytes, 1},
		{limitFileBytes, o.MaxFileBytes, 1}, {limitEntries, int64(o.MaxEntries), 1},
		{limitDepth, int64(o.MaxDepth), 0}, {limitRatio, int64(o.MaxRatio), 1},
		{"MaxRedirects", int64(o.MaxRedirects), 0}, {"HTTPRetries", int64(o.HTTPRetries), 0},
	} {
		if n.value < n.least {
			return &OptionError{n.field, n.value, fmt.Sprintf("use a number of at least %d, or DefaultOptions", n.least)}
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
		least time.Duration
	}{
		{"Timeout", o.Timeout, time.Millisecond}, {"StallTimeout", o.StallTimeout, time.Millisecond},
		{"RetryDelay", o.RetryDelay, 0}, {"FailureBackoff", o.FailureBackoff, 0},
	} {
		if d.value < d.least {
			return &OptionError{d.field, d.value, "use a duration of at least " + d.least.String() + ", or DefaultOptions"}
		}
	}
	return nil
}

func (o *Options) validateCommands() error {
	if o.RsyncPath == "" {
		return &OptionError{"RsyncPath", o.RsyncPath, `name the rsync program, for example "rsync"`}
	}
	// rsync splits its -e option at blanks and knows quotes.
	for _, ssh := range []struct {
		field string
		words []string
	}{{"SSHCommand", []string{o.SSHCommand}}, {"SSHOptions", o.SSHOptions}, {"SSHExtra", o.SSHExtra}} {
		for _, word := range ssh.words {
			if word == "" || strings.ContainsAny(word, " \t\r\n'\"\\") {
				return &OptionError{ssh.field, word, "use words without blanks, quotes and backslashes, one per argument"}
			}
		}
	}
	for _, root := range o.LocalRoots {
		if fi, err := os.Stat(root); err != nil || !fi.IsDir() {
			return &OptionError{"LocalRoots", root, "name existing directories"}
		}
	}
	for field, file := range map[string]string{"NetrcFile": o.NetrcFile, "RsyncPasswordFile": o.RsyncPasswordFile} {
		if file == "" {
			continue
		}
		if fi, err := os.Stat(file); err != nil || fi.IsDir() {
			return &OptionError{field, file, "name a readable file or leave it empty"}
		}
	}
	return nil
}

// absolute makes all paths independent of later changes of directory.
func (o *Options) absolute() error {
	o.LocalRoots = slices.Clone(o.LocalRoots)
	paths := make([]*string, 0, len(o.LocalRoots))
	for i := range o.LocalRoots {
		paths = append(paths, &o.LocalRoots[i])
	}
	for _, p := range append(paths, &o.Dir, &o.WorkDir, &o.NetrcFile, &o.CAFile, &o.RsyncPasswordFile) {
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

// The limits, named as their fields of Options.
const (
	limitDownload  = "MaxDownloadBytes"
	limitBytes     = "MaxBytes"
	limitFileBytes = "MaxFileBytes"
	limitEntries   = "MaxEntries"
	limitDepth     = "MaxDepth"
	limitRatio     = "MaxRatio"
)

// limitTexts say what is exceeded, by the field of Options.
var limitTexts = map[string]string{
	limitDownload:  "the file is larger than %d bytes",
	limitBytes:     "it unpacks to more than %d bytes",
	limitFileBytes: "a file is larger than %d bytes",
	limitEntries:   "there are more than %d entries",
	limitDepth:     "directories are more than %d deep",
	limitRatio:     "it unpacks to more than %d times its own size, as only bombs do",
}

// settings are the keys of worker.cfg that fields of Options come from.
var settings = map[string]string{
	"Dir":          "program_dir",
	limitDownload:  "fetch_max_bytes",
	limitBytes:     "fetch_max_bytes",
	limitFileBytes: "fetch_max_file_bytes",
	limitEntries:   "fetch_max_entries",
	"MaxRedirects": "fetch_max_redirects",
	"Timeout":      "fetch_timeout",
	"NetrcFile":    "netrc_file",
	"CAFile":       "ca_file",
	"SSHExtra":     "ssh_options",
	"RsyncPath":    "rsync_path",
}

// setting is what people know a field of Options by, or empty: errors reach
// those who read a task's log, who cannot set fields of Go.
func setting(field string) string {
	if key, ok := settings[field]; ok {
		return "[worker] " + key
	}
	return ""
}
