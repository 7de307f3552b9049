package store_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/blobs"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
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
