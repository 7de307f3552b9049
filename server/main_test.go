package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/store"
)

func TestMain(m *testing.M) {
	store.Silence() // some tests take Redis away
	redistest.Main(m)
}
