package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// fromJSON is the text of a JSON value.
func (f *Field) fromJSON(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	if bytes.HasPrefix(raw, []byte(`"`)) { // as most are
		return f.fromText(raw)
	}
	value, err := decoded(raw)
	if err != nil {
		return "", f.badJSON(raw)
	}
	switch v := value.(type) {
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

// fromText is the text of a JSON text.
func (f *Field) fromText(raw json.RawMessage) (text string, err error) {
	if inside := bytes.Trim(raw, `"`); len(raw) == len(inside)+2 && !bytes.ContainsFunc(inside, special) {
		text = string(inside)
	} else if json.Unmarshal(raw, &text) != nil {
		return "", f.badJSON(raw)
	}
	switch {
	case f.alone:
		return listText([]string{text}), nil
	case f.name == jsonArray, f.name == jsonObject, f.Name == "hold" && text == "":
		return "", f.badJSON(raw)
	}
	return text, nil
}

// special reports whether a character stands for something else in a JSON text, or cannot be in one.
func special(c rune) bool { return c < ' ' || c == '"' || c == '\\' || c == utf8.RuneError }

// decoded is a JSON value, whose numbers stay as they are written.
func decoded(raw json.RawMessage) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err //nolint:wrapcheck // the caller names the field
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

// meta is a map of texts, a JSON object in records.
func meta(field func(*Spec) *map[string]string) kind {
	return bind(kind{name: jsonObject, limits: "of texts", parse: checkMeta}, field, metaText, textsOf)
}

const jsonObject = "JSON object"

// textsOf is the map of a text that was parsed; nil for any other text.
func textsOf(text string) map[string]string {
	var m map[string]string
	if json.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	return m
}

// metaText is a map as records have it. What JSON would change becomes the text, as
// in listText.
func metaText(m map[string]string) string {
	for name, text := range m {
		if !utf8.ValidString(name + text) {
			return name + text
		}
	}
	text, _ := json.Marshal(m) //nolint:errchkjson // texts always can
	return string(text)
}

// MaxMeta is the most attributes of a task.
const MaxMeta = 32

// The longest name and text of an attribute, in bytes.
const (
	maxMetaName = 64
	maxMetaText = 1024
)

var metaName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// CheckMeta refuses attributes that no task can have.
func CheckMeta(m map[string]string) error {
	_, err := checkMeta(metaText(m))
	return named("meta", err)
}

func checkMeta(s string) (string, error) {
	var m map[string]string
	if s != "" && (json.Unmarshal([]byte(s), &m) != nil || !utf8.ValidString(s)) {
		return "", bad("", s, `an object of texts, such as {"tenant":"acme"}`)
	}
	if len(m) > MaxMeta {
		return "", bad("", s, "an object of at most "+strconv.Itoa(MaxMeta)+" names")
	}
	for name, text := range m {
		if len(name) > maxMetaName || !metaName.MatchString(name) {
			return "", bad("", name, "a name of small letters, digits and underscores that begins with a letter, of at most "+
				strconv.Itoa(maxMetaName)+" bytes")
		}
		if err := printed(maxMetaText)(text); err != nil {
			return "", err
		}
	}
	if len(m) == 0 {
		return "", nil
	}
	return metaText(m), nil
}

// jsonText is any JSON object, which may also stand in a text.
const jsonText = "JSON"

const maxParams = 64 << 10

// params is any JSON object.
func params(field func(*Spec) *json.RawMessage) kind {
	return bind(kind{name: jsonText, limits: "an object of at most 64 KiB", parse: checkParams}, field,
		func(raw json.RawMessage) string { return string(raw) }, func(s string) json.RawMessage { return json.RawMessage(s) })
}

const wantParams = `a JSON object, such as {"depth":3}`

// checkParams returns one text for an object, however it is written, so that the same work has the same digest: its names are sorted, and
// its numbers as they were.
func checkParams(s string) (string, error) {
	if s == "" || s == "null" { // as encoding/json writes a spec without any
		return "", nil
	}
	value, err := decoded(json.RawMessage(s))
	object, _ := value.(map[string]any)
	if err != nil || object == nil || !json.Valid([]byte(s)) || !utf8.ValidString(s) {
		return "", bad("", clean.Line(s, maxShown), wantParams)
	}
	text, _ := encode(object) // it was JSON
	kept := string(bytes.TrimSpace(text))
	const replaced = "\uFFFD"
	switch {
	case len(object) == 0:
		return "", nil
	case len(kept) > maxParams:
		return "", bad("", strconv.Itoa(len(kept))+" bytes", "at most "+strconv.Itoa(maxParams)+" bytes; hand larger values over in a file")
	case strings.Contains(kept, replaced) && !strings.Contains(s, replaced) && !strings.Contains(strings.ToLower(s), `\ufffd`):
		return "", bad("", clean.Line(s, maxShown), "a JSON object without unpaired surrogates, which stand for no character")
	}
	return kept, nil
}

// variables is a map of texts that may be secrets, a JSON object in records.
func variables(field func(*Spec) *map[string]string) kind {
	k := bind(kind{name: jsonObject, limits: "of texts, at most 64 KiB", parse: checkVariables}, field, variablesText, textsOf)
	k.secret = true
	return k
}

// variablesText is a map as records have it. A value that JSON would change becomes a NUL,
// so that it is refused by its name.
func variablesText(m map[string]string) string {
	sound := make(map[string]string, len(m))
	for name, value := range m {
		if !utf8.ValidString(value) {
			value = "\x00"
		}
		sound[name] = value
	}
	return metaText(sound)
}
