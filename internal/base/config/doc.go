// Package config loads the INI files of TDF's programs: server.cfg, worker.cfg
// and manager.cfg.
//
// The format is that of the original Python implementation, whose files load
// unchanged: sections [redis], [tdf], [server], [worker], [manager] and
// [task_defaults], times as seconds ("1.3"), booleans as True or true, and
// "password=None" for no password. New are further keys, Go durations ("5m"),
// sizes ("1MiB") and environment variables.
//
// A value comes from the first of: a command-line flag, the environment
// variable TDF_SECTION_KEY, the file, the default. Everything known about a
// key (default, type, limits, text for people) stands in one line of the
// schema; defaults, environment, suggestions, Print and the reference in
// docs/CONFIGURATION.md all come from that table.
//
// Every problem is an *Error that names the place, the value and the remedy.
// Values of secret or unknown keys never appear in errors or in Print.
package config
