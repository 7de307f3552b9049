package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// fromJSON is the text of a JSON value.
func (f *Field) fromJSON(raw json.RawMessage) (string, error) {
	value, err := decoded(raw)
	if err != nil {
		return "", f.badJSON(raw)
	}
	switch v := value.(type) {
	case string:
		if f.alone {
			return listText([]string{v}), nil
		}
		if f.name != jsonArray && f.name != jsonObject && (f.Name != "hold" || v != "") {
			return v, nil
		}
	case json.Number:
		if f.number {
			return v.String(), nil
		}
	case bool:
		if f.Name == "hold" {
			return map[bool]string{true: HeldText}[v], nil
		}
	case []any:
		return f.several(raw, jsonArray, itemsText(v))
	case map[string]any:
		if f.name == jsonText {
			return string(raw), nil
		}
		return f.several(raw, jsonObject, paired(v))
	}
	return "", f.badJSON(raw)
}

// decoded is a JSON value, whose numbers stay as they are written.
func decoded(raw json.RawMessage) (value any, err error) {
	if bytes.HasPrefix(raw, []byte(`"`)) { // as most are: making a decoder takes longer than reading it
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err //nolint:wrapcheck // the caller names the field
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err //nolint:wrapcheck // the same
}

// several is the text of an array or an object, for a field of that form; text is that of a list.
func (f *Field) several(raw json.RawMessage, form, text string) (string, error) {
	switch {
	case f.name == form:
		return string(raw), nil
	case f.list:
		return text, nil
	}
	return "", f.badJSON(raw)
}

// badJSON is the error for a value that cannot be.
func (f *Field) badJSON(raw json.RawMessage) error {
	if f.secret {
		return bad("", clean.Hidden, f.wantJSON())
	}
	return bad("", string(raw), f.wantJSON())
}

// HeldText is the reason of a task that is held without one.
const HeldText = "held when it was opened"

// wantJSON says what a JSON value has to be.
func (f *Field) wantJSON() string {
	switch {
	case f.Name == "hold":
		return "true, false, or the reason as a text"
	case f.alone:
		return "a text or a list of texts"
	case f.name == jsonArray:
		return "a list of texts"
	case f.secret:
		return wantVariables
	case f.name == jsonText:
		return wantParams
	case f.name == jsonObject:
		return `an object of texts, such as {"tenant":"acme"}`
	case f.limits == ofCodes:
		return "exit codes such as [1,2,75]"
	case f.list:
		return `pairs such as {"a":1} or ["a=1"]`
	case f.number:
		return "a number or a text"
	default:
		return "a text"
	}
}

// itemsText is the text of a list.
func itemsText(list []any) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return orNoneText(texts)
}

// paired is the text of an object.
func paired(object map[string]any) string {
	texts := make([]string, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		texts = append(texts, fmt.Sprintf("%s=%v", key, object[key]))
	}
	return orNoneText(texts)
}

func orNoneText(texts []string) string {
	if len(texts) == 0 {
		return emptyList
	}
	return strings.Join(texts, ",")
}

// emptyList stands for an empty list, whatever the defaults are.
const emptyList = "none"
