package doctor

const seeLog = "see the log of Redis; most often its disk is full"

// judgePersistence looks at what is kept on disk, and whether that works.
func judgePersistence(f *Facts) []Finding {
	const check = "persistence"
	info := f.Server.Info
	aof, known := info["aof_enabled"]
	if !known {
		return unknown(check, "persistence", "INFO")
	}
	var found []Finding
	if status := info["aof_last_write_status"]; status != "" && status != "ok" {
		found = append(found, fail(check, "the last write to the append-only file failed", seeLog)...)
	}
	if status := info["rdb_last_bgsave_status"]; status != "" && status != "ok" {
		found = append(found, fail(check, "the last snapshot failed; Redis may refuse every change", seeLog)...)
	}
	if status := info["aof_last_bgrewrite_status"]; status != "" && status != "ok" {
		found = append(found, warn(check, "the last rewrite of the append-only file failed: it grows", seeLog)...)
	}
	fsync := f.Server.Settings["appendfsync"]
	switch {
	case aof != "1" && f.Server.Settings != nil && f.Server.Settings["save"] == "":
		found = append(found, fail(check, "neither append-only file nor snapshots: a restart of Redis loses every task", "appendonly yes")...)
	case aof != "1":
		found = append(found, warn(check, "no append-only file: a crash of Redis loses the tasks of the last minutes", "appendonly yes")...)
	case fsync == "no":
		found = append(found, warn(check, "appendfsync no: a crash of the host loses what the kernel has not written yet",
			"appendfsync everysec, or always")...)
	case fsync == "":
		found = append(append(found, ok(check, "append-only file")...), unknown(check, "appendfsync", "CONFIG GET")...)
	default:
		found = append(found, ok(check, "append-only file, appendfsync "+fsync)...)
	}
	return found
}
