package fetch

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// maxSourceBytes bounds a source; longer ones are refused.
const maxSourceBytes = 2048

const (
	rsyncPrefix = "rsync:"
	pinPrefix   = "#sha256="
)

// Kind is the way a source is transferred.
type Kind string

// The kinds of sources.
const (
	KindHTTP   Kind = "http"   // http:// and https://
	KindLocal  Kind = "local"  // rsync:PATH, copied without the rsync program
	KindShell  Kind = "ssh"    // rsync:[USER@]HOST:PATH
	KindDaemon Kind = "daemon" // rsync://HOST[:PORT]/MODULE/PATH, rsync:HOST::MODULE/PATH
)

// Source is a parsed source.
type Source struct {
	Kind Kind
	// Location is the source without its pin.
	Location string
	// Path is what is handed to HTTP client, rsync or the file system.
	Path string
	// File is the last part of the path, or of the query where the path names no
	// file. It may hold credentials then; messages have shown.
	File string
	// Format says how File is unpacked.
	Format Format
	// SHA256 is the pinned hash of the file as lower-case hex, or empty.
	SHA256 string
}

// shown is the name of the file for messages.
func (src *Source) shown() string {
	if before, _, _ := strings.Cut(src.Location, "?"); src.Kind == KindHTTP && formatOf(path.Base(before)) == "" {
		return "the file" // its name comes from the query
	}
	return printable(src.File)
}

// ParseSource parses a task's source: an http:// or https:// URL, rsync:PATH
// or rsync://HOST/MODULE/PATH, ending in run.sh or one of the archive endings,
// and an optional #sha256=HEX that pins the file's content. Errors match
// [ErrInvalidSource] or [ErrInvalidType] and never repeat credentials.
func ParseSource(s string) (Source, error) {
	if err := checkText(s); err != nil {
		return Source{}, err
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
		err = invalid(s, "use http://, https://, rsync:PATH or rsync://HOST/MODULE/PATH")
	}
	if err != nil {
		return Source{}, err
	}
	if src.Format == "" {
		return Source{}, fmt.Errorf("%w: %s: use one of %s", ErrInvalidType, redact(s), endingList())
	}
	return src, nil
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
	pin, ok := strings.CutPrefix(s[i:], pinPrefix)
	if raw, err := hex.DecodeString(pin); !ok || err != nil || len(raw) != 32 {
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
	src.Kind, src.Path = KindHTTP, src.Location
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
		src.Kind, src.Path = KindLocal, p
		return nil
	}
	host, remote := p[:colon], p[colon+1:]
	if modulePath, ok := strings.CutPrefix(remote, ":"); ok {
		return src.setDaemon(host, modulePath)
	}
	src.Kind, src.Path = KindShell, p
	return src.checkRemote(host, remote)
}

func (src *Source) setDaemon(host, modulePath string) error {
	if module, file, ok := strings.Cut(modulePath, "/"); !ok || module == "" || file == "" {
		return invalid(src.Location, "module and path are missing after the host")
	}
	src.Kind, src.Path = KindDaemon, "rsync://"+host+"/"+modulePath
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
func redact(s string) string { return printable(clean.Source(s)) }

// Format is how a fetched file becomes a program directory.
type Format string

// The supported formats; their values are the canonical endings.
const (
	FormatScript Format = "run.sh"
	FormatTar    Format = ".tar"
	FormatTarGz  Format = ".tar.gz"
	FormatTarBz2 Format = ".tar.bz2"
	FormatTarXz  Format = ".tar.xz"
	FormatTarZst Format = ".tar.zst"
	FormatZip    Format = ".zip"
)

var endings = []struct {
	ending string
	format Format
}{
	{".tar", FormatTar},
	{".tar.gz", FormatTarGz}, {".tgz", FormatTarGz},
	{".tar.bz", FormatTarBz2}, {".tar.bz2", FormatTarBz2},
	{".tar.xz", FormatTarXz}, {".tar.zst", FormatTarZst},
	{".zip", FormatZip},
}

// formatOf finds the format by a file's name; empty if there is none.
func formatOf(file string) Format {
	if file == runFile {
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
