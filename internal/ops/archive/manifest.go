package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/statemachine"
)

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

// merge adds those of another batch.
func (c *Counts) merge(o *Counts) {
	if c.Records == 0 || o.Records == 0 {
		if c.Records == 0 {
			*c = *o
		}
		return
	}
	c.Records += o.Records
	c.FirstID, c.LastID = min(c.FirstID, o.FirstID), max(c.LastID, o.LastID)
	if moment(o.Oldest) < moment(c.Oldest) {
		c.Oldest = o.Oldest
	}
	if moment(o.Newest) > moment(c.Newest) {
		c.Newest = o.Newest
	}
	for outcome, n := range o.Outcomes {
		c.Outcomes[outcome] += n
	}
}

func moment(text string) statemachine.Time {
	h := Head{Archived: text}
	return h.ArchivedAt()
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
