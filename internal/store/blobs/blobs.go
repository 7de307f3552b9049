// Package blobs keeps bytes under their SHA-256, so that files travel with nothing
// but Redis: in parts of a bounded size, within a quota of the namespace. There are two
// families, what submitters upload and what rounds return. Uploads that nobody refers to
// leave, and returned files when their time is over (see [Blobs.Sweep]). Nothing here
// looks whether the bytes have that hash: every reader does, before it uses them.
package blobs

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/task"
)

//go:embed *.lua
var files embed.FS

// Scripts are those of this room.
var Scripts = conn.Scripts{Files: files, List: map[string]conn.Script{
	"blob":   {Libs: []string{conn.LibTypes}, Meta: []string{"blob_bytes", "blob_limit", "blob_quota", "return_retention"}, Writes: true},
	"unblob": {Libs: []string{conn.LibTypes}, Writes: true, Relieves: true},
}}

// Blobs is the room of blobs in one namespace.
type Blobs struct {
	*conn.Conn

	tasks *tasks.Tasks
}

// New makes the room on a connection.
func New(c *conn.Conn, t *tasks.Tasks) *Blobs { return &Blobs{Conn: c, tasks: t} }

const (
	// Part is how many bytes of a blob one key has, the last one fewer: none is so large that Redis is busy with
	// it for long.
	Part = 1 << 20
	// Lease is how long a blob stays at least after it was put, for tasks that are yet to be opened.
	Lease = 24 * time.Hour
	// defaultLimit is the most bytes of a blob, defaultQuota of all of them, where no server has published others.
	defaultLimit = 64 << 20
	defaultQuota = 1 << 30
	// spare is the part of Redis' memory that is kept back for what changes tasks.
	spare = 0.1
)

// PublishBlobs sets the limits for all who put blobs, and how long the files that rounds return are kept.
func (s *Blobs) PublishBlobs(ctx context.Context, limit, quota int64, retention time.Duration) error {
	// The last is not called file_...: redis-check-aof takes a log for its manifest where a line begins so.
	names := []string{"blob_limit", "blob_quota", "return_retention"}
	values := []int64{limit, quota, int64(retention / time.Second)}
	is, err := s.Redis.HMGet(ctx, s.Keys.Meta(), names...).Result()
	if err == nil && slices.Equal(values, []int64{conn.Reply(is).Number(0), conn.Reply(is).Number(1), conn.Reply(is).Number(2)}) {
		return nil
	}
	if err := s.Redis.HSet(ctx, s.Keys.Meta(), names[0], values[0], names[1], values[1], names[2], values[2]).Err(); err != nil {
		return s.Failed("publish", err)
	}
	return nil
}

// PutBlob keeps size bytes under their hash, which is in hex: for [Lease], and for as long as something refers to
// them. If they are there already, nothing is sent. The error matches [task.ErrNoRoom] if there is no room for them. After an
// error nothing of them stays.
func (s *Blobs) PutBlob(ctx context.Context, hash string, size int64, content io.ReaderAt) error {
	return s.put(ctx, blob{family: conn.Uploads, hash: hash}, size, content)
}

// PutFiles keeps what a round returns, as PutBlob does, for as long as servers have published ([server] file_retention). What
// nobody asked for is refused once half the quota is taken, so that it does not crowd out what somebody did ask for.
func (s *Blobs) PutFiles(ctx context.Context, hash string, size int64, content io.ReaderAt, asked bool) error {
	return s.put(ctx, blob{family: conn.Returned, hash: hash, unasked: !asked}, size, content)
}

// blob says which blob.
type blob struct {
	family conn.Family
	hash   string
	// after is the newest id before it was put: no older task can refer to it.
	after int64
	// unasked says that it may not take all of the quota.
	unasked bool
}

func (b blob) subject() conn.Subject { return conn.Subject{Family: b.family, Blob: b.hash} }

// stays is how long a blob is kept at least.
func (b blob) stays() time.Duration {
	if b.family == conn.Returned {
		return asPublished
	}
	return Lease
}

func (s *Blobs) put(ctx context.Context, b blob, size int64, content io.ReaderAt) (err error) {
	if b.family == conn.Uploads { // no task refers to returned files
		if b.after, err = s.tasks.LastID(ctx); err != nil {
			return err
		}
	}
	for {
		there, err := s.keep(ctx, b, size, b.stays(), "")
		if err != nil && ctx.Err() == nil && !errors.Is(err, task.ErrUnreachable) {
			return err // Redis has refused, and made nothing
		}
		if err == nil && !there {
			if err = s.write(ctx, b, size, content); err == nil {
				there, err = s.keep(ctx, b, size, b.stays(), complete)
			}
		}
		if err != nil { // also of the first call, which Redis may have carried out
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.AnswerLimit())
			defer cancel()
			_, failed := s.remove(ctx, b, size, "")
			return errors.Join(err, failed)
		}
		if there {
			return nil
		} // else somebody has removed it, or a part of it, meanwhile
	}
}

const (
	// complete says that all parts of a blob are there.
	complete = "complete"
	// asPublished is for how long returned files are kept.
	asPublished time.Duration = -1
)

// keep makes room, or keeps what is there for so long, and reports whether the blob is complete. is may be empty, complete,
// or the id of a task that refers to the blob.
func (s *Blobs) keep(ctx context.Context, b blob, size int64, d time.Duration, is string) (whole bool, err error) {
	lease := ""
	if d != asPublished {
		lease = strconv.FormatInt(int64(d/time.Second), 10)
	}
	share, quota := 1.0, "the quota of all blobs"
	if b.unasked {
		share, quota = 0.5, "half the quota of all blobs"
	}
	r, err := s.RunList(ctx, "blob", b.subject(),
		b.hash, size, int64(Part), lease, int64(Lease/time.Second), int64(defaultLimit), int64(defaultQuota), b.after, share, is)
	if err != nil {
		return false, s.noMemory(b, size, err)
	}
	room := RoomError{Size: size, Most: r.Number(1), Taken: r.Number(2), family: b.family}
	switch r.Number(0) {
	case -1:
		room.setting, room.what = "blob_limit", "the limit of one blob"
		return false, &room
	case -2:
		room.setting, room.what = "blob_quota", quota
		return false, &room
	}
	return r.Number(0) == 1, nil
}

// noMemory turns a lack of memory into an error of room: putting a blob does not wait for memory, as other calls do.
func (s *Blobs) noMemory(b blob, size int64, err error) error {
	if !conn.OutOfMemory(err) {
		return err
	}
	return &RoomError{Size: size, family: b.family, setting: "maxmemory", what: "the memory of Redis"}
}

// write sends all parts, as long as there is memory to spare.
func (s *Blobs) write(ctx context.Context, b blob, size int64, content io.ReaderAt) error {
	if err := s.roomFor(ctx, b, size); err != nil {
		return err
	}
	buf := make([]byte, min(Part, size))
	for i := int64(0); i*Part < size; i++ {
		part := buf[:min(Part, size-i*Part)]
		if _, err := content.ReadAt(part, i*Part); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read what is put: %w", err)
		}
		if err := s.Redis.Set(ctx, s.Keys.BlobPart(b.family, b.hash, i), part, 0).Err(); err != nil {
			return s.noMemory(b, size, s.Failed("put blob", err))
		}
		if err := s.roomFor(ctx, b, 0); err != nil {
			return err
		}
	}
	return nil
}

// roomFor makes sure that Redis has memory for so many bytes, and some to spare.
func (s *Blobs) roomFor(ctx context.Context, b blob, size int64) error {
	info, err := s.Info(ctx, "memory")
	if err != nil {
		return err
	}
	most, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	if usable := int64(float64(most) * (1 - spare)); most > 0 && used+size > usable {
		return &RoomError{Size: size, Most: usable, Taken: used, family: b.family, setting: "maxmemory", what: "the part of memory for blobs"}
	}
	return nil
}

// RoomError says why there is no room for a blob. It matches [task.ErrNoRoom].
type RoomError struct {
	// Size is that of the blob, Most how many bytes may be taken, and Taken how many are, each in bytes.
	Size, Most, Taken int64

	what, setting string
	family        conn.Family
}

// Error names the limit, and what to do.
func (e *RoomError) Error() string {
	remedy := "raise [server] " + e.setting + ", or put the file where workers can fetch it"
	switch {
	case e.setting == "maxmemory":
		remedy = "raise maxmemory of Redis, or let tasks leave it by archive_retention"
	case e.family == conn.Returned && e.Taken == 0:
		remedy = "return less, or raise [server] " + e.setting
	case e.family == conn.Returned:
		remedy = "return less, raise [server] " + e.setting + ", or lower file_retention"
	}
	taken := ""
	if e.Taken > 0 {
		taken = fmt.Sprintf(", of which %d are taken", e.Taken)
	}
	most := "full"
	if e.Most > 0 {
		most = strconv.FormatInt(e.Most, 10) + " bytes"
	}
	return fmt.Sprintf("%v of %d bytes: %s is %s%s; %s", task.ErrNoRoom, e.Size, e.what, most, taken, remedy)
}

// Unwrap returns the kind.
func (e *RoomError) Unwrap() error { return task.ErrNoRoom }

// remove removes a blob if it is kept until then, or, for "", if it is not complete.
func (s *Blobs) remove(ctx context.Context, b blob, size int64, till string) (bool, error) {
	v, err := s.Run(ctx, "unblob", b.subject(), b.hash, size, int64(Part), till)
	return v == int64(1), err
}

// Blob writes an upload to w. The error matches [task.ErrNoBlob] if it is not there, or not whole. What was written has the
// size of the blob; its hash is for the caller to compare.
func (s *Blobs) Blob(ctx context.Context, hash string, w io.Writer) error {
	return s.read(ctx, blob{family: conn.Uploads, hash: hash}, w)
}

// Files writes to w what a round has returned, as Blob does.
func (s *Blobs) Files(ctx context.Context, hash string, w io.Writer) error {
	return s.read(ctx, blob{family: conn.Returned, hash: hash}, w)
}

func (s *Blobs) read(ctx context.Context, b blob, w io.Writer) error {
	record, err := s.Redis.HMGet(ctx, s.Keys.Blob(b.family, b.hash), "size", "complete").Result()
	if err != nil && !conn.AboutData(err) {
		return s.Failed("blob", err)
	}
	r := conn.Reply(record)
	if r.Text(1) == "" {
		return fmt.Errorf("sha256 %s: %w", b.hash, task.ErrNoBlob)
	}
	for size, i := r.Number(0), int64(0); i*Part < size; i++ {
		part, err := s.Redis.Get(ctx, s.Keys.BlobPart(b.family, b.hash, i)).Bytes()
		switch {
		case err != nil && !conn.AboutData(err):
			return s.Failed("blob", err)
		case int64(len(part)) != min(Part, size-i*Part):
			return fmt.Errorf("sha256 %s: %w whole: part %d of it is missing", b.hash, task.ErrNoBlob, i)
		}
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("write blob: %w", err)
		}
	}
	return nil
}
