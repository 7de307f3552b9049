package store

import (
	"strconv"

	"github.com/tdf-go/tdf/internal/route"
)

// Bucket says where a ready task waits; see package route.
type Bucket = route.Bucket

// DefaultQueue is the queue of a task that does not name one.
const DefaultQueue = route.DefaultQueue

// bucketOf reads a name in the list of buckets. One that is no name, by hand,
// becomes a bucket that no worker takes from.
func bucketOf(name string) Bucket {
	b, err := route.ParseBucket(name)
	if err != nil {
		return Bucket{Env: name}
	}
	return b
}

// member is how an id stands in a bucket: a letter for its number of digits
// and the digits, so that the order of the bytes is the order of the numbers
// and tasks with equal scores are claimed first in, first out.
func member(id int64) string {
	digits := strconv.FormatInt(id, 10)
	return string(rune('a'+len(digits)-1)) + digits
}
