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
	if hash, ok := f.hashes.get(program, info); ok {
		return hash, nil
	}
	m, found, err := readManifest(dir, program)
	if err != nil || !found {
		return "", err
	}
	f.hashes.put(program, info, m.SHA256)
	return m.SHA256, nil
}

// hashes remembers the hashes of installed programs as long as their manifests
// are the same files: an installation replaces the whole directory.
type hashes struct {
	mu    sync.Mutex
	known map[string]knownHash
}

type knownHash struct {
	manifest os.FileInfo
	hash     string
}

func newHashes() *hashes { return &hashes{known: map[string]knownHash{}} }

func (h *hashes) get(program string, manifest os.FileInfo) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.known[program]
	if !ok || !os.SameFile(k.manifest, manifest) || !k.manifest.ModTime().Equal(manifest.ModTime()) {
		return "", false
	}
	return k.hash, true
}

func (h *hashes) put(program string, manifest os.FileInfo, hash string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[program] = knownHash{manifest, hash}
}
