// Package archive keeps archived tasks that have left Redis, or are to leave it, in files of a directory. It knows no Redis.
//
//	DIR/NAMESPACE-TIME-RANDOM.jsonl.zst                  a segment, complete: zstd frames of JSON Lines, one task a line
//	DIR/NAMESPACE-TIME-RANDOM.jsonl.zst.manifest.json    what is in it, and its checksum
//	DIR/NAMESPACE-TIME-RANDOM.jsonl.zst.part             a segment that grows; its writer holds a lock (flock) on it
//	DIR/NAMESPACE-EPOCH.before.json                      which tasks had left Redis before this directory was begun
//
// A batch of tasks is written as whole frames, each with its checksum, and is on the disk when [Writer.Write] returns. To seal a
// segment the manifest is written first and the file renamed then: whatever happens in between leaves a part that nobody has
// locked, and whoever opens the directory next cuts off what is no whole frame and seals it.
//
// The same task may be there more than once: a copy made before it left Redis, or one made twice because a server was killed
// between copy and removal. Of those with the same id and time of creation the one with the highest revision counts.
package archive
