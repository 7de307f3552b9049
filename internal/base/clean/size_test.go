package clean

import (
	"errors"
	"math"
	"testing"
)

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "65536": 65536, "7 B": 7, "64KiB": 64 << 10, "1MiB": 1 << 20, "2 GiB": 2 << 30, "1024TiB": 1 << 50, "3kB": 3000, "3KB": 3000, "5MB": 5e6,
		"6GB": 6e9, "7TB": 7e12, "9223372036854775807": math.MaxInt64,
	} {
		if n, err := Size(text); err != nil || n != want {
			t.Errorf("%s: %d, %v, want %d", text, n, err, want)
		}
	}
	for text, want := range map[string]error{
		"": ErrNoSize, "GiB": ErrNoSize, "-1": ErrNoSize, "1.5GiB": ErrNoSize, "1 gib": ErrNoSize, "1KM": ErrNoSize,
		"8388608TiB": ErrLargeSize, "9223372036854775808": ErrLargeSize, "99999999999999999999": ErrNoSize,
	} {
		if n, err := Size(text); !errors.Is(err, want) {
			t.Errorf("%q: %d, %v, want %v", text, n, err, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 1000: "1000", 1 << 10: "1KiB", 3 << 20: "3MiB", 1<<30 + 1<<20: "1025MiB", 2 << 40: "2TiB"} {
		if text := SizeText(n); text != want {
			t.Errorf("%d: %s, want %s", n, text, want)
		}
	}
}
