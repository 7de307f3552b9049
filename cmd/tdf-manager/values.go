package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// parseWhen reads a moment: seconds since 1970, RFC 3339, "+10m" from now, or
// "inf". An empty text is the zero time.
func parseWhen(field, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if later, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := config.ParseDuration(later); err == nil {
			return now.Add(d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := statemachine.ParseTime(text)
	if err != nil {
		return time.Time{}, &statemachine.FieldError{
			Field: field, Value: text, Want: "a time such as 1795230670.5, 2026-11-21T08:00:00Z, +10m or inf",
		}
	}
	return time.UnixMicro(int64(t)), nil
}

// parseSpan reads a duration above 0, or "inf". An empty text is 0.
func parseSpan(field, text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case "inf":
		return manager.Forever, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, &statemachine.FieldError{
			Field: field, Value: text, Want: "a duration above 0 such as 90, 1h30m or inf",
		}
	}
	return d, nil
}

// parseDelay is parseSpan that takes 0 too, which is no delay whatever the
// defaults are.
func parseDelay(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		return 0, &statemachine.FieldError{Field: field, Value: text, Want: "a duration such as 0, 30 or 5m"}
	case d == 0:
		return manager.NoDelay, nil
	default:
		return d, nil
	}
}

// parseCount reads a limit, or "unlimited". An empty text is nil.
func parseCount(field, text string) (*int, error) {
	switch text {
	case "":
		return nil, nil //nolint:nilnil // nil means: the default
	case route.Unlimited, "inf":
		return new(manager.Unlimited), nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, &statemachine.FieldError{
			Field: field, Value: text, Want: "a whole number that is not negative, or " + route.Unlimited,
		}
	}
	return new(int(n)), nil
}

// parsePriority reads a priority. An empty text is nil.
func parsePriority(text string) (*int, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil means: the default
	}
	n, err := route.ParsePriority(text)
	return &n, err
}

// parseNumber reads a number. An empty text is nil. What it may be is checked
// with the rest of the task.
func parseNumber(field, text string) (*float64, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil means: the default
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, &statemachine.FieldError{Field: field, Value: text, Want: "a number such as 0.5 or 2"}
	}
	return &f, nil
}

// noneText stands for an empty list, whatever the defaults are.
const noneText = "none"

// parseLabels reads label=value pairs. An empty text is nil, none an empty list.
func parseLabels(text string) ([]string, error) {
	switch text {
	case "":
		return nil, nil
	case noneText:
		return []string{}, nil
	}
	canonical, err := route.ParseLabels(text)
	return strings.Split(canonical, ","), err
}

// parseResources reads name=number pairs. An empty text is nil, none an empty map.
func parseResources(text string) (map[string]int, error) {
	switch text {
	case "":
		return nil, nil //nolint:nilnil // nil means: the default
	case noneText:
		return map[string]int{}, nil
	}
	return route.ParseResources(text)
}

// parseCodes reads exit codes. An empty text is nil, none an empty list.
func parseCodes(field, text string) ([]int, error) {
	switch text {
	case "":
		return nil, nil
	case noneText:
		return []int{}, nil
	}
	canonical, err := route.ParseDefault(field, text)
	if err != nil {
		return nil, err
	}
	var codes []int
	for word := range strings.SplitSeq(canonical, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, &statemachine.FieldError{Field: field, Value: text, Want: "exit codes such as 1,2,75"}
		}
		codes = append(codes, n)
	}
	return codes, nil
}
