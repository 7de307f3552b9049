package clean_test

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/base/clean"
)

const pin = "#sha256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"

func TestSource(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		"https://h/p.zip":                   "https://h/p.zip",
		"https://h/p.zip" + pin:             "https://h/p.zip" + pin,
		"https://h/p.zip?token=S":           "https://h/p.zip?token=***",
		"https://h/p.zip?a=1&b=S=&c=" + pin: "https://h/p.zip?a=***&b=***&c=" + pin,
		"https://h/p.zip?S":                 "https://h/p.zip?***",
		"https://h/p.zip?a=1;S&":            "https://h/p.zip?a=***;***&",
		"https://h/p.zip?a=1?S#S#x=S":       "https://h/p.zip?a=***?***#***#x=***",
		"https://h/p.zip#sha256=S":          "https://h/p.zip#sha256=***",
		"https://h/p.zip?t=a b'S\"":         "https://h/p.zip?t=***",
		"https://h/@scope/p@1.tgz?x=a@b":    "https://h/@scope/p@1.tgz?x=***",
		"https://u:S@h/p.zip?t=S":           "https://***@h/p.zip?t=***",
		"https://u:S?S@h/p.zip":             "https://***",
		"https://h:bad/S@h/p.zip":           "https://***@h/p.zip",
		"HTTP//h/p.zip?token=S":             "HTTP//h/p.zip?token=***",
		"h/p.zip?token=S":                   "h/p.zip?token=***",
		"ftp://u:S@h/p.zip":                 "ftp://***@h/p.zip",
		"rsync:me@h:run.sh":                 "rsync:me@h:run.sh",
		"rsync:u:S@h::m/run.sh":             "rsync:***@h::m/run.sh",
		"rsync:/a/run.sh":                   "rsync:/a/run.sh",
	} {
		if got := clean.Source(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		} else if again := clean.Source(got); again != got {
			t.Errorf("%s: masked twice it is %s", got, again)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"nothing? no=thing": "nothing? no=thing",
		`Get "https://h/p.zip?token=S": dial tcp: refused`:             `Get "https://h/p.zip?token=***": dial tcp: refused`,
		`invalid proxy address "http://u:S@h?x"`:                       `invalid proxy address "http://***@h?***"`,
		"from 'https://h/a?b=S' to\nhttps://h/c?S next?x=y":            "from 'https://h/a?b=***' to\nhttps://h/c?*** next?x=y",
		`failed to parse Location header "http://[x?t=S": missing ']'`: `failed to parse Location header "http://[x?t=***": missing ']'`,
	} {
		if got := clean.URLs(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func FuzzSource(f *testing.F) {
	f.Add("https://h/p.zip?token=", "&x#y")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "Canary" // no hexadecimal digits alone
		if strings.ContainsAny(after, "=") {
			return // what stands before it is a name
		}
		if got := clean.Source("https://h/?" + before + "=" + secret + after); strings.Contains(got, secret) {
			t.Errorf("%q, %q: %s", before, after, got)
		}
	})
}
