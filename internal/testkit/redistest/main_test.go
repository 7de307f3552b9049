package redistest_test

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
