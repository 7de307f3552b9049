package capture

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// twin is an Excerpt that simply keeps everything.
type twin struct {
	all   []byte
	limit int
}

func (w *twin) captured() Captured {
	sum := sha256.Sum256(w.all)
	c := Captured{Data: w.all, Size: int64(len(w.all)), SHA256: hex.EncodeToString(sum[:])}
	if missing := len(w.all) - w.limit; missing > 0 {
		c.Truncated = true
		c.Data = append(bytes.Clone(w.all[:w.head()]), Marker(int64(missing))...)
		c.Data = append(c.Data, w.all[w.tail():]...)
	}
	return c
}

func (w *twin) head() int { return (w.limit + 1) / 2 }
func (w *twin) tail() int { return len(w.all) - w.limit/2 }

// from walks byte by byte to the first one kept and on to the first one missing.
func (w *twin) from(offset, limit int) (data []byte, at int) {
	kept := func(i int) bool { return len(w.all) <= w.limit || i < w.head() || i >= w.tail() }
	for offset < len(w.all) && !kept(offset) {
		offset++
	}
	at = offset
	for ; offset < len(w.all) && kept(offset) && len(data) < limit; offset++ {
		if offset == w.head() && at < offset && len(w.all) > w.limit {
			break // a gap of no bytes is still the end of the head
		}
		data = append(data, w.all[offset])
	}
	return data, at
}

func expectSame(t *rapid.T, got, want Captured) {
	if !bytes.Equal(got.Data, want.Data) || got.Size != want.Size || got.SHA256 != want.SHA256 || got.Truncated != want.Truncated {
		t.Fatalf("got %q %d %s %v\nwant %q %d %s %v", got.Data, got.Size, got.SHA256, got.Truncated,
			want.Data, want.Size, want.SHA256, want.Truncated)
	}
}

func TestExcerptIsItsTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		e, w := NewExcerpt(int64(limit)), &twin{limit: limit}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				p := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "p")
				if n, err := e.Write(p); n != len(p) || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
				w.all = append(w.all, p...)
				clear(p) // it must have been copied
			},
			"from": func(t *rapid.T) {
				offset := rapid.IntRange(0, len(w.all)+3).Draw(t, "offset")
				limit := rapid.IntRange(0, 50).Draw(t, "limit")
				data, at := e.From(int64(offset), limit)
				want, wantAt := w.from(offset, limit)
				if !bytes.Equal(data, want) || at != int64(wantAt) {
					t.Fatalf("From(%d, %d): %q at %d, want %q at %d", offset, limit, data, at, want, wantAt)
				}
			},
			"": func(t *rapid.T) { expectSame(t, e.Captured(), w.captured()) },
		})
	})
}

// What was handed out does not change when more is written.
func TestCapturedIsACopy(t *testing.T) {
	t.Parallel()
	e := NewExcerpt(4)
	_, _ = e.Write([]byte("abcd"))
	before := e.Captured()
	_, _ = e.Write([]byte("efgh"))
	if string(before.Data) != "abcd" || before.Truncated {
		t.Errorf("got %q", before.Data)
	}
	if got := string(e.Captured().Data); got != "ab"+Marker(4)+"gh" {
		t.Errorf("got %q", got)
	}
}

func TestNegativeArguments(t *testing.T) {
	t.Parallel()
	e := NewExcerpt(-1)
	_, _ = e.Write([]byte("abc"))
	if c := e.Captured(); string(c.Data) != Marker(3) || c.Size != 3 || e.Size() != 3 {
		t.Errorf("got %+v", c)
	}
	if data, at := e.From(-7, -1); data != nil || at != 3 {
		t.Errorf("got %q at %d", data, at)
	}
}

// A follower that comes often enough sees every byte once and in order; one that
// comes late is told how many it missed.
func TestFollowing(t *testing.T) {
	t.Parallel()
	e := NewExcerpt(1000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 20_000 {
			_, _ = e.Write([]byte{byte(i), byte(i >> 8)})
		}
	})
	for next := int64(0); next < 40_000; {
		data, at := e.From(next, 64)
		if at < next || len(data) > 64 {
			t.Fatalf("From(%d): %d bytes at %d", next, len(data), at)
		}
		for i, b := range data {
			offset := at + int64(i)
			if want := byte(offset / 2 >> (8 * (offset % 2))); b != want {
				t.Fatalf("byte %d is %d, want %d", offset, b, want)
			}
		}
		next = at + int64(len(data))
		_ = e.Captured()
		runtime.Gosched()
	}
	wg.Wait()
}

// Not parallel, for AllocsPerRun counts what the whole process allocates.
func TestExcerptTakesMemoryAsBytesCome(t *testing.T) {
	line := []byte("33\n")
	if n := testing.AllocsPerRun(100, func() {
		_, _ = NewExcerpt(1 << 30).Write(line)
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
	var e *Excerpt
	big := make([]byte, 1<<19+1)
	if n := testing.AllocsPerRun(100, func() {
		e = NewExcerpt(1 << 20)
		for range 10 {
			_, _ = e.Write(big)
		}
	}); n > 4 { // e, half of its data, all of it, and the sum
		t.Errorf("%v allocations", n)
	}
	if cap(e.data) != 1<<20 {
		t.Errorf("%d bytes taken for a limit of 1 MiB", cap(e.data))
	}
}

func TestMarker(t *testing.T) {
	t.Parallel()
	if got := Marker(123456); got != "\n[tdf: 123456 bytes left out]\n" {
		t.Errorf("got %q", got)
	}
}
