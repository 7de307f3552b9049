package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// value is one RESP2 or RESP3 value with the bytes it was read from.
type value struct {
	kind  byte
	raw   []byte
	text  []byte  // simple and bulk values
	elems []value // aggregates
	null  bool
}

// readValue reads one whole value.
func readValue(r *bufio.Reader) (value, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return value{}, err //nolint:wrapcheck // io.EOF must stay io.EOF
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return value{}, fmt.Errorf("%w: %q", errProtocol, line)
	}
	v := value{kind: line[0], raw: line, text: line[1 : len(line)-2]}
	switch v.kind {
	case '$', '=', '!':
		return readBulk(r, v)
	case '*', '~', '>':
		return readElems(r, v, 1)
	case '%', '|':
		return readElems(r, v, 2)
	default:
		return v, nil
	}
}

func readBulk(r *bufio.Reader, v value) (value, error) {
	n, err := length(v)
	if err != nil || n < 0 {
		v.null = true
		return v, err
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return v, fmt.Errorf("reading %d bytes: %w", n, err)
	}
	v.raw = append(v.raw, body...)
	v.text = body[:n]
	return v, nil
}

func readElems(r *bufio.Reader, v value, each int) (value, error) {
	n, err := length(v)
	if err != nil || n < 0 {
		v.null = true
		return v, err
	}
	for range n * each {
		e, err := readValue(r)
		if err != nil {
			return v, err
		}
		v.raw = append(v.raw, e.raw...)
		v.elems = append(v.elems, e)
	}
	return v, nil
}

func length(v value) (int, error) {
	n, err := strconv.Atoi(string(v.text))
	if err != nil {
		return 0, fmt.Errorf("%w: length %q", errProtocol, v.text)
	}
	return n, nil
}

// decode turns a value into string, int64, []any, nil or *ReplyError.
func (v value) decode() any {
	switch {
	case v.null || v.kind == '_':
		return nil
	case v.kind == '-' || v.kind == '!':
		return &ReplyError{Text: string(v.text)}
	case v.kind == ':':
		n, _ := strconv.ParseInt(string(v.text), 10, 64)
		return n
	case v.kind == '*' || v.kind == '~' || v.kind == '>' || v.kind == '%':
		list := make([]any, 0, len(v.elems))
		for _, e := range v.elems {
			list = append(list, e.decode())
		}
		return list
	default:
		return string(v.text)
	}
}

// encode writes a command as an array of bulk strings.
func encode(args ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.Bytes()
}
