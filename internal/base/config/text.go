package config

import (
	"strconv"
	"strings"
)

// hidden stands for a secret wherever a configuration is shown.
const hidden = "****"

// mask hides what looks like a login in a value that is no secret by its key,
// for example host=redis://user:password@redis.
func mask(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || !strings.Contains(s[:at], ":") {
		return s
	}
	return hidden + s[at:]
}

// quote shows a name in an error, shortened, with control characters escaped.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
