package statemachine_test

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	sm "github.com/tdf-go/tdf/statemachine"
)

// lastMicro is the last moment of the year 9999, the end of what can be read.
const lastMicro = 253402300799 * 1_000_000

func TestParseTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sm.Time{
		"0": 0, "00": 0, "-0": 0, "+0": 0, "0.": 0, "1.": 1_000_000, ".5": 500_000, "+7": 7_000_000,
		"0.000001": 1, "0.0000005": 1, "0.0000004999": 0, "1e-05": 10, "1e-400": 0,
		// Written by programs in other languages.
		"1795230670.304874": 1795230670304874, "1.795230670304874e+09": 1795230670304874,
		"1795230670.3048745": 1795230670304875, "1795230670.30487449999999999": 1795230670304874,
		"0.3294954492315": 329495, "5E3": 5_000_000_000,
		// Off by one with a float64 of seconds times 1e6.
		"9007199254.740993": 9007199254740993, "253402300798.999999": 253402300798999999,
		"253402300799": lastMicro,
		"inf":          sm.Never, "+inf": sm.Never, "Inf": sm.Never, "INFINITY": sm.Never,
	} {
		got, err := sm.ParseTime(text)
		if err != nil || got != want {
			t.Errorf("ParseTime(%q) = %d, %v; want %d", text, got, err, want)
		}
		if d, err := sm.ParseDuration(text); err != nil || d != sm.Duration(want) {
			t.Errorf("ParseDuration(%q) = %d, %v; want %d", text, d, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", " ", ".", "-", "+", "e", "nan", "NaN", "+nan", "-1", "-0.000001", "-inf", "-Infinity", "++inf", "infini",
		"1e300", "1e999", "253402300799.5", "253402300800", "99999999999999999999", "1,5", "1.2.3", "1s", " 1", "1 ", "1\n",
		"0x10", "0x1p4", "0X1P-2", "1_000", "0x_1p4", "1_0.5", "١", "true", "None",
	}
	for _, text := range texts {
		var field *sm.FieldError
		if got, err := sm.ParseTime(text); !errors.As(err, &field) || got != 0 || field.Value != text || field.Field != "" {
			t.Errorf("ParseTime(%q) = %d, %v", text, got, err)
		}
		if got, err := sm.ParseDuration(text); !errors.As(err, &field) || got != 0 || field.Value != text {
			t.Errorf("ParseDuration(%q) = %d, %v", text, got, err)
		}
		if got, err := sm.ParseLimit(text); text != "253402300800" && (!errors.As(err, &field) || got != 0 || field.Value != text) {
			t.Errorf("ParseLimit(%q) = %d, %v", text, got, err)
		}
	}
}

func TestParseLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sm.Limit{
		"0": 0, "3": 3, "007": 7, "+2": 2, "9223372036854775806": math.MaxInt64 - 1,
		"inf": sm.Unlimited, "+Infinity": sm.Unlimited,
	} {
		if got, err := sm.ParseLimit(text); err != nil || got != want {
			t.Errorf("ParseLimit(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"1.5", "1e3", "-1", "9223372036854775808", "0x1", "1_0"} {
		if got, err := sm.ParseLimit(text); err == nil {
			t.Errorf("ParseLimit(%q) = %d", text, got)
		}
	}
	if got := sm.Limit(12).Text() + " " + sm.Unlimited.Text(); got != "12 inf" {
		t.Errorf("texts of limits: %s", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for us, want := range map[int64]string{
		0: "0.000000", 1: "0.000001", 999999: "0.999999", 1000000: "1.000000", -1: "-0.000001", -2500000: "-2.500000",
		1795230670304874: "1795230670.304874", math.MaxInt64 - 1: "9223372036854.775806",
		math.MaxInt64: "inf", math.MinInt64: "-9223372036854.775808",
	} {
		if got := sm.Time(us).Text(); got != want {
			t.Errorf("Time(%d).Text() = %s, want %s", us, got, want)
		}
		if got := sm.Duration(us).Text(); got != want {
			t.Errorf("Duration(%d).Text() = %s, want %s", us, got, want)
		}
	}
}

func TestAddSub(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    sm.Time
		d    sm.Duration
		want sm.Time
	}{
		{5, 3, 8}, {5, -3, 2}, {sm.Never, 3, sm.Never}, {sm.Never, -3, sm.Never}, {5, sm.Forever, sm.Never},
		{sm.Never - 3, 2, sm.Never - 1}, {sm.Never - 3, 3, sm.Never}, {sm.Never - 3, 4, sm.Never},
	} {
		if got := c.t.Add(c.d); got != c.want {
			t.Errorf("%d + %d = %d, want %d", c.t, c.d, got, c.want)
		}
	}
	if got := sm.Time(8).Sub(5); got != 3 {
		t.Errorf("8 - 5 = %d", got)
	}
	if got := sm.Never.Sub(5); got != sm.Forever {
		t.Errorf("never - 5 = %d", got)
	}
}

// TestTextRoundTrip: what is written is read back to the microsecond.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := sm.Time(rapid.Int64Range(0, lastMicro).Draw(t, "us"))
		if got, err := sm.ParseTime(want.Text()); err != nil || got != want {
			t.Fatalf("%d is written %s and read %d, %v", want, want.Text(), got, err)
		}
	})
}

// TestDecimalsAreExact: plain decimals of any length are rounded exactly, so that
// order survives reading.
func TestDecimalsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(0|[1-9][0-9]{0,10})(\.[0-9]{0,30})?`).Draw(t, "text")
		got, err := sm.ParseTime(text)
		if err != nil {
			t.Fatal(err)
		}
		if want := rounded(text); int64(got) != want {
			t.Fatalf("%s is read %d, want %d", text, got, want)
		}
	})
}

// rounded is the slow and obvious way: exact arithmetic, half up.
func rounded(text string) int64 {
	exact, _ := new(big.Rat).SetString(strings.TrimSuffix(text, "."))
	exact.Mul(exact, big.NewRat(1_000_000, 1)).Add(exact, big.NewRat(1, 2))
	return new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
}

// FuzzParse: whatever is read is a moment of this era or infinite, survives
// writing and reading, and a refusal names the value.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0", "inf", "-inf", "nan", "1e300", "0x1p4", "1_0", "1795230670.304874", "9.9999999", "253402300799.9999999", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := sm.ParseTime(text)
		var field *sm.FieldError
		if err != nil {
			if !errors.As(err, &field) || field.Value != text || got != 0 {
				t.Fatalf("ParseTime(%q) = %d, %v", text, got, err)
			}
			return
		}
		if got != sm.Never && (got < 0 || got > lastMicro) {
			t.Fatalf("ParseTime(%q) = %d is out of range", text, got)
		}
		if again, err := sm.ParseTime(got.Text()); err != nil || again != got {
			t.Fatalf("%q is read %d, then %d, %v", text, got, again, err)
		}
	})
}
