package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"

	"github.com/tdf-go/tdf/internal/base/disk"
)

// Limits of the file system that are not worth an option.
const (
	maxPathBytes = 4096
	maxNameBytes = 255
)

// tree writes the entries of one archive below root. Symbolic links are made
// last, so nothing is ever written through one.
type tree struct {
	root   *os.Root
	budget *budget
	// kinds holds every name taken so far, also the directories implied by
	// longer names: a file, a link and a directory never share one.
	kinds map[string]kind
	links []symlink
}

type kind byte

const (
	kindDir kind = iota + 1
	kindFile
	kindSymlink
)

type symlink struct{ name, target string }

func newTree(root *os.Root, b *budget) *tree {
	return &tree{root: root, budget: b, kinds: map[string]kind{".": kindDir}}
}

// cleanName normalises an entry's name or says why it is refused.
func (t *tree) cleanName(name string) (string, error) {
	switch {
	case name == "" || len(name) > maxPathBytes:
		return "", refused(name, fmt.Sprintf("has an empty name or one longer than %d bytes", maxPathBytes))
	case strings.HasPrefix(name, "/"):
		return "", refused(name, "has an absolute name")
	case strings.ContainsRune(name, '\\') || strings.ContainsFunc(name, unicode.IsControl):
		return "", refused(name, "has a backslash or a control character in its name")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", refused(name, "has '..' in its name")
		}
		if len(part) > maxNameBytes {
			return "", refused(name, fmt.Sprintf("has a name longer than %d bytes", maxNameBytes))
		}
	}
	clean := path.Clean(name)
	if strings.Count(clean, "/") > t.budget.opts.maxDepth {
		return "", &limitError{of: limitDepth, most: int64(t.budget.opts.maxDepth), where: name}
	}
	if strings.HasPrefix(clean, disk.Reserved) {
		return "", refused(name, "has a name at the top that begins with "+disk.Reserved+", as TDF's own files do")
	}
	return clean, nil
}

// claim takes a name for a file or link and makes the directories above it.
func (t *tree) claim(name string, k kind) (string, error) {
	clean, err := t.cleanName(name)
	if err != nil {
		return "", err
	}
	if t.kinds[clean] != 0 {
		return "", refused(name, "is there twice")
	}
	if err := t.makeDirs(path.Dir(clean), name); err != nil {
		return "", err
	}
	t.kinds[clean] = k
	return clean, nil
}

func (t *tree) makeDirs(dir, name string) error {
	switch t.kinds[dir] {
	case kindDir:
		return nil
	case 0:
		if err := t.makeDirs(path.Dir(dir), name); err != nil {
			return err
		}
		t.kinds[dir] = kindDir
		return t.root.Mkdir(dir, 0o755)
	default:
		return refused(name, "lies below a name that is not a directory")
	}
}

// addDir makes a directory; archives may name one twice.
func (t *tree) addDir(name string) error {
	clean, err := t.cleanName(name)
	if err != nil {
		return err
	}
	return t.makeDirs(clean, name)
}

// addFile writes a regular file as 0755 or 0644, less the umask.
func (t *tree) addFile(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	if mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return refused(name, "is setuid or setgid")
	}
	clean, err := t.claim(name, kindFile)
	if err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	return t.writeFile(ctx, clean, perm, content)
}

// writeFile copies until the limits and makes the content durable.
func (t *tree) writeFile(ctx context.Context, name string, perm fs.FileMode, r io.Reader) error {
	file, err := t.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	var size int64
	err = copyContext(ctx, file, readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if size += int64(n); size > t.budget.opts.MaxFileBytes {
			return 0, &limitError{of: limitFileBytes, most: t.budget.opts.MaxFileBytes, where: name}
		}
		if limit := t.budget.addBytes(n); limit != nil {
			return 0, limit
		}
		return n, err
	}))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// addSymlink notes a relative link. '..' may stand only at the start of its
// target: it then counts from the link's real directory, and what follows
// goes down, at most through links checked the same way.
func (t *tree) addSymlink(name, target string) error {
	clean, err := t.claim(name, kindSymlink)
	if err == nil {
		err = checkTarget(clean, target)
	}
	if err == nil {
		t.links = append(t.links, symlink{clean, target})
	}
	return err
}

// checkTarget refuses a target that may lead outside, of a link of that name.
func checkTarget(name, target string) error {
	if target == "" || len(target) > maxPathBytes || path.IsAbs(target) ||
		strings.ContainsFunc(target, unicode.IsControl) {
		return refused(name, "is a link with an absolute or unusable target")
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == ".." && down:
			return refused(name, "is a link with '..' inside its target")
		case part == "..":
			up++
		case part != "" && part != ".":
			down = true
		}
	}
	if up > strings.Count(name, "/") {
		return refused(name, "is a link that leads outside")
	}
	return nil
}

// addHardLink links to a regular file of this archive that is already there.
func (t *tree) addHardLink(name, target string) error {
	old, err := t.cleanName(target)
	if err != nil {
		return err
	}
	if t.kinds[old] != kindFile {
		return refused(name, "is a hard link, but not to an earlier file of the archive")
	}
	clean, err := t.claim(name, kindFile)
	if err != nil {
		return err
	}
	return t.root.Link(old, clean)
}

// makeLinks makes the noted links and lets the system resolve each of them:
// os.Root refuses what leads outside, and loops fail. A link to nothing stays.
func (t *tree) makeLinks() error {
	for _, l := range t.links {
		if err := t.root.Symlink(l.target, l.name); err != nil {
			return err
		}
	}
	for _, l := range t.links {
		if _, err := t.root.Stat(l.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return refused(l.name, "is a link that leads outside or into a circle")
		}
	}
	return nil
}
