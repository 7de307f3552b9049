package clean

import (
	"net/url"
	"regexp"
	"strings"
)

// hidden stands where something was masked.
const hidden = "***"

// Source makes the source of a program fit to be shown: a login in it and the
// value of every parameter behind a '?' or '#' are masked, since no list of names
// would hold all that tokens and signatures are called. A pin (#sha256=HEX) stays.
// Text that is no URL is masked in the same way; it never fails.
func Source(s string) string { return maskParameters(maskLogin(s)) }

// within finds URLs in a text. It takes more rather than less: what follows a URL
// without a blank or a quotation mark belongs to it.
var within = regexp.MustCompile("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'<>`]+")

// URLs masks the URLs in a text, for example an error of net/http, as Source does.
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return within.ReplaceAllStringFunc(text, Source)
}

// maskLogin masks what stands before the host. In a sound URL an '@' of the path is
// none; in another text it may end a password with odd characters.
func maskLogin(s string) string {
	at := strings.LastIndexByte(s, '@')
	web := strings.HasPrefix(s, "http")
	if u, err := url.Parse(s); at < 0 || web && err == nil && u.User == nil {
		return s
	}
	start := strings.Index(s, "//") + 2
	if start < 2 {
		start = strings.IndexByte(s, ':') + 1
	}
	switch {
	case at <= start || !web && !strings.ContainsRune(s[start:at], ':'):
		return s
	case strings.ContainsAny(s[start:at], "?#"): // the end of a login, or in a parameter
		return s[:start] + hidden
	default:
		return s[:start] + hidden + s[at:]
	}
}

func maskParameters(s string) string {
	i := strings.IndexAny(s, "?#")
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		sign := s[i]
		b.WriteByte(sign)
		rest := s[i+1:]
		end := strings.IndexAny(rest, "?#&;")
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(maskParameter(rest[:end], sign))
		i += 1 + end
	}
	return b.String()
}

func maskParameter(text string, sign byte) string {
	name, value, named := strings.Cut(text, "=")
	switch {
	case named && value == "", text == "", sign == '#' && name == "sha256" && strings.Trim(value, "0123456789abcdefABCDEF") == "":
		return text
	case named:
		return name + "=" + hidden
	default:
		return hidden
	}
}
