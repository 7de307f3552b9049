package blobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/blobs"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// hash is the name of a blob; nothing in the store looks whether it is that of its bytes.
func hash(n int) string { return fmt.Sprintf("%064x", n) }

func put(t *testing.T, sp *storetest.Space, name string, content []byte) {
	t.Helper()
	if err := sp.Store.PutBlob(t.Context(), name, int64(len(content)), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// keysOf are the keys of blobs.
func keysOf(t *testing.T, sp *storetest.Space) []string {
	t.Helper()
	keys := sp.Raw.Keys(t.Context(), sp.Key("blob*")).Val()
	slices.Sort(keys)
	return keys
}

// bytesOf is how many bytes blobs take, as it is recorded.
func bytesOf(t *testing.T, sp *storetest.Space) string {
	t.Helper()
	return sp.Raw.HGet(t.Context(), sp.Key("meta"), "blob_bytes").Val()
}

// isGone wants nothing of a blob to be there.
func isGone(t *testing.T, sp *storetest.Space, name string) {
	t.Helper()
	if err := sp.Store.Blob(t.Context(), name, io.Discard); !errors.Is(err, task.ErrNoBlob) || !errors.Is(err, task.ErrNotFound) {
		t.Errorf("error %v, want that there is no such blob", err)
	}
	if keys := keysOf(t, sp); len(keys) > 0 || bytesOf(t, sp) != "0" {
		t.Errorf("keys %q, %s bytes, want none", keys, bytesOf(t, sp))
	}
}

func TestBlob(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, blobs.Part - 1, blobs.Part, 2*blobs.Part + 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			content := make([]byte, size)
			for i := range content {
				content[i] = byte(rand.Int())
			}
			put(t, sp, hash(1), content)
			var got bytes.Buffer
			if err := sp.Store.Blob(t.Context(), hash(1), &got); err != nil || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes, error %v, want what was put", got.Len(), err)
			}
			for n := range (size + blobs.Part - 1) / blobs.Part {
				if part := sp.Raw.StrLen(t.Context(), sp.Key(fmt.Sprintf("blob:%s:%d", hash(1), n))).Val(); part > blobs.Part {
					t.Errorf("part %d has %d bytes", n, part)
				}
			}
			if bytesOf(t, sp) != fmt.Sprint(size) {
				t.Errorf("%s bytes are counted, want %d", bytesOf(t, sp), size)
			}
		})
	}
}

// unread is content that nobody may read.
type unread struct{ t *testing.T }

// ReadAt implements io.ReaderAt.
func (u unread) ReadAt([]byte, int64) (int, error) {
	u.t.Error("what is there already was read again")
	return 0, io.ErrUnexpectedEOF
}

func TestPutTwice(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	put(t, sp, hash(1), []byte("content"))
	if err := sp.Store.PutBlob(t.Context(), hash(1), 7, unread{t}); err != nil || bytesOf(t, sp) != "7" {
		t.Errorf("error %v, %s bytes", err, bytesOf(t, sp))
	}
}

// A part that somebody has removed is no blob, and no shorter one either.
func TestPartIsMissing(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	put(t, sp, hash(1), []byte("content"))
	sp.Raw.Del(t.Context(), sp.Key("blob:"+hash(1)+":0"))
	var got bytes.Buffer
	if err := sp.Store.Blob(t.Context(), hash(1), &got); !errors.Is(err, task.ErrNoBlob) || got.Len() > 0 {
		t.Errorf("%q, error %v", &got, err)
	}
}

// Who puts what is there no longer, or not whole, puts all of it: another client may have broken off meanwhile.
func TestPutMends(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	content := bytes.Repeat([]byte("c"), blobs.Part+1)
	key := sp.Key("blob:" + hash(1) + ":0")
	put(t, sp, hash(1), content)
	sp.Raw.Del(t.Context(), key)
	put(t, sp, hash(1), content)
	sp.Raw.HDel(t.Context(), sp.Key("blob:"+hash(1)), "complete")
	last := lossy{bytes.NewReader(content), func() { sp.Raw.Del(t.Context(), key) }}
	if err := sp.Store.PutBlob(t.Context(), hash(1), int64(len(content)), &last); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := sp.Store.Blob(t.Context(), hash(1), &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes, error %v", got.Len(), err)
	}
}

// lossy is content while the last part of which is read for the first time something happens.
type lossy struct {
	*bytes.Reader

	then func()
}

// ReadAt implements io.ReaderAt.
func (l *lossy) ReadAt(p []byte, off int64) (int, error) {
	if off > 0 && l.then != nil {
		l.then()
		l.then = nil
	}
	return l.Reader.ReadAt(p, off)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	if err := sp.Store.PublishBlobs(t.Context(), 10, 15, time.Hour); err != nil {
		t.Fatal(err)
	}
	put(t, sp, hash(1), make([]byte, 10))
	for size, want := range map[int64]string{
		11: "no room for a blob of 11 bytes: the limit of one blob is 10 bytes; raise [server] blob_limit",
		6:  "no room for a blob of 6 bytes: the quota of all blobs is 15 bytes, of which 10 are taken; raise [server] blob_quota",
	} {
		err := sp.Store.PutBlob(t.Context(), hash(2), size, unread{t})
		if !errors.Is(err, task.ErrNoRoom) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	put(t, sp, hash(2), make([]byte, 5))
	if n := sp.Raw.ZCard(t.Context(), sp.Key("blobs")).Val(); n != 2 || bytesOf(t, sp) != "15" {
		t.Errorf("%d blobs of %s bytes", n, bytesOf(t, sp))
	}
}

// While memory is short nothing is put, and tasks go on.
func TestMemoryIsShort(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	ids := sp.Open(t, storetest.Spec())
	used := sp.Raw.InfoMap(t.Context(), "memory").Val()["Memory"]["used_memory"]
	var most int64
	if _, err := fmt.Sscan(used, &most); err != nil {
		t.Fatal(err)
	}
	sp.Raw.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(most+8*blobs.Part))
	err := sp.Store.PutBlob(t.Context(), hash(1), 8*blobs.Part, unread{t})
	if !errors.Is(err, task.ErrNoRoom) || !strings.Contains(err.Error(), "raise maxmemory") {
		t.Errorf("error %v, want that there is no memory to spare", err)
	}
	isGone(t, sp, hash(1))
	claimed := sp.Claim(t, "w", 1)
	if out := sp.Report(t, &claimed[0], "done", ""); out.Err != nil || len(ids) != 1 {
		t.Error(out.Err)
	}
}

// breaking is content whose reading ends in the middle.
type breaking struct {
	at int64
	do func() error
}

// ReadAt implements io.ReaderAt.
func (b breaking) ReadAt(p []byte, off int64) (int, error) {
	if off >= b.at {
		return 0, b.do()
	}
	return len(p), nil
}

func TestPutBreaksOff(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	broken := errors.New("the disk is broken")
	for _, content := range []breaking{
		{blobs.Part, func() error { return broken }},
		{blobs.Part, func() error { cancel(); return nil }},
	} {
		err := sp.Store.PutBlob(ctx, hash(1), 3*blobs.Part, content)
		if !errors.Is(err, broken) && !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		isGone(t, sp, hash(1))
	}
}

// overdue ends the lease of all blobs.
func overdue(t *testing.T, sp *storetest.Space) {
	t.Helper()
	for _, name := range sp.Raw.ZRange(t.Context(), sp.Key("blobs"), 0, -1).Val() {
		sp.Raw.ZAdd(t.Context(), sp.Key("blobs"), redis.Z{Member: name, Score: 1})
	}
}

// sweep wants so many blobs to leave.
func sweep(t *testing.T, sp *storetest.Space, want int) {
	t.Helper()
	if n, _, err := sp.Store.Sweep(t.Context()); err != nil || n != want {
		t.Errorf("%d are removed, error %v, want %d", n, err, want)
	}
}

// withSource opens a task, and returns its id.
func withSource(t *testing.T, sp *storetest.Space, source string) int64 {
	t.Helper()
	return sp.Open(t, storetest.Spec(func(d *task.Definition) { storetest.Set(d, "source", source) }))[0]
}

func TestSweep(t *testing.T) {
	t.Parallel()
	for name, refer := range map[string]func(*testing.T, *storetest.Space){
		"a task":           func(t *testing.T, sp *storetest.Space) { withSource(t, sp, task.BlobSource(hash(1))) },
		"a command":        func(t *testing.T, sp *storetest.Space) { withSource(t, sp, "command:./x"+task.Pin(hash(1))) },
		"a pinned address": func(t *testing.T, sp *storetest.Space) { withSource(t, sp, "http://h/x.zip"+task.Pin(hash(1))) },
		"a stdin": func(t *testing.T, sp *storetest.Space) {
			sp.Open(t, storetest.Spec(func(d *task.Definition) {
				storetest.Set(d, "stdin", task.BlobSource(hash(1)), "source", "command:./x"+task.Pin(hash(3)))
			}))
		},
		"a record": func(t *testing.T, sp *storetest.Space) {
			w := tasks.RecordWrite{Record: task.Record{Kind: task.KindSeries, Name: "n", Value: task.BlobSource(hash(1))}, Call: "c"}
			if err := sp.Store.PutRecord(t.Context(), &w); err != nil {
				t.Fatal(err)
			}
		},
		"a step": func(t *testing.T, sp *storetest.Space) {
			plan, err := sp.Store.NewPlan(t.Context(), task.PlanSpec{RequestKey: "plan"})
			if err == nil {
				err = sp.Store.KeepGrowth(t.Context(), plan, `{"steps":[{"source":"`+task.BlobSource(hash(1))+`"}]}`, 1, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			put(t, sp, hash(1), []byte("referred to"))
			put(t, sp, hash(2), []byte("left"))
			sweep(t, sp, 0)
			refer(t, sp)
			overdue(t, sp)
			sweep(t, sp, 1)
			var got strings.Builder
			if err := sp.Store.Blob(t.Context(), hash(1), &got); err != nil || got.String() != "referred to" || bytesOf(t, sp) != "11" {
				t.Errorf("%q of %s bytes, error %v", got.String(), bytesOf(t, sp), err)
			}
			sweep(t, sp, 0) // it is looked at again later
		})
	}
}

// When the task is gone that was known to refer to a blob, the newest other one is found, among those that are newer than
// the blob.
func TestWitness(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	source := task.BlobSource(hash(1))
	withSource(t, sp, source)
	put(t, sp, hash(1), []byte("b"))
	second, third := withSource(t, sp, source), withSource(t, sp, source)
	for range 1000 {
		sp.Open(t, storetest.Spec())
	}
	witness := func(want int64) {
		t.Helper()
		overdue(t, sp)
		sweep(t, sp, 0)
		if id, err := sp.Raw.HGet(t.Context(), sp.Key("blob:"+hash(1)), "witness").Int64(); err != nil || id != want {
			t.Errorf("task %d is known to refer to it, %v, want %d", id, err, want)
		}
	}
	witness(third)
	sp.Raw.Del(t.Context(), sp.Key(fmt.Sprint("task:", third)))
	witness(second)
	sp.Raw.Del(t.Context(), sp.Key(fmt.Sprint("task:", second)))
	overdue(t, sp)
	sweep(t, sp, 1)
	isGone(t, sp, hash(1))
}

// A blob that is wanted again while it is judged stays.
func TestPutWhileSwept(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	put(t, sp, hash(1), []byte("b"))
	overdue(t, sp)
	sp.Raw.ZAdd(t.Context(), sp.Key("blobs"), redis.Z{Member: hash(1), Score: 2}) // as if it was judged at 1
	if v, err := sp.Store.Run(t.Context(), "unblob", conn.Subject{Family: conn.Uploads, Blob: hash(1)}, hash(1), blobs.Part, "1"); err != nil || v != int64(0) {
		t.Errorf("%v, error %v, want that it stays", v, err)
	}
	put(t, sp, hash(1), []byte("b"))
	sweep(t, sp, 0)
	if at := sp.Raw.ZScore(t.Context(), sp.Key("blobs"), hash(1)).Val(); at < 1e9 {
		t.Errorf("it is kept until %v", at)
	}
}

// A damaged blob is told of, and does not keep the others.
func TestSweepPastDamage(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for n := range 3 {
		put(t, sp, hash(n), []byte("b"))
	}
	overdue(t, sp)
	sp.Raw.Set(t.Context(), sp.Key("blob:"+hash(1)), "x", 0)
	if n, _, err := sp.Store.Sweep(t.Context()); n != 2 || err == nil || !strings.Contains(err.Error(), "blob is a string, want a hash") {
		t.Errorf("%d are removed, error %v", n, err)
	}
}

// Returned files are kept for as long as servers have published, each time they are put, and then leave, all of them. They count
// among the blobs, and are apart from the uploads.
func TestReturnedFiles(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	keep := func(n int, retention time.Duration) {
		t.Helper()
		if err := sp.Store.PutFiles(t.Context(), hash(n), 5, strings.NewReader("files"), true); err != nil {
			t.Fatal(err)
		}
		now, err := sp.Store.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		till, err := sp.Store.FilesUntil(t.Context(), hash(n))
		if left := till.Sub(time.UnixMicro(int64(now))); err != nil || left > retention || left < retention-time.Minute {
			t.Errorf("they are kept for %v, error %v, want %v", left, err, retention)
		}
	}
	keep(0, 7*24*time.Hour)
	if err := sp.Store.PublishBlobs(t.Context(), 10, 1000, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	keep(0, 30*24*time.Hour)
	for n := range 150 {
		keep(n, 30*24*time.Hour)
	}
	put(t, sp, hash(0), []byte("upload"))
	var got strings.Builder
	if err := sp.Store.Files(t.Context(), hash(0), &got); err != nil || got.String() != "files" || bytesOf(t, sp) != "756" {
		t.Errorf("%q, error %v; %s bytes, want 756", got.String(), err, bytesOf(t, sp))
	}
	if found, err := sp.Store.Doubtful(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("doubtful are %q, error %v", found, err)
	}
	if err := sp.Store.PutFiles(t.Context(), hash(200), 11, unread{t}, true); !errors.Is(err, task.ErrNoRoom) ||
		!strings.Contains(err.Error(), "return less, or raise [server] blob_limit") {
		t.Errorf("error %v", err)
	}
	for n := range 150 {
		sp.Raw.ZAdd(t.Context(), sp.Key("files"), redis.Z{Member: hash(n), Score: 1})
	}
	if _, n, err := sp.Store.Sweep(t.Context()); err != nil || n != 150 {
		t.Errorf("%d are removed, error %v, want 150", n, err)
	}
	if till, err := sp.Store.FilesUntil(t.Context(), hash(0)); err != nil || !till.IsZero() {
		t.Errorf("they are kept until %v, error %v", till, err)
	}
	if err := sp.Store.Files(t.Context(), hash(0), io.Discard); !errors.Is(err, task.ErrNoBlob) || bytesOf(t, sp) != "6" {
		t.Errorf("error %v; %s bytes, want those of the upload", err, bytesOf(t, sp))
	}
	if keys := sp.Raw.Keys(t.Context(), sp.Key("file*")).Val(); len(keys) > 0 {
		t.Errorf("left are %q", keys)
	}
}

// Files that are put again are kept for no longer than servers have published, though that is less than an upload is kept.
func TestShortRetention(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	if err := sp.Store.PublishBlobs(t.Context(), 10, 1000, time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := sp.Store.PutFiles(t.Context(), hash(1), 1, strings.NewReader("f"), true); err != nil {
			t.Fatal(err)
		}
		if till, err := sp.Store.FilesUntil(t.Context(), hash(1)); err != nil || time.Until(till) > 2*time.Hour {
			t.Errorf("kept until %v, error %v", till, err)
		}
	}
}

// Two put the same, and both break off, one while the other is at it: nothing of it stays.
func TestTwoBreakOff(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	broken := errors.New("broken")
	err := sp.Store.PutBlob(t.Context(), hash(1), 3*blobs.Part, breaking{blobs.Part, func() error {
		return errors.Join(broken, sp.Store.PutBlob(t.Context(), hash(1), 3*blobs.Part, breaking{2 * blobs.Part, func() error { return broken }}))
	}})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	isGone(t, sp, hash(1))
	late := breaking{2 * blobs.Part, func() error { return broken }}
	err = sp.Store.PutBlob(t.Context(), hash(1), 3*blobs.Part, second{late, func() {
		_ = sp.Store.PutBlob(t.Context(), hash(1), 3*blobs.Part, breaking{0, func() error { return broken }})
	}})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	isGone(t, sp, hash(1))
}

// second is content while whose second part is read something happens.
type second struct {
	breaking

	then func()
}

// ReadAt implements io.ReaderAt.
func (s second) ReadAt(p []byte, off int64) (int, error) {
	if off == blobs.Part {
		s.then()
	}
	return s.breaking.ReadAt(p, off)
}

// Damaged blobs are told of, and keep no others from leaving.
func TestSweepPastDamagedFamilies(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for n := range 250 {
		if err := sp.Store.PutFiles(t.Context(), hash(n), 1, strings.NewReader("f"), true); err != nil {
			t.Fatal(err)
		}
		sp.Raw.ZAdd(t.Context(), sp.Key("files"), redis.Z{Member: hash(n), Score: 1})
	}
	put(t, sp, hash(7), []byte("b"))
	overdue(t, sp)
	sp.Raw.Set(t.Context(), sp.Key("blob:"+hash(7)), "x", 0)
	sp.Raw.Set(t.Context(), sp.Key("file:"+hash(7)), "x", 0)
	sp.Raw.HSet(t.Context(), sp.Key("file:"+hash(8)), "size", "many")
	if _, n, err := sp.Store.Sweep(t.Context()); n != 249 || err == nil {
		t.Errorf("%d are removed, error %v, want 249 and that one is damaged", n, err)
	}
}
