package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

func TestMain(m *testing.M) {
	store.Silence() // some tests take Redis away
	redistest.Main(m)
}
