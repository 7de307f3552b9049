//go:build unix

// Package model_test checks the model of docs/model, where spin is installed.
package model_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	root  = "../.."
	limit = 18 * time.Minute // it takes six on two free processors; go test gives up after 20
)

// TestLongModel: the model finds for each variant what it is expected to find, and
// the document tells the same rows.
func TestLongModel(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("spin"); err != nil {
		t.Skip("spin is not installed: scripts/setup-test.sh installs it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "scripts/model.sh")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("scripts/model.sh: %v\n%s", err, out)
	}
	document, err := os.ReadFile(filepath.Join(root, "docs/model/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := rows(string(out)), rows(string(document))
	if len(got) < 30 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("docs/model/README.md quotes other rows than scripts/model.sh prints:\n%s", out)
	}
}

// rows are the rows of a table, without states and seconds, which differ from
// one version of spin and one machine to another.
func rows(text string) []string {
	var rows []string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "| ") && len(cells) == 6 {
			rows = append(rows, strings.Join(cells[:4], " | "))
		}
	}
	return rows
}
