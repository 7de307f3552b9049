package verbs

import (
	"archive/tar"
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/task"
)

// folderNames gives each task a folder of its own.
type folderNames struct {
	pattern folderName
	tasks   []named
	ids     []int64 // sorted
	names   map[string]int64
}

// add notes what names the folder of a task.
func (f *folderNames) add(t *task.Task) { f.tasks = append(f.tasks, namedBy(t)) }

// complete names all folders, and refuses names that two tasks have.
func (f *folderNames) complete() error {
	slices.SortStableFunc(f.tasks, func(a, b named) int { return cmp.Compare(a.id, b.id) })
	f.names = make(map[string]int64, len(f.tasks))
	index := 0
	for i := range f.tasks {
		t := &f.tasks[i]
		if i == 0 || t.id != f.tasks[i-1].id { // an archive has several tasks of an id where the namespace was flushed
			index = i + 1
		}
		f.ids = append(f.ids, t.id)
		name, err := f.pattern.of(t, index)
		if err != nil {
			return err
		}
		if other, taken := f.names[name]; taken {
			return cli.Usagef("--name gives tasks %d and %d the same name, %q; add {id} or {index}", other, t.id, name)
		}
		f.names[name] = t.id
	}
	f.tasks = nil
	return nil
}

// of is the folder of a task.
func (f *folderNames) of(r *resultRow) (string, error) {
	i, _ := slices.BinarySearch(f.ids, r.ID)
	name, err := f.pattern.of(&r.named, i+1)
	if err == nil && f.names[name] != r.ID {
		err = fmt.Errorf("task %d came while others were read; try again", r.ID)
	}
	return name, err
}

// The modes of what is written, which the umask bounds.
const (
	folderMode = 0o777
	fileMode   = 0o666
)

// folderSink writes folders below a directory, and nothing elsewhere: a [os.Root] follows no link that leads out of it.
type folderSink struct {
	dir   string
	root  *os.Root
	names *folderNames
	read  returned.Read
	// draft is the folder that is being written.
	draft string
}

// newFolderSink opens the directory. Of what is to be written nothing may be there.
func newFolderSink(dir string, names *folderNames, read returned.Read) (resultSink, error) {
	if err := names.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("--dir: %w", err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("--dir: %w", err))
	}
	f := &folderSink{dir: dir, root: root, names: names, read: read, draft: ".tdf-" + rand.Text()}
	for _, name := range slices.Sorted(maps.Keys(names.names)) {
		id := names.names[name]
		_, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil:
			err = fmt.Errorf("--dir %s: %s, for task %d, exists; remove it, or name another directory", dir, name, id)
		default:
			err = fmt.Errorf("--dir %s: task %d: %w", dir, id, err)
		}
		return nil, errors.Join(cli.WithCode(cli.ExitUsage, err), root.Close())
	}
	return f, nil
}

// take writes a folder, which has its name when it is whole.
func (f *folderSink) take(r *resultRow) error {
	name, err := f.names.of(r)
	if err != nil {
		return err
	}
	if err = f.root.Mkdir(f.draft, folderMode); err != nil {
		return err
	}
	if err = r.write(f.read, f.add); err != nil {
		return fmt.Errorf("task %d: %w", r.ID, err)
	}
	if parent := path.Dir(name); parent != "." {
		err = f.root.MkdirAll(parent, folderMode)
	}
	if err == nil {
		err = f.root.Rename(f.draft, name)
	}
	return err
}

// add writes a file into the folder.
func (f *folderSink) add(name string, mode fs.FileMode, _ int64, content io.Reader) error {
	name = path.Join(f.draft, name)
	if err := f.root.MkdirAll(path.Dir(name), folderMode); err != nil {
		return err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode|mode&0o111)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// close leaves the folders that are whole.
func (f *folderSink) close(err error) error {
	if err == nil {
		return f.root.Close()
	}
	return errors.Join(remove.Tree(filepath.Join(f.dir, f.draft)), f.root.Close())
}

// tarSink writes the folders to a tar archive.
type tarSink struct {
	w     *tar.Writer
	out   *draftFile
	names *folderNames
	read  returned.Read
}

// newTarSink begins a file; - is out.
func newTarSink(out io.Writer, name string, names *folderNames, read returned.Read) (resultSink, error) {
	if err := names.complete(); err != nil {
		return nil, err
	}
	file, err := &draftFile{Writer: bufio.NewWriter(out)}, error(nil)
	if name != "-" {
		file, err = newDraft("--"+tarForm, name)
	}
	return &tarSink{tar.NewWriter(file), file, names, read}, err
}

func (t *tarSink) take(r *resultRow) error {
	name, err := t.names.of(r)
	if err != nil {
		return err
	}
	if err = t.w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: r.ended}); err != nil {
		return fmt.Errorf("tar: %w", err)
	}
	err = r.write(t.read, func(file string, mode fs.FileMode, size int64, content io.Reader) error {
		err := t.w.WriteHeader(&tar.Header{Name: path.Join(name, file), Mode: 0o644 | int64(mode&0o111), Size: size, ModTime: r.ended})
		if err == nil {
			_, err = io.Copy(t.w, content)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("tar: task %d: %w", r.ID, err)
	}
	return nil
}

// close ends the archive. One that is not whole has no end.
func (t *tarSink) close(err error) error {
	if err == nil {
		err = t.w.Close()
	}
	return t.out.close(err)
}

// folderName is a pattern of the names of folders, such as {word1}/{index}.
type folderName []namePart

// namePart is a text, or the field that stands in its place.
type namePart struct {
	text, field string
	word        int // the number of the word that the field is, from 1
}

// named is what names the folder of a task.
type named struct {
	id    int64
	key   string
	words []string
}

const nameFields = "{id}, {key}, {index}, {word1}, {word2} and so on"

// parseFolderName reads a pattern.
func parseFolderName(pattern string) (folderName, error) {
	refused := func(why string) error { return cli.Usagef("--name %q %s", pattern, why) }
	var name folderName
	var like strings.Builder // the name of some folder
	for rest := pattern; rest != ""; {
		text, after, open := strings.Cut(rest, "{")
		field, behind, closed := strings.Cut(after, "}")
		part := namePart{text: text, field: field}
		switch {
		case strings.Contains(text, "}") || open && !closed:
			return nil, refused("has a brace alone; it may have " + nameFields)
		case open && !part.known():
			return nil, refused("has {" + field + "}; it may have " + nameFields)
		}
		if like.WriteString(text); open {
			like.WriteString("x")
		}
		name, rest = append(name, part), behind
	}
	sample := like.String()
	if sample == "." || !fs.ValidPath(sample) || strings.ContainsAny(sample, "\\\x00") || !utf8.ValidString(sample) {
		return nil, refused("is no path below a directory; write a name such as {id}, or several with / between them")
	}
	if strings.HasPrefix(sample, ".") || strings.Contains(sample, "/.") {
		return nil, refused("has a name that begins with a dot; leave the dot out")
	}
	return name, nil
}

// known reports whether the field is one, and notes which word it is.
func (p *namePart) known() bool {
	digits, isWord := strings.CutPrefix(p.field, "word")
	n, err := strconv.Atoi(digits)
	if isWord && err == nil && n > 0 && digits == strconv.Itoa(n) {
		p.word = n
		return true
	}
	return p.field == "id" || p.field == keyField || p.field == indexField
}

const indexField = "index"

// mostNameBytes is the longest name that file systems have.
const mostNameBytes = 255

// of is the name of the folder of a task, which has that place in the selection.
func (f folderName) of(t *named, index int) (string, error) {
	var name strings.Builder
	for i := range f {
		p := &f[i]
		name.WriteString(p.text)
		if p.field == "" {
			continue
		}
		value := p.value(t, index)
		if value == "" {
			return "", cli.Usagef("--name has {%s}, and task %d has none; use {id} or {index}", p.field, t.id)
		}
		name.WriteString(escapeName(value))
	}
	for part := range strings.SplitSeq(name.String(), "/") {
		if len(part) > mostNameBytes {
			return "", cli.Usagef("--name gives task %d a name of %d bytes, of at most %d; use {id} or {index}", t.id, len(part), mostNameBytes)
		}
	}
	return name.String(), nil
}

func (p *namePart) value(t *named, index int) string {
	switch {
	case p.word > len(t.words):
		return ""
	case p.word > 0:
		return t.words[p.word-1]
	case p.field == keyField:
		return t.key
	case p.field == indexField:
		return strconv.Itoa(index)
	default:
		return strconv.FormatInt(t.id, 10)
	}
}

// escapeName makes a text a part of one name: what is no letter, digit or one of -_.,=+@ is written as %20, and so is a dot in
// front. Different texts stay different.
func escapeName(text string) string {
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		plain := unicode.In(r, unicode.L, unicode.M, unicode.Nd) || strings.ContainsRune("-_,=+@", r) || r == '.' && i > 0
		for _, c := range []byte(text[i : i+size]) {
			if plain {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
	}
	return b.String()
}
