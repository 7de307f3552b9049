package task

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// What is wrong with the program of a task, or with where to get it.
var (
	// ErrInvalidProgram means that the name of a program cannot name a directory safely.
	ErrInvalidProgram = errors.New("invalid program name")
	// ErrInvalidSource means that the source cannot be parsed or carries credentials.
	ErrInvalidSource = errors.New("invalid source")
	// ErrInvalidFormat means that the source has no supported ending.
	ErrInvalidFormat = errors.New("invalid type of archive / program")
)

var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidProgram says whether name can be the name of a program that is fetched, which is
// also the name of its directory: letters, digits, '.', '_' and '-', first a letter or
// digit, at most 128. The error matches [ErrInvalidProgram].
func ValidProgram(name string) error {
	if programName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%w: '%s': use 1 to 128 letters, digits, '.', '_' and '-', starting with a letter or digit",
		ErrInvalidProgram, clean.Line(name, maxShown))
}

// maxShown is how many bytes of a name or a source an error repeats.
const maxShown = 300

// maxSourceBytes bounds a source; longer ones are refused.
const maxSourceBytes = 2048

const (
	rsyncPrefix = "rsync:"
	pinPrefix   = "#" + hashPrefix
	hashPrefix  = "sha256="
	blobPrefix  = "blob:" + hashPrefix
)

// FilePrefix begins what names a file where a task is opened, in a source on the command line and in [Spec].Stdin. No record has it.
const FilePrefix = "file:"

// SourceKind is the way a source is transferred.
type SourceKind string

// The kinds of sources.
const (
	SourceHTTP   SourceKind = "http"   // http:// and https://
	SourceLocal  SourceKind = "local"  // rsync:PATH, copied without the rsync program
	SourceShell  SourceKind = "ssh"    // rsync:[USER@]HOST:PATH
	SourceDaemon SourceKind = "daemon" // rsync://HOST[:PORT]/MODULE/PATH, rsync:HOST::MODULE/PATH
	SourceBlob   SourceKind = "blob"   // blob:sha256=HEX, a packed directory that Redis keeps
	// SourceCommand is command:NAME: nothing is transferred, the worker runs what it has.
	// With a pin, command:NAME#sha256=HEX, it runs in the packed directory of that hash, as
	// blob:sha256=HEX names it.
	SourceCommand SourceKind = "command"
)

// CommandPrefix begins the source of a task that runs a command of the worker's host, in
// the place of a run.sh: command:NAME for what is found in its PATH, command:/PATH for a
// file, and command:./PATH#sha256=HEX for one of a packed directory. The words of the task
// are its arguments.
const CommandPrefix = "command:"

// Source is a parsed source.
type Source struct { //nolint:recvcheck // String shows a source, the others fill one
	Kind SourceKind
	// Location is the source without its pin.
	Location string
	// Path is what is handed to HTTP client, rsync or the file system.
	Path string
	// File is the last part of the path, or of the query where the path names no
	// file. It may hold credentials then; messages have String.
	File string
	// Format says how File is unpacked.
	Format SourceFormat
	// SHA256 is the pinned hash of the file as lower-case hex, or empty.
	SHA256 string
}

// String names the file for messages, without what may be credentials.
func (src Source) String() string {
	if before, _, _ := strings.Cut(src.Location, "?"); src.Kind == SourceHTTP && formatOf(path.Base(before)) == "" {
		return "the file" // its name comes from the query
	}
	return clean.Line(src.File, maxShown)
}

// ParseSource parses a task's source: an http:// or https:// URL, rsync:PATH
// or rsync://HOST/MODULE/PATH, ending in run.sh or one of the archive endings,
// and an optional #sha256=HEX that pins the file's content; blob:sha256=HEX; or command:NAME.
// Errors match [ErrInvalidSource] or [ErrInvalidFormat] and never repeat credentials.
func ParseSource(s string) (Source, error) {
	if err := checkText(s); err != nil {
		return Source{}, err
	}
	if name, ok := strings.CutPrefix(s, CommandPrefix); ok {
		return parseCommand(s, name)
	}
	if hash, ok := strings.CutPrefix(s, blobPrefix); ok {
		if !isSHA256(hash) {
			return Source{}, invalid(s, "after blob:sha256= 64 hexadecimal digits stand, and nothing else")
		}
		return Source{Kind: SourceBlob, Location: s, File: "the upload", Format: FormatTarZst, SHA256: strings.ToLower(hash)}, nil
	}
	location, pin, err := cutPin(s)
	if err != nil {
		return Source{}, err
	}
	src := Source{Location: location, SHA256: pin}
	switch {
	case strings.HasPrefix(location, "http://"), strings.HasPrefix(location, "https://"):
		err = src.parseHTTP()
	case strings.HasPrefix(location, rsyncPrefix):
		err = src.parseRsync(strings.TrimPrefix(location, rsyncPrefix))
	default:
		err = invalid(s, "use http://, https://, rsync:PATH, rsync://HOST/MODULE/PATH, blob:sha256=HEX or command:NAME")
	}
	if err != nil {
		return Source{}, err
	}
	if src.Format == "" {
		return Source{}, fmt.Errorf("%w: %s: use one of %s", ErrInvalidFormat, redact(s), endingList())
	}
	return src, nil
}

// filePrefix begins a destination that is a directory.
const filePrefix = "file:"

// ParseDestination parses where rounds return files to: file:/DIR or /DIR, a directory of the host of the worker, such as a disk
// that hosts share; or, as a source has it, rsync://HOST/MODULE[/PATH], rsync:HOST::MODULE[/PATH] or rsync:[USER@]HOST:PATH.
// Location is its one form. Errors match [ErrInvalidSource] and never repeat credentials.
func ParseDestination(s string) (Source, error) {
	if err := checkText(s); err != nil {
		return Source{}, err
	}
	if dir, is := strings.CutPrefix(s, filePrefix); is || path.IsAbs(s) {
		dir = strings.TrimPrefix(dir, "//")
		if !path.IsAbs(dir) {
			return Source{}, invalid(s, "write file:/DIRECTORY, from the root: a relative one means another at each worker")
		}
		dir = path.Clean(dir)
		return Source{Kind: SourceLocal, Location: filePrefix + dir, Path: dir}, nil
	}
	place, is := strings.CutPrefix(strings.TrimRight(s, "/"), rsyncPrefix)
	if !is || strings.HasSuffix(place, ":") {
		return Source{}, invalid(s, "use file:/DIRECTORY, rsync://HOST/MODULE/PATH or rsync:HOST:PATH")
	}
	src := Source{Location: rsyncPrefix + place}
	const in = "/0" // what a round returns lies in it
	err := src.parseRsync(place + in)
	if err == nil && src.Kind == SourceLocal {
		err = invalid(s, "write file:/DIRECTORY for a directory of the worker's host")
	}
	src.Path, src.File, src.Format = strings.TrimSuffix(src.Path, in), "", ""
	return src, err
}

// ReturnedTo is where, at a destination, the files of a round are: no two rounds have the same place.
func ReturnedTo(destination string, id int64, round int) string {
	return fmt.Sprintf("%s/%d.%d", strings.TrimSuffix(destination, "/"), id, round)
}

// StreamsSuffix ends, behind [ReturnedTo], the name of the directory with what a round wrote and its record has not (Round.Whole).
const StreamsSuffix = ".logs"

const wantCommand = "command:NAME, of a command that is in the PATH of the workers, or command:/PATH; " +
	"a relative path would mean another file at each of them, unless upload takes it along"

// parseCommand takes what means the same wherever the worker was started.
func parseCommand(source, name string) (Source, error) {
	hash := SourceSHA256(source)
	if hash != "" {
		name = name[:len(name)-len(pinPrefix)-len(hash)]
	}
	relative := strings.Contains(name, "/") && !path.IsAbs(name)
	if relative && hash == "" || name == "" || strings.HasSuffix(name, "/") || name == "." || name == ".." {
		return Source{}, invalid(source, "use "+wantCommand)
	}
	if clean := path.Clean(name); relative && (clean == "." || clean == ".." || strings.HasPrefix(clean, "../")) {
		return Source{}, invalid(source, "the command lies outside of the directory that it runs in")
	}
	return Source{Kind: SourceCommand, Location: source, Path: name, File: path.Base(name), SHA256: hash}, nil
}

// Pin is what pins a source to the file of that SHA-256, in hex.
func Pin(sha256 string) string { return pinPrefix + sha256 }

// PinFirst at the end of a source pins it to what the first worker finds there that runs a task of its plan or job: all others
// run that version too. Without a plan it means nothing.
const PinFirst = pinPrefix + "first"

// BlobSource is the source of what Redis keeps under that SHA-256, in hex.
func BlobSource(sha256 string) string { return blobPrefix + sha256 }

// SourceSHA256 is the hash, in lower-case hex, of the content that a source means; empty if it means whatever is there.
func SourceSHA256(source string) string {
	hash, found := strings.CutPrefix(source, blobPrefix)
	if i := strings.LastIndex(source, pinPrefix); !found && i >= 0 {
		hash, found = source[i+len(pinPrefix):], true
	}
	if !found || !isSHA256(hash) {
		return ""
	}
	return strings.ToLower(hash)
}

func isSHA256(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 32
}

func checkText(s string) error {
	switch {
	case s == "":
		return invalid(s, "the task names no source")
	case len(s) > maxSourceBytes:
		return invalid(s, fmt.Sprintf("it is longer than %d bytes", maxSourceBytes))
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return invalid(s, "it holds control characters or is not UTF-8")
	}
	return nil
}

// cutPin splits off the pin. Any other fragment is refused: a misspelt pin
// must not count as none.
func cutPin(s string) (location, pin string, err error) {
	i := strings.IndexByte(s, '#')
	if i < 0 {
		return s, "", nil
	}
	if s[i:] == PinFirst {
		return s[:i], "", nil
	}
	pin, ok := strings.CutPrefix(s[i:], pinPrefix)
	if !ok || !isSHA256(pin) {
		return "", "", invalid(s, "after '#' only sha256= and 64 hexadecimal digits may stand")
	}
	return s[:i], strings.ToLower(pin), nil
}

func (src *Source) parseHTTP() error {
	u, err := url.Parse(src.Location)
	if err != nil {
		return invalid(src.Location, "it is no URL") // err would repeat the URL
	}
	if u.User != nil {
		return invalid(src.Location, "credentials belong into the worker's netrc file, not into a task")
	}
	if host := u.Hostname(); host == "" || strings.HasPrefix(host, "-") {
		return invalid(src.Location, "the host is missing or starts with '-'")
	}
	src.Kind, src.Path = SourceHTTP, src.Location
	src.setFile(path.Base(u.Path))
	if src.Format == "" { // as in http://host/get?file=program.zip
		last := strings.LastIndexAny(u.RawQuery, "/=&")
		src.setFile(u.RawQuery[last+1:])
	}
	return nil
}

// parseRsync follows rsync's own rule: a colon before the first slash makes a
// path remote.
func (src *Source) parseRsync(p string) error {
	if rest, ok := strings.CutPrefix(p, "rsync://"); ok {
		p = "//" + rest
	}
	for _, part := range strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == ':' || r == '@' }) {
		if strings.HasPrefix(part, "-") {
			return invalid(src.Location, "no part may start with '-'")
		}
	}
	src.setFile(p[strings.LastIndexAny(p, "/:")+1:])
	if rest, ok := strings.CutPrefix(p, "//"); ok {
		host, modulePath, _ := strings.Cut(rest, "/")
		return src.setDaemon(host, modulePath)
	}
	colon := strings.IndexByte(p, ':')
	if slash := strings.IndexByte(p, '/'); colon < 0 || slash >= 0 && slash < colon {
		src.Kind, src.Path = SourceLocal, p
		return nil
	}
	host, remote := p[:colon], p[colon+1:]
	if modulePath, ok := strings.CutPrefix(remote, ":"); ok {
		return src.setDaemon(host, modulePath)
	}
	src.Kind, src.Path = SourceShell, p
	return src.checkRemote(host, remote)
}

func (src *Source) setDaemon(host, modulePath string) error {
	if module, file, ok := strings.Cut(modulePath, "/"); !ok || module == "" || file == "" {
		return invalid(src.Location, "module and path are missing after the host")
	}
	src.Kind, src.Path = SourceDaemon, "rsync://"+host+"/"+modulePath
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && (port == "" || strings.Trim(port, "0123456789") != "") {
		return invalid(src.Location, "the port is not a number, or credentials stand in a task")
	}
	return src.checkRemote(name, modulePath)
}

// checkRemote keeps away what a remote shell or rsync's own globbing would
// interpret.
func (src *Source) checkRemote(host, remote string) error {
	user, name, hasUser := strings.Cut(host, "@")
	if !hasUser {
		user, name = "", host
	}
	if name == "" || hasUser && user == "" || strings.TrimFunc(user+name, isPlain) != "" {
		return invalid(src.Location, "the host is missing or holds other than letters, digits, '.', '-' and '_'")
	}
	if first, _, _ := strings.Cut(remote, "/"); strings.Contains(first, "@") {
		return invalid(src.Location, "credentials belong into the worker's configuration, not into a task")
	}
	if strings.ContainsAny(remote, "*?[]{}()<>|&;$`'\"\\! \t") {
		return invalid(src.Location, "a remote path may hold no blanks, quotes, wildcards or shell characters")
	}
	return nil
}

// isPlain says whether a host or user name may hold r.
func isPlain(r rune) bool {
	return r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func (src *Source) setFile(name string) {
	src.File, src.Format = name, formatOf(name)
}

func invalid(source, why string) error {
	return fmt.Errorf("%w: '%s': %s", ErrInvalidSource, redact(source), why)
}

// redact makes a source printable, without what may be credentials, also one that
// cannot be parsed.
func redact(s string) string { return clean.Line(clean.Source(s), maxShown) }

// SourceFormat is how a fetched file becomes a program directory.
type SourceFormat string

// The supported formats; their values are the canonical endings.
const (
	FormatScript SourceFormat = "run.sh"
	FormatTar    SourceFormat = ".tar"
	FormatTarGz  SourceFormat = ".tar.gz"
	FormatTarBz2 SourceFormat = ".tar.bz2"
	FormatTarXz  SourceFormat = ".tar.xz"
	FormatTarZst SourceFormat = ".tar.zst"
	FormatZip    SourceFormat = ".zip"
)

var endings = []struct {
	ending string
	format SourceFormat
}{
	{".tar", FormatTar},
	{".tar.gz", FormatTarGz}, {".tgz", FormatTarGz},
	{".tar.bz", FormatTarBz2}, {".tar.bz2", FormatTarBz2},
	{".tar.xz", FormatTarXz}, {".tar.zst", FormatTarZst},
	{".zip", FormatZip},
}

// formatOf finds the format by a file's name; empty if there is none.
func formatOf(file string) SourceFormat {
	if file == string(FormatScript) {
		return FormatScript
	}
	lower := strings.ToLower(file)
	for _, e := range endings {
		if strings.HasSuffix(lower, e.ending) && len(file) > len(e.ending) {
			return e.format
		}
	}
	return ""
}

func endingList() string {
	names := make([]string, 0, len(endings)+1)
	for _, e := range endings {
		names = append(names, e.ending)
	}
	return strings.Join(append(names, "/run.sh"), " ")
}

// destination is where files go.
func destination(field func(*Spec) *string) kind {
	return bind(kind{name: "text", parse: func(s string) (string, error) {
		if s == "" {
			return "", nil
		}
		to, err := ParseDestination(s)
		if err != nil {
			_, why, _ := strings.Cut(err.Error(), "': ")
			return "", bad("", redact(s), "a destination: "+why)
		}
		return to.Location, nil
	}}, field, itself, itself)
}

// stdin is a text that names some bytes.
func stdin(field func(*Spec) *string) kind {
	return bind(kind{name: "text", parse: func(s string) (string, error) {
		file, here := strings.CutPrefix(s, FilePrefix)
		hash, kept := strings.CutPrefix(s, blobPrefix)
		switch {
		case s == "", here && file != "" && len(s) <= maxSourceBytes && !strings.ContainsRune(s, 0):
			return s, nil
		case kept && isSHA256(hash):
			return BlobSource(strings.ToLower(hash)), nil
		}
		return "", bad("", clean.Line(s, maxShown), "file:PATH, a file where the task is opened, or blob:sha256=HEX, what Redis keeps")
	}}, field, itself, itself)
}
