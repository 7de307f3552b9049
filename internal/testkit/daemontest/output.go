package daemontest

import (
	"bytes"
	"sync"
)

// Output gathers what a program prints, and may be read meanwhile. The zero value
// is empty.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the text; it never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, _ := o.text.Write(p) // a buffer takes all
	return n, nil
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
