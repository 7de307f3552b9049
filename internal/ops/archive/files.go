package archive

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/disk"
)

// Modes of what is made: tasks may hold what is not for everybody. A directory that is there already keeps its own mode, so that
// an operator may let a group read.
const (
	dirMode  = 0o700
	fileMode = 0o640
)

// segmentName finds the namespace in the name of a segment, and whether that still grows.
var segmentName = regexp.MustCompile(`^(.+)-\d{8}T\d{6}Z-[0-9a-f]{8}\.jsonl\.zst(\.part)?$`)

// newName is the name of a segment that begins now.
func newName(namespace string, now time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return fmt.Sprintf("%s-%s-%x.jsonl.zst", namespace, now.UTC().Format("20060102T150405Z"), random)
}

// names are the segments and parts of a namespace in a directory, by name; the order is that in which they were begun.
func names(dir, namespace string) (segments, parts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		switch found := segmentName.FindStringSubmatch(e.Name()); {
		case found == nil || found[1] != namespace:
		case found[2] == "":
			segments = append(segments, e.Name())
		default:
			parts = append(parts, e.Name()[:len(e.Name())-len(partEnd)])
		}
	}
	return segments, parts, nil
}

// Namespaces are those of which there are segments in a directory, in order.
func Namespaces(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if found := segmentName.FindStringSubmatch(e.Name()); found != nil {
			all = append(all, found[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// removed removes a file that need not be there.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock takes the lock of a part, and reports whether it was free and the file is still the one of that name: it may have been
// sealed or removed meanwhile.
func lock(f *os.File) (mine bool, err error) {
	if err := disk.Lock(f); errors.Is(err, disk.ErrLocked) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return inPlace(f)
}

// inPlace reports whether the file is the one that its name stands for.
func inPlace(f *os.File) (bool, error) {
	there, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mine, err := f.Stat()
	return err == nil && os.SameFile(there, mine), err
}

// Manifest says what is in a segment.
type Manifest struct {
	// Format is [Version].
	Format    int    `json:"format"`
	Namespace string `json:"namespace"`
	// Segment is the name of the file, SHA256 the checksum of it in hex, Bytes its size and Uncompressed that of the lines.
	Segment      string `json:"segment"`
	SHA256       string `json:"sha256"`
	Bytes        int64  `json:"bytes"`
	Uncompressed int64  `json:"uncompressed_bytes"`

	Counts

	// Cut is how many bytes behind the last whole frame were cut off, because the writer had died while it wrote.
	Cut int64 `json:"cut_bytes,omitempty"`
	// Sealed is when the manifest was written, in UTC, and TDF the version of the program that did.
	Sealed time.Time `json:"sealed"`
	TDF    string    `json:"tdf"`
}

// Counts are the records of a segment.
type Counts struct {
	Records int64 `json:"records"`
	FirstID int64 `json:"first_id"`
	LastID  int64 `json:"last_id"`
	// Oldest and Newest are when the first and the last of its tasks were archived, as texts of Redis.
	Oldest   string           `json:"oldest"`
	Newest   string           `json:"newest"`
	Outcomes map[string]int64 `json:"outcomes"`
}

// add counts a record.
func (c *Counts) add(h *Head) {
	if c.Records == 0 {
		c.FirstID, c.LastID, c.Oldest, c.Newest, c.Outcomes = h.ID, h.ID, h.Archived, h.Archived, map[string]int64{}
	}
	c.Records++
	c.Outcomes[h.Outcome]++
	c.FirstID, c.LastID = min(c.FirstID, h.ID), max(c.LastID, h.ID)
	if at := h.ArchivedAt(); at < moment(c.Oldest) {
		c.Oldest = h.Archived
	} else if at > moment(c.Newest) {
		c.Newest = h.Archived
	}
}

// The ends of the names of files.
const (
	manifestEnd = ".manifest.json"
	partEnd     = ".part"
)

// write puts the manifest beside the segment, whole and on the disk.
func (m *Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", m.Segment, err)
	}
	return disk.WriteFile(filepath.Join(dir, m.Segment+manifestEnd), append(text, '\n'), fileMode)
}

// readManifest reads the manifest of a segment; nil if there is none.
func readManifest(path string) (*Manifest, error) {
	text, err := os.ReadFile(path + manifestEnd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // none
	}
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, &DamageError{Path: path + manifestEnd, Problem: "is no manifest: " + err.Error(), Remedy: resealRemedy(path)}
	}
	if m.Format > Version {
		problem := fmt.Sprintf("has format %d, and this program knows none above %d", m.Format, Version)
		return nil, &DamageError{Path: path + manifestEnd, Problem: problem, Remedy: "use a newer TDF"}
	}
	return &m, nil
}

// Range is the ids from the first to the last, both included.
type Range [2]int64

// before is what a directory does not have because it had left Redis when the directory was begun.
type before struct {
	Format    int     `json:"format"`
	Namespace string  `json:"namespace"`
	Epoch     int64   `json:"epoch"`
	Purged    []Range `json:"purged"`
}

const beforeEnd = ".before.json"

func beforeName(namespace string, epoch int64) string {
	return namespace + "-" + strconv.FormatInt(epoch, 10) + beforeEnd
}

// Begin notes which tasks had left Redis before anything of them was written to the directory. epoch is the one in which the ids
// of the namespace began. Only the first note of it counts; purged is asked then.
func Begin(dir, namespace string, epoch int64, purged func() ([]Range, error)) error {
	name := beforeName(namespace, epoch)
	if _, err := readBefore(filepath.Join(dir, name)); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ids, err := purged()
	if err != nil {
		return err
	}
	text, err := json.Marshal(before{Format: Version, Namespace: namespace, Epoch: epoch, Purged: append([]Range{}, ids...)})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return disk.WriteFile(filepath.Join(dir, name), append(text, '\n'), fileMode)
}

// Before are the ids that had left Redis before the directory was begun; none where nobody noted it.
func Before(dir, namespace string, epoch int64) ([]Range, error) {
	b, err := readBefore(filepath.Join(dir, beforeName(namespace, epoch)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b.Purged, err
}

func readBefore(path string) (b before, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		problem := "does not say what had left Redis before: " + strings.TrimSpace(err.Error())
		return b, &DamageError{Path: path, Problem: problem, Remedy: "restore it from a backup"}
	}
	return b, nil
}

// DamageError says what is wrong with a file of an archive. The rest of the file is read.
type DamageError struct {
	Path string
	// Problem goes on after the path, Remedy says what to do.
	Problem, Remedy string
}

// Error implements error.
func (e *DamageError) Error() string { return fmt.Sprintf("%s %s; %s", e.Path, e.Problem, e.Remedy) }

// restoreRemedy is for a segment that has lost something.
const restoreRemedy = "restore it from a backup; what can be read of it is read"

// resealRemedy is for a segment without a manifest that can be relied on.
func resealRemedy(path string) string {
	return fmt.Sprintf("restore it from a backup; or, if zstd -t finds the segment whole, rename that to %s%s: "+
		"the next server or export that uses the directory seals it again", path, partEnd)
}
