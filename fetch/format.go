package fetch

import (
	"strings"
)

// Format is how a fetched file becomes a program directory.
type Format string

// The supported formats; their values are the canonical endings.
const (
	FormatScript Format = "run.sh"
	FormatTar    Format = ".tar"
	FormatTarGz  Format = ".tar.gz"
	FormatTarBz2 Format = ".tar.bz2"
	FormatTarXz  Format = ".tar.xz"
	FormatTarZst Format = ".tar.zst"
	FormatZip    Format = ".zip"
)

var endings = []struct {
	ending string
	format Format
}{
	{".tar", FormatTar},
	{".tar.gz", FormatTarGz}, {".tgz", FormatTarGz},
	{".tar.bz", FormatTarBz2}, {".tar.bz2", FormatTarBz2},
	{".tar.xz", FormatTarXz}, {".tar.zst", FormatTarZst},
	{".zip", FormatZip},
}

// formatOf finds the format by a file's name; empty if there is none.
func formatOf(file string) Format {
	if file == runFile {
		return FormatScript
	}
	lower := strings.ToLower(file)
	for _, e := range endings {
		if strings.HasSuffix(lower, e.ending) && len(file) > len(e.ending) {
			return e.format
		}
	}
	return ""
}

func endingList() string {
	names := make([]string, 0, len(endings)+1)
	for _, e := range endings {
		names = append(names, e.ending)
	}
	return strings.Join(append(names, "/run.sh"), " ")
}
