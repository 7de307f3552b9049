package route

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Resources are whole amounts by name, such as gpu=1 and mem=2048: what a task
// asks or what a worker offers. The unit of each is the users' agreement.
type Resources map[string]int

// maxResources is how many names one text may hold.
const maxResources = 16

const wantResources = "a list of at most 16 different name=number, numbers from 1 to 1000000000, " +
	"names of at most 64 small letters, digits and underscores; write for example gpu=1,mem=2048"

// ParseResources reads name=number pairs separated by commas, in any order; the
// empty text is no resources, which is nil. The error names the field resources.
func ParseResources(text string) (Resources, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nothing asked is no error
	}
	r := Resources{}
	for item := range strings.SplitSeq(text, ",") {
		name, amount, ok := cutResource(item)
		if _, twice := r[name]; !ok || twice || len(r) == maxResources {
			return nil, bad("resources", text, wantResources)
		}
		r[name] = amount
	}
	return r, nil
}

// Text is the one text for these resources: sorted by name, separated by commas.
func (r Resources) Text() string {
	items := make([]string, 0, len(r))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		items = append(items, name+"="+strconv.Itoa(r[name]))
	}
	return strings.Join(items, ",")
}

// isDemand reports whether text is what [Resources.Text] writes. It does not allocate.
func isDemand(text string) bool {
	last, n := "", 0
	for item := range strings.SplitSeq(text, ",") {
		name, _, ok := cutResource(item)
		if n++; !ok || name <= last || n > maxResources {
			return false
		}
		last = name
	}
	return true
}

// cutResource reads one name=number.
func cutResource(item string) (name string, amount int, ok bool) {
	name, digits, _ := strings.Cut(item, "=")
	if name == "" || len(name) > maxName || name[0] < 'a' || name[0] > 'z' {
		return "", 0, false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "", 0, false
		}
	}
	amount, ok = whole(digits, 1, maxCount)
	return name, amount, ok
}
