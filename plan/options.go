package plan

import (
	"crypto/rand"

	"github.com/tdf-go/tdf/manager"
)

// Option changes how a plan is made or opened.
type Option func(*options)

type options struct {
	onFailure manager.OnFailure
	key       string
}

// OnFailure says what the plan does where a task fails for good; without it,
// what needs the task is cancelled. [Open] does not look at it.
func OnFailure(do manager.OnFailure) Option {
	return func(o *options) { o.onFailure = do }
}

// WithRequestKey names what this program builds, for 24 hours: given again, with
// the same tasks sent in the same portions, the plan and its tasks are those of
// the first time. A task that adds to its own plan uses a key with its own id in
// it, because it may be run more than once.
func WithRequestKey(key string) Option {
	return func(o *options) { o.key = key }
}

func newOptions(opts []Option) options {
	o := options{key: rand.Text()}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
