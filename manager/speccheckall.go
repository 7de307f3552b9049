package manager

import (
	"fmt"

	"github.com/tdf-go/tdf/internal/base/config"
)

// CheckSpecs is [Manager.Check] without Redis and a configuration: defaults are
// those of TDF. The error is a *[SpecError].
func CheckSpecs(specs []Spec) error {
	cfg, err := config.Load("", config.ForManager, config.WithEnviron([]string{}),
		config.WithSettings("redis.host=localhost", "tdf.namespace=check"))
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	m := &Manager{cfg: cfg}
	for i := range specs {
		if err := m.Check(specs[i]); err != nil {
			return &SpecError{Index: i, Err: err}
		}
	}
	return nil
}
