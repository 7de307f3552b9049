package route

// maxSlip is the longest text that is looked at as a slip of the keyboard.
const maxSlip = 128

// Nearest returns the word that differs least from name, if that is close
// enough to be a slip: a third of the letters, one at least. It is empty if
// there is none.
func Nearest(name string, words []string) string {
	if len(name) > maxSlip {
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, w := range words {
		if d := Distance(name, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// Distance is the Levenshtein distance of two texts, in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
