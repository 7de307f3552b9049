package httpapi

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

func TestMain(m *testing.M) {
	conn.Silence() // some tests take Redis away
	redistest.Main(m)
}
