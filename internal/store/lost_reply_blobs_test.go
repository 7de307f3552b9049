package store_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/blobs"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
)

// blobLosses are the scripts of the room of blobs.
var blobLosses = map[string]map[string]loss{
	"blob": {
		"put":   {call: putCall},
		"again": {prepare: haveBlob, call: putCall},
		"files": {call: putFilesCall},
	},
	"unblob": {
		"sweep": {prepare: func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			haveBlob(t, sp)
			sp.Raw.ZAdd(t.Context(), sp.Key("blobs"), redis.Z{Member: someHash, Score: 1})
		}, call: func(t *testing.T, st *store.Store) step {
			return func() (any, error) {
				n, _, err := st.Sweep(t.Context())
				return n, err
			}
		}},
	},
}

const someHash = "00aa"

func putCall(t *testing.T, st *store.Store) step {
	t.Helper()
	content := bytes.Repeat([]byte("b"), blobs.Part+1)
	return done(func() error {
		return st.PutBlob(t.Context(), someHash, int64(len(content)), bytes.NewReader(content))
	})
}

func putFilesCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.PutFiles(t.Context(), someHash, 1, strings.NewReader("f"), true) })
}

func haveBlob(t *testing.T, sp *storetest.Space) {
	t.Helper()
	putCall(t, sp.Store).must(t)
}

// A blob of which Redis has made room, and whose caller gives up before it hears of it, leaves nothing.
func TestPutGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	far, proxy := through(t, sp)
	ctx, cancel := context.WithCancel(t.Context())
	halt := proxy.HaltAfter(script(far.Store.Script("blob").Hash()))
	put := make(chan error, 1)
	go func() { put <- far.Store.PutFiles(ctx, someHash, 1, strings.NewReader("f"), true) }()
	await.Closed(t, time.Minute, halt.Done(), "no room is asked for")
	if len(sp.Raw.Keys(t.Context(), sp.Key("file*")).Val()) == 0 {
		t.Fatal("no room was made")
	}
	cancel()
	proxy.Cut()
	proxy.Release()
	if err := await.Receive(t, time.Minute, put, "it goes on"); err == nil {
		t.Error("it has not heard that it was given up")
	}
	if left := sp.Raw.Keys(t.Context(), sp.Key("file*")).Val(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
