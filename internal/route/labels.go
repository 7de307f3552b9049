package route

import (
	"slices"
	"strings"
)

// maxLabels is how many labels one text may hold, maxText how long one of them
// may be, in bytes.
const (
	maxLabels = 64
	maxText   = 128
)

const wantLabels = "a list of at most 64 label=value of at most 128 bytes each, without blanks; write for example gpu=a100,zone=eu"

// ParseLabels reads label=value pairs separated by commas and returns the one
// text for them: sorted, each once. The error names the field labels.
func ParseLabels(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	items := strings.Split(text, ",")
	for _, item := range items {
		if !validLabel(item) {
			return "", bad("labels", item, "label=value without blanks and commas; write for example gpu=a100,zone=eu")
		}
	}
	slices.Sort(items)
	items = slices.Compact(items)
	if len(items) > maxLabels {
		return "", bad("labels", text, wantLabels)
	}
	return strings.Join(items, ","), nil
}

// validLabel takes what is left when the separators of labels are taken away.
func validLabel(item string) bool {
	name, value, ok := strings.Cut(item, "=")
	return ok && name != "" && value != "" && !strings.Contains(value, "=") && plain(item, maxText)
}
