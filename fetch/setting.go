package fetch

// The limits, named as their fields of Options.
const (
	limitDownload  = "MaxDownloadBytes"
	limitBytes     = "MaxBytes"
	limitFileBytes = "MaxFileBytes"
	limitEntries   = "MaxEntries"
	limitDepth     = "MaxDepth"
	limitRatio     = "MaxRatio"
)

// limitTexts say what is exceeded, by the field of Options.
var limitTexts = map[string]string{
	limitDownload:  "the file is larger than %d bytes",
	limitBytes:     "it unpacks to more than %d bytes",
	limitFileBytes: "a file is larger than %d bytes",
	limitEntries:   "there are more than %d entries",
	limitDepth:     "directories are more than %d deep",
	limitRatio:     "it unpacks to more than %d times its own size, as only bombs do",
}

// settings are the keys of worker.cfg that fields of Options come from.
var settings = map[string]string{
	"Dir":          "program_dir",
	limitDownload:  "fetch_max_bytes",
	limitBytes:     "fetch_max_bytes",
	limitFileBytes: "fetch_max_file_bytes",
	limitEntries:   "fetch_max_entries",
	"MaxRedirects": "fetch_max_redirects",
	"Timeout":      "fetch_timeout",
	"NetrcFile":    "netrc_file",
	"CAFile":       "ca_file",
	"SSHExtra":     "ssh_options",
	"RsyncPath":    "rsync_path",
}

// setting is what people know a field of Options by, or empty: errors reach
// those who read a task's log, who cannot set fields of Go.
func setting(field string) string {
	if key, ok := settings[field]; ok {
		return "[worker] " + key
	}
	return ""
}
