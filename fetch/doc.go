// Package fetch brings a program named by a task onto this host.
//
// A task names a program and a source. [Fetcher.Ensure] downloads the source
// over HTTP or rsync (local paths are copied), unpacks it into a staging
// directory and installs it by one rename, so a program directory is either
// absent or complete:
//
//	DIR/sum/run.sh                 the program, executed by the worker
//	DIR/sum/.tdf-manifest.json     where it came from: source and SHA-256
//	DIR/.tdf/lock/sum              flock: one fetch per host and program
//	DIR/.tdf/staging/sum/          a fetch in progress, or what a dead one left
//
// Sources are untrusted. Archives are read as streams with mholt/archiver and
// every byte is written by this package through [os.Root], after its own
// checks of names, links, types, modes and sizes; sizes are those counted, not
// those declared. Credentials come from the worker's side only (netrc, CA file,
// ssh options); a source that carries some is refused and not repeated.
//
// The package knows nothing of Redis or of tasks.
package fetch
