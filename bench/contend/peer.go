package contend

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// BuildAsynq compiles the program of the module in the directory peers into dir, and returns its path.
func BuildAsynq(ctx context.Context, peers, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "asynq")
	cmd := Command(ctx, "go", "build", "-o", binary, "./asynq")
	cmd.Dir = peers
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s/asynq: %w\n%s", peers, err, out)
	}
	return binary, nil
}

// Report runs a program that measures a queue and prints one JSON object, which it reads into the value.
func Report(name string, cmd *exec.Cmd, into any) error {
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w%s", name, err, StderrOf(err))
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s: its report %q: %w", name, out, err)
	}
	return nil
}
