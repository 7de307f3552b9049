package manager

import (
	"strconv"
	"strings"
)

// RoundProgress is how far a program says it has come: what it wrote as
// "progress=0.4 text" to the file that $TDF_CONTROL names.
type RoundProgress struct {
	// Part is from 0 to 1, negative if the program did not say.
	Part float64
	Text string
}

// ParseProgress reads the hash field "<round>:progress": a number from 0 to 1,
// a text, or both.
func ParseProgress(field string) RoundProgress {
	field = strings.TrimSpace(field)
	word, rest, _ := strings.Cut(field, " ")
	part, err := strconv.ParseFloat(word, 64)
	if err != nil || !(part >= 0 && part <= 1) {
		return RoundProgress{Part: -1, Text: field}
	}
	return RoundProgress{Part: part, Text: strings.TrimSpace(rest)}
}

// IsZero reports whether the program said nothing.
func (p RoundProgress) IsZero() bool { return p.Part < 0 && p.Text == "" }

// String is for people: "40% text".
func (p RoundProgress) String() string {
	if p.Part < 0 {
		return p.Text
	}
	percent := strconv.Itoa(int(p.Part*100+1e-9)) + "%"
	return strings.TrimSpace(percent + " " + p.Text)
}
