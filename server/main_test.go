package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
