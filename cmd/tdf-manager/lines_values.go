package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// heldText is the reason of a task that is held without one.
const heldText = "held when it was opened"

// readHold takes a reason, or true for none in particular.
func readHold(raw json.RawMessage, into *string) error {
	var held bool
	if err := json.Unmarshal(raw, &held); err == nil && string(raw) != "null" {
		*into = map[bool]string{true: heldText}[held]
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil || *into == "" || string(raw) == "null" {
		return &statemachine.FieldError{Field: holdField, Value: string(raw), Want: "true, false, or the reason as a text"}
	}
	return nil
}

// readPairs takes pairs as {"gpu":1}, as ["gpu=1"], or as the text "gpu=1,mem=4".
func readPairs(name string, raw json.RawMessage, into *string) error {
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if decoder.Decode(&object) == nil && object != nil {
		pairs := make([]string, 0, len(object))
		for _, key := range slices.Sorted(maps.Keys(object)) {
			pairs = append(pairs, fmt.Sprintf("%s=%v", key, object[key]))
		}
		*into = cmp.Or(strings.Join(pairs, ","), noneText)
		return nil
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil && list != nil {
		*into = cmp.Or(strings.Join(list, ","), noneText)
		return nil
	}
	if json.Unmarshal(raw, into) == nil && string(raw) != "null" {
		return nil
	}
	return &statemachine.FieldError{Field: name, Value: string(raw), Want: `pairs such as {"a":1} or ["a=1"]`}
}

// readCodes takes [1,2] or the text "1,2".
func readCodes(name string, raw json.RawMessage, into *string) error {
	var list []int
	if json.Unmarshal(raw, &list) == nil && list != nil {
		texts := make([]string, len(list))
		for i, n := range list {
			texts[i] = strconv.Itoa(n)
		}
		*into = cmp.Or(strings.Join(texts, ","), noneText)
		return nil
	}
	if json.Unmarshal(raw, into) == nil && string(raw) != "null" {
		return nil
	}
	return &statemachine.FieldError{Field: name, Value: string(raw), Want: "exit codes such as [1,2,75]"}
}
