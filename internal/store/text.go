package store

import "strconv"

// quote makes a text from Redis safe and short enough for messages.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
