package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// kind is one of the forms in which a program can be offered.
type kind struct {
	// name ends the name of the program that is fetched in this form.
	name string
	// file is where it is found below the directory of the sources.
	file string
	// pack turns the script into that form.
	pack func(script []byte) ([]byte, error)
}

// kinds are all forms there are, each packed by this program.
func kinds() []kind {
	return []kind{
		{"script", "run.sh", bare},
		{"tar", "program.tar", tarball},
		{"tar-gz", "program.tar.gz", gzipped},
		{"tgz", "program.tgz", gzipped},
		{"tar-bz", "program.tar.bz", bzipped},
		{"tar-bz2", "program.tar.bz2", bzipped},
		{"tar-xz", "program.tar.xz", xzipped},
		{"tar-zst", "program.tar.zst", zstandard},
		{"zip", "program.zip", zipped},
	}
}

// packAll writes the script in all its forms into dir.
func packAll(dir string, script []byte) error {
	for _, k := range kinds() {
		packed, err := k.pack(script)
		if err != nil {
			return fmt.Errorf("packing %s: %w", k.file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, k.file), packed, 0o644); err != nil {
			return err
		}
	}
	return nil
}
