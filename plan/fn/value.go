package fn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// encode writes a value as it travels.
func encode(v any) (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it is for functions and programs
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), nil
}

// decode reads what was encoded or, of an output, what a program has written.
func decode(from string, output bool, into any) error {
	v := reflect.ValueOf(into).Elem()
	switch {
	case output && v.Kind() == reflect.String:
		v.SetString(from)
		return nil
	case output && v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(from))
		return nil
	}
	if err := json.Unmarshal([]byte(from), into); err != nil {
		return fmt.Errorf("%s is no %s: %w", excerpt(from), v.Type(), err)
	}
	return nil
}

// excerpt is a text as it is fit for an error.
func excerpt(text string) string {
	const longest = 60
	if len(text) > longest {
		return fmt.Sprintf("%q...", text[:longest])
	}
	return fmt.Sprintf("%q", text)
}
