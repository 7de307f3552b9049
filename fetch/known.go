package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Hash returns the SHA-256, as lower-case hex, of the file an installed program
// was made from, as its manifest has it; empty for a program without one, which
// was put there by hand or is not there. The program is not read: asked before
// each round, it costs one look at the manifest's inode.
func (f *Fetcher) Hash(program string) (string, error) {
	if err := ValidProgram(program); err != nil {
		return "", err
	}
	dir := filepath.Join(f.opts.Dir, program)
	info, err := os.Stat(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at manifest: %w", err)
	}
	m, err := f.known(program, info)
	if err != nil || m == nil {
		return "", err
	}
	return m.SHA256, nil
}

// known is the manifest whose file is info, nil for a copy of another program's.
func (f *Fetcher) known(program string, info os.FileInfo) (*manifest, error) {
	if m := f.manifests.get(program, info); m != nil {
		return m, nil
	}
	m, found, err := readManifest(filepath.Join(f.opts.Dir, program), program)
	if err != nil || !found {
		return nil, err
	}
	f.manifests.put(program, info, m)
	return m, nil
}

// manifests remembers those of installed programs as long as they are the same
// files: an installation replaces the whole directory.
type manifests struct {
	mu    sync.Mutex
	known map[string]knownManifest
}

type knownManifest struct {
	file os.FileInfo
	*manifest
}

func newManifests() *manifests { return &manifests{known: map[string]knownManifest{}} }

func (m *manifests) get(program string, file os.FileInfo) *manifest {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[program]
	if !ok || !os.SameFile(k.file, file) || !k.file.ModTime().Equal(file.ModTime()) {
		return nil
	}
	return k.manifest
}

func (m *manifests) put(program string, file os.FileInfo, known *manifest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[program] = knownManifest{file, known}
}
