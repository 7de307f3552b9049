package store_test

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRedis(t *testing.T) {
	t.Parallel()
	exercise(t, func(tb testing.TB) *storetest.Space { return storetest.New(tb) })
}

func TestLongEmbedded(t *testing.T) {
	t.Parallel()
	exercise(t, storetest.Embedded)
}
