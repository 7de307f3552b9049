package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mholt/archiver/v4"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// hostile are entries no archive may hold; each is tried in every format.
var hostile = map[string][]entry{
	"dotdot":          {{name: "../evil", body: "x", mode: 0o644}},
	"dotdot inside":   {{name: "a/../../evil", body: "x", mode: 0o644}},
	"dotdot harmless": {{name: "a/../evil", body: "x", mode: 0o644}},
	"dotdot dir":      {{name: "../evil/", typ: tar.TypeDir, mode: 0o755}},
	"absolute":        {{name: "/tmp/evil", body: "x", mode: 0o644}},
	"backslash":       {{name: `..\evil`, body: "x", mode: 0o644}},
	"newline":         {{name: "a\nb", body: "x", mode: 0o644}},
	"manifest":        {{name: "./" + manifestFile, body: "{}", mode: 0o644}},
	"reserved":        {{name: disk.Reserved + "control", body: "result=1", mode: 0o644}},
	"below manifest":  {{name: manifestFile + "/x", body: "{}", mode: 0o644}},
	"setuid":          {{name: "su", body: "x", mode: 0o4755}},
	"fifo":            {{name: "fifo", typ: tar.TypeFifo, mode: 0o644}},
	"device":          {{name: "null", typ: tar.TypeChar, mode: 0o644}},
	"twice":           {{name: "a", body: "x", mode: 0o644}, {name: "./a", body: "y", mode: 0o644}},
	"file as dir":     {{name: "a", body: "x", mode: 0o644}, {name: "a/b", body: "y", mode: 0o644}},
	"dir as file":     {{name: "a/b", body: "x", mode: 0o644}, {name: "a", body: "y", mode: 0o644}},
	"absolute link":   {{name: "l", typ: tar.TypeSymlink, link: "/etc", mode: 0o777}},
	"escaping link":   {{name: "d/l", typ: tar.TypeSymlink, link: "../../evil", mode: 0o777}},
	"link to parent":  {{name: "l", typ: tar.TypeSymlink, link: "..", mode: 0o777}},
	"write through link": {{name: "l", typ: tar.TypeSymlink, link: "lib", mode: 0o777},
		{name: "l/x", body: "x", mode: 0o644}},
	"file over link": {{name: "l", typ: tar.TypeSymlink, link: "run.sh", mode: 0o777}, {name: "l", body: "x", mode: 0o644}},
	"links in concert": {{name: "d/s", typ: tar.TypeSymlink, link: "..", mode: 0o777},
		{name: "t", typ: tar.TypeSymlink, link: "d/s/../evil", mode: 0o777}},
	"circle":    {{name: "a", typ: tar.TypeSymlink, link: "b", mode: 0o777}, {name: "b", typ: tar.TypeSymlink, link: "a", mode: 0o777}},
	"long name": {{name: strings.Repeat("x", 256), body: "x", mode: 0o644}},
	"long path": {{name: strings.Repeat("xx/", 1500) + "x", body: "x", mode: 0o644}},
}

// hostileTar are those only tar can express.
var hostileTar = map[string][]entry{
	"hard link outside":   {{name: "h", typ: tar.TypeLink, link: "../../../etc/passwd"}},
	"hard link absolute":  {{name: "h", typ: tar.TypeLink, link: "/etc/passwd"}},
	"hard link to link":   {{name: "l", typ: tar.TypeSymlink, link: "run.sh"}, {name: "h", typ: tar.TypeLink, link: "l"}},
	"hard link to nobody": {{name: "h", typ: tar.TypeLink, link: "later"}, {name: "later", body: "x"}},
	"setgid":              {{name: "sg", body: "x", mode: 0o2755}},
	"block device":        {{name: "b", typ: tar.TypeBlock, mode: 0o644}},
	"contiguous":          {{name: "c", typ: tar.TypeCont, mode: 0o644}},
}

func TestHostileArchives(t *testing.T) {
	t.Parallel()
	for name, entries := range hostile {
		for format, data := range allFormats(t, append(entries, goodEntries()...)) {
			t.Run(name+string(format), func(t *testing.T) { t.Parallel(); refuse(t, format, data) })
		}
	}
	for name, entries := range hostileTar {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse(t, task.FormatTar, tarBytes(t, append(goodEntries(), entries...)))
		})
	}
}

// refuse checks that an archive is refused with a typed error fit for a log
// and that nothing at all was written by it.
func refuse(t *testing.T, format task.SourceFormat, data []byte) {
	t.Helper()
	o := testOptions(t)
	err := ensureLocal(t, o, format, data)
	if !errors.Is(err, errArchive) && !errors.Is(err, ErrLimit) {
		t.Errorf("not refused: %v", err)
	} else if strings.ContainsAny(err.Error(), "\n\x00\x1b") {
		t.Errorf("unfit for a log: %q", err)
	}
	nothingInstalled(t, o)
}

func ensureLocal(t testing.TB, o Options, format task.SourceFormat, data []byte) error {
	t.Helper()
	f, err := New(o)
	noErr(t, err)
	defer f.Close()
	write(t, filepath.Join(o.WorkDir, "p"+string(format)), data, 0o644)
	_, err = f.Ensure(t.Context(), "p", "rsync:p"+string(format), nil)
	return err
}

func TestHarmlessArchives(t *testing.T) {
	t.Parallel()
	entries := append([]entry{
		{name: "./", typ: tar.TypeDir, mode: 0o755}, {name: "lib/", typ: tar.TypeDir, mode: 0o2775},
		{name: "bin/deep/x", body: "x", mode: 0o600},
		{name: "bin/l", typ: tar.TypeSymlink, link: "../lib/data.txt", mode: 0o777},
		{name: "dangling", typ: tar.TypeSymlink, link: "lib/later", mode: 0o777},
		{name: "..x/...", body: "x", mode: 0o777},
	}, goodEntries()...)
	for format, data := range allFormats(t, entries) {
		o := testOptions(t)
		noErr(t, ensureLocal(t, o, format, data))
		dir := filepath.Join(o.Dir, "p", sum(data))
		if text, err := os.ReadFile(filepath.Join(dir, "bin/l")); err != nil || len(text) != 3000 {
			t.Errorf("%s: link: %v", format, err)
		}
		checkTree(t, dir)
		if fi, err := os.Stat(filepath.Join(dir, "lib")); err != nil || fi.Mode() != fs.ModeDir|0o755 {
			t.Errorf("%s: lib is %v, %v", format, fi.Mode(), err)
		}
	}
	o := testOptions(t)
	links := tarBytes(t, []entry{{name: "bin/real", body: script, mode: 0o755},
		{name: "run.sh", typ: tar.TypeSymlink, link: "bin/real"}, {name: "same", typ: tar.TypeLink, link: "./bin/real"}})
	noErr(t, ensureLocal(t, o, task.FormatTar, links))
	runProgram(t, filepath.Join(o.Dir, "p", sum(links)))
}

// Bombs are stopped by what they unpack to.
func TestLimits(t *testing.T) {
	t.Parallel()
	var many, deep []entry
	for i := range 200 {
		many = append(many, entry{name: fmt.Sprintf("f%d", i), mode: 0o644})
	}
	deep = append(deep, entry{name: strings.Repeat("d/", 20) + "x", mode: 0o644})
	zeros := []entry{{name: "zeros", body: strings.Repeat("\x00", 1<<20), mode: 0o644}}
	const unpacked = "unpacks to more than 10000 bytes: raise [worker] fetch_max_bytes"
	for text, c := range map[string]struct {
		entries []entry
		set     func(*Options)
	}{
		"fetch_max_file_bytes":                  {goodEntries(), func(o *Options) { o.MaxFileBytes = 1000 }},
		unpacked:                                {zeros, func(o *Options) { o.MaxBytes = 10_000 }},
		"fetch_max_entries":                     {many, func(o *Options) { o.MaxEntries = 100 }},
		"directories are more than 10 deep in ": {deep, func(o *Options) { o.maxDepth = 10 }},
		"the file is larger than 100 bytes: raise [worker] fetch_max_bytes": {goodEntries(), func(o *Options) { o.MaxBytes = 100 }},
	} {
		for format, data := range allFormats(t, c.entries) {
			if text == unpacked && format == task.FormatTar { // it is larger than what is in it
				continue
			}
			o := testOptions(t)
			c.set(&o)
			err := ensureLocal(t, o, format, data)
			wantErr(t, err, ErrLimit, text)
			nothingInstalled(t, o)
		}
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	big := []entry{{name: "zeros", body: strings.Repeat("\x00", 11<<20), mode: 0o644}}
	plain := tarBytes(t, big)
	for format, data := range map[task.SourceFormat][]byte{
		task.FormatTarGz: compress(t, archiver.Gz{}, plain), task.FormatTarBz2: compress(t, archiver.Bz2{}, plain),
		task.FormatTarZst: compress(t, archiver.Zstd{}, plain), task.FormatZip: zipBytes(t, big),
	} {
		o := testOptions(t)
		wantErr(t, ensureLocal(t, o, format, data), ErrLimit, "bombs")
		nothingInstalled(t, o)
		o = testOptions(t)
		o.maxRatio = 1 << 30
		wantErr(t, ensureLocal(t, o, format, data), ErrNotRunnable)
	}
}

func TestTarBombOfHeaders(t *testing.T) {
	t.Parallel()
	zeros := io.LimitReader(readerFunc(func(p []byte) (int, error) { clear(p); return len(p), nil }), 12<<20)
	padding, err := io.ReadAll(zeros)
	noErr(t, err)
	data := append(tarBytes(t, goodEntries()), padding...)
	o := testOptions(t)
	wantErr(t, ensureLocal(t, o, task.FormatTarGz, compress(t, archiver.Gz{}, data)), ErrLimit, "bombs")
	o = testOptions(t)
	o.MaxBytes, o.MaxEntries = 10_000, 10
	wantErr(t, ensureLocal(t, o, task.FormatTar, data), ErrLimit, "fetch_max_bytes")
	wantErr(t, ensureLocal(t, testOptions(t), task.FormatTar, append(tarBytes(t, goodEntries()), "more"...)), errArchive, "follow the end")
}

// A zip's directory is bounded before it is read into memory, entries that
// share bytes are refused, and so are encryption and rare methods.
func TestZipTricks(t *testing.T) {
	t.Parallel()
	var many []entry
	for i := range 1000 {
		many = append(many, entry{name: fmt.Sprintf("%0200d", i), mode: 0o644})
	}
	o := testOptions(t)
	o.MaxEntries = 10
	wantErr(t, ensureLocal(t, o, task.FormatZip, zipBytes(t, many)), ErrLimit, "fetch_max_entries", "directory")

	good := zipBytes(t, goodEntries())
	for text, change := range map[string]func([]byte, int){
		"encrypted":          func(z []byte, at int) { z[at+8] |= 1 },
		"compression method": func(z []byte, at int) { z[at+10] = 12 },
		"overlaps other":     func(z []byte, at int) { copy(z[at+20:], []byte{0xf0, 0xf0, 0, 0}) },
	} {
		data := bytes.Clone(good)
		change(data, bytes.Index(data, []byte("PK\x01\x02")))
		wantErr(t, ensureLocal(t, testOptions(t), task.FormatZip, data), errArchive, text)
	}
	var buf bytes.Buffer
	w := zip.NewWriter(&buf) // as packed on a system without modes
	f, err := w.Create("run.sh")
	noErr(t, err)
	_, err = io.WriteString(f, script)
	noErr(t, errors.Join(err, w.Close()))
	wantErr(t, ensureLocal(t, testOptions(t), task.FormatZip, buf.Bytes()), ErrNotRunnable, "chmod +x")
}

// G3: truncated archives are never installed.
func TestTruncatedArchives(t *testing.T) {
	t.Parallel()
	for format, data := range allFormats(t, goodEntries()) {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			lengths := map[int]bool{0: true, len(data) - 1: true, len(data) - 512: true, len(data) - 1024: true, len(data) - 1025: true}
			for i := range 20 {
				lengths[len(data)*i/20] = true
			}
			for n := range lengths {
				if n >= 0 {
					refuse(t, format, data[:n])
				}
			}
		})
	}
}

// A flipped bit is found, or it changed nothing that counts. Plain tar has no
// checksum of contents: there only a pin can tell.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	for format, data := range allFormats(t, goodEntries()) {
		if format == task.FormatTar {
			continue
		}
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			for i := 0; i < len(data); i += max(1, len(data)/60) {
				flipped := bytes.Clone(data)
				flipped[i] ^= 1 << (i % 8)
				root := openRoot(t)
				if unpackBytes(t, root, flipped, format) != nil || runnable(root.FS(), "p") != nil {
					continue
				}
				text, err := fs.ReadFile(root.FS(), "lib/data.txt")
				if err == nil && len(text) != 3000 {
					t.Errorf("bit %d of byte %d: damage went unseen", i%8, i)
				}
			}
		})
	}
}

func TestWrongTypeForName(t *testing.T) {
	t.Parallel()
	archives := allFormats(t, goodEntries())
	for name := range archives {
		for format, data := range archives {
			if name != format {
				refuse(t, name, data)
			}
		}
	}
}

func openRoot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	noErr(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func unpackBytes(t testing.TB, root *os.Root, data []byte, format task.SourceFormat) error {
	t.Helper()
	o := DefaultOptions()
	o.MaxBytes, o.MaxFileBytes, o.MaxEntries = 4<<20, 1<<20, 500
	file, err := os.Open(write(t, filepath.Join(t.TempDir(), "a"), data, 0o600))
	noErr(t, err)
	defer file.Close()
	return unpackFile(context.Background(), root, file, format, &o)
}

func FuzzUnpack(f *testing.F) {
	formats := []task.SourceFormat{task.FormatTar, task.FormatTarGz, task.FormatTarBz2, task.FormatTarXz, task.FormatTarZst, task.FormatZip}
	for i, format := range formats {
		f.Add(byte(i), allFormats(f, goodEntries())[format])
		f.Add(byte(i), allFormats(f, hostile["links in concert"])[format])
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		dir := t.TempDir()
		noErr(t, os.Mkdir(filepath.Join(dir, "tree"), 0o755))
		root, err := os.OpenRoot(filepath.Join(dir, "tree"))
		noErr(t, err)
		defer root.Close()
		if err := unpackBytes(t, root, data, formats[int(which)%len(formats)]); err != nil && strings.Contains(err.Error(), "panicked") {
			t.Log(err)
		}
		checkContained(t, dir)
	})
}

// checkContained walks what was unpacked below dir/tree.
func checkContained(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Fatalf("written outside: %v, %v", entries, err)
	}
	noErr(t, filepath.WalkDir(filepath.Join(dir, "tree"), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if odd := fi.Mode() &^ (fs.ModeDir | fs.ModeSymlink | 0o777); odd != 0 {
			return fmt.Errorf("%s has mode %v", name, fi.Mode())
		}
		if to, err := filepath.EvalSymlinks(name); err == nil && to != name && !strings.HasPrefix(to, filepath.Join(dir, "tree")) {
			return fmt.Errorf("%s leads to %s", name, to)
		}
		return nil
	}))
}
