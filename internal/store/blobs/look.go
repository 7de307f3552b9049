package blobs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
)

// Doubtful says what cannot be of the blobs that are there, and of those that are wanted, in sentences: nothing if all is
// well. Who is putting a blob, or removing one, makes it say more; so look again.
func (s *Blobs) Doubtful(ctx context.Context) (found []string, err error) {
	hashes, err := s.Redis.ZRange(ctx, s.Keys.Blobs(), 0, -1).Result()
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("look at blobs", err)
	}
	records := make([]*redis.SliceCmd, len(hashes))
	var counted *redis.StringCmd
	err = s.Pipelined(ctx, "look at blobs", func(p redis.Pipeliner) {
		for i, hash := range hashes {
			records[i] = p.HMGet(ctx, s.Keys.Blob(hash), "size", "complete")
		}
		counted = p.HGet(ctx, s.Keys.Meta(), "blob_bytes")
	})
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	for i, hash := range hashes {
		r := conn.Reply(records[i].Val())
		sum += r.Number(0)
		if r.Text(1) == "" {
			continue // it is being put, or leaves when its time is over
		}
		part, err := s.missing(ctx, hash, r.Number(0))
		if err != nil {
			return nil, err
		}
		if part >= 0 {
			found = append(found, fmt.Sprintf("the upload of sha256 %s is not whole: part %d of it is missing", hash, part))
		}
	}
	if n, _ := strconv.ParseInt(counted.Val(), 10, 64); n != sum {
		found = append(found, fmt.Sprintf("uploads are counted with %d bytes, and have %d", n, sum))
	}
	return found, nil
}

// missing is the first part of a blob that is not there, or not as long as it should be; -1 for none.
func (s *Blobs) missing(ctx context.Context, hash string, size int64) (int64, error) {
	var sizes []*redis.IntCmd
	err := s.Pipelined(ctx, "look at a blob", func(p redis.Pipeliner) {
		for i := int64(0); i*Part < size; i++ {
			sizes = append(sizes, p.StrLen(ctx, s.Keys.BlobPart(hash, i)))
		}
	})
	for i, is := range sizes {
		if is.Val() != min(Part, size-int64(i)*Part) {
			return int64(i), err
		}
	}
	return -1, err
}

// HasBlob reports whether a blob is there.
func (s *Blobs) HasBlob(ctx context.Context, hash string) (bool, error) {
	_, err := s.Redis.HGet(ctx, s.Keys.Blob(hash), "complete").Result()
	if err != nil && !conn.AboutData(err) {
		return false, s.Failed("blob", err)
	}
	return err == nil, nil
}
