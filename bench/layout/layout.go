package main

// layout names the script fragments that make up one way of laying keys out.
type layout struct {
	name   string
	member string // how an id is written in a ready bucket
	ready  string // where tasks wait to be claimed
	due    string // index of deadlines
	log    string // where the lines of a task's log are kept
	about  string
}

// layouts are the candidates. L0 is the original's layout, the price of having no index.
func layouts() []layout {
	return []layout{
		{"L0", "plain", "open", "none", "field", "as the original: claims from `open`, no bucket, no deadline index"},
		{"L1", "padded", "bucket", "one", "field", "buckets of 20-digit ids, one deadline index, log in the hash"},
		{"L2", "prefixed", "bucket", "one", "field", "as L1, but length-prefixed ids (a1, b10)"},
		{"L3", "prefixed", "bucket", "three", "field", "as L2, but three deadline indices"},
		{"L4", "prefixed", "bucket", "one", "key", "as L2, but the log in a list of its own"},
	}
}

// limits are redis-server settings for the compact encoding of small hashes and sorted sets.
type limits struct {
	name string
	args []string
}

// limitSets are the settings to compare; the first is what a plain redis-server 7.0 does.
func limitSets() []limits {
	hash := []string{"--hash-max-listpack-value", "1024", "--hash-max-listpack-entries", "512"}
	zset := []string{"--zset-max-listpack-value", "64", "--zset-max-listpack-entries", "512"}
	return []limits{
		{"defaults", nil},
		{"hash raised", hash},
		{"all raised", append(append([]string{}, hash...), zset...)},
	}
}

// shape is what the tasks look like.
type shape struct {
	name        string
	source      string
	deadlines   bool // end_before and timeout are finite
	outputBytes int
	about       string
}

// shapes are the kinds of task to compare; the first is used for the comparison of layouts.
func shapes() []shape {
	const source = "http://127.0.0.1:8080/sum.tar.gz"
	const pin = "#sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	return []shape{
		{"plain", source, true, 6, "short source, finite end_before and timeout, 6 bytes of output"},
		{"no deadline", source, false, 6, "as plain, end_before and timeout infinite"},
		{"pinned", source + pin, true, 6, "as plain, the source pinned by its SHA-256 (104 bytes)"},
		{"2 KiB output", source, true, 2048, "as plain, with 2 KiB of output"},
	}
}
