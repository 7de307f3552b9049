package statemachine_test

import (
	"flag"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/scenario"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into testdata instead of comparing them")

// TestScenarios plays the stories of testdata on the pure model. The store's
// tests play the same files on Redis.
func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Test(t, "testdata", *rewrite, func(*testing.T) scenario.World { return scenario.NewPure() })
}
