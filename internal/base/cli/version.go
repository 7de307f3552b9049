package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version and Commit are set by the linker:
//
//	-ldflags "-X github.com/tdf-go/tdf/internal/base/cli.Version=v0.1.0 -X github.com/tdf-go/tdf/internal/base/cli.Commit=abc"
//
// Without them, Build falls back to what the Go tool recorded.
var (
	Version string
	Commit  string
)

// Build says what a binary was built from.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// ThisBuild returns the build of the running binary; unknown parts read "unknown".
func ThisBuild() Build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(Version, Commit, info)
}

func buildOf(version, commit string, info *debug.BuildInfo) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version()}
	if info != nil {
		b.Version = first(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = first(b.Commit, s.Value)
			}
		}
	}
	b.Version, b.Commit = first(b.Version, "unknown"), first(b.Commit, "unknown")
	return b
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// String returns for example "v0.1.0 (commit 1a2b3c, go1.26.8)".
func (b Build) String() string {
	return fmt.Sprintf("%s (commit %s, %s)", b.Version, b.Commit, b.Go)
}
