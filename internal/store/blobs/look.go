package blobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
)

// Doubtful says what cannot be of the blobs that are there, and of those that are wanted, in sentences: nothing if all is
// well. Who is putting a blob, or removing one, makes it say more; so look again.
func (s *Blobs) Doubtful(ctx context.Context) (found []string, err error) {
	sum := int64(0)
	for family, what := range map[conn.Family]string{conn.Uploads: "the upload", conn.Returned: "what a round returned"} {
		n, damaged, err := s.lookAt(ctx, family)
		if err != nil {
			return nil, err
		}
		sum += n
		for hash, part := range damaged {
			found = append(found, fmt.Sprintf("%s of sha256 %s is not whole: part %d of it is missing", what, hash, part))
		}
	}
	slices.Sort(found)
	counted, err := s.Redis.HGet(ctx, s.Keys.Meta(), "blob_bytes").Int64()
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("look at blobs", err)
	}
	if counted != sum {
		found = append(found, fmt.Sprintf("blobs are counted with %d bytes, and have %d", counted, sum))
	}
	return found, nil
}

// lookAt counts the bytes of the blobs of a family, and finds those that lack a part, the first of which is that.
func (s *Blobs) lookAt(ctx context.Context, f conn.Family) (sum int64, damaged map[string]int64, err error) {
	hashes, err := s.Redis.ZRange(ctx, s.Keys.Blobs(f), 0, -1).Result()
	if err != nil && !conn.AboutData(err) {
		return 0, nil, s.Failed("look at blobs", err)
	}
	damaged = map[string]int64{}
	for page := range slices.Chunk(hashes, lookPage) {
		records := make([]*redis.SliceCmd, len(page))
		err = s.Pipelined(ctx, "look at blobs", func(p redis.Pipeliner) {
			for i, hash := range page {
				records[i] = p.HMGet(ctx, s.Keys.Blob(f, hash), "size", "complete")
			}
		})
		for i, hash := range page {
			if err != nil {
				return 0, nil, err
			}
			r := conn.Reply(records[i].Val())
			sum += r.Number(0)
			if r.Text(1) == "" {
				continue // it is being put, or leaves when its time is over
			}
			var part int64
			if part, err = s.missing(ctx, blob{family: f, hash: hash}, r.Number(0)); part >= 0 {
				damaged[hash] = part
			}
		}
	}
	return sum, damaged, err
}

// lookPage is how many records are read at once.
const lookPage = 500

// missing is the first part of a blob that is not there, or not as long as it should be; -1 for none.
func (s *Blobs) missing(ctx context.Context, b blob, size int64) (int64, error) {
	var sizes []*redis.IntCmd
	err := s.Pipelined(ctx, "look at a blob", func(p redis.Pipeliner) {
		for i := int64(0); i*Part < size; i++ {
			sizes = append(sizes, p.StrLen(ctx, s.Keys.BlobPart(b.family, b.hash, i)))
		}
	})
	for i, is := range sizes {
		if is.Val() != min(Part, size-int64(i)*Part) {
			return int64(i), err
		}
	}
	return -1, err
}

// BlobSize is how many bytes an upload has, and whether it is there.
func (s *Blobs) BlobSize(ctx context.Context, hash string) (size int64, there bool, err error) {
	record, err := s.Redis.HMGet(ctx, s.Keys.Blob(conn.Uploads, hash), "size", "complete").Result()
	if err != nil && !conn.AboutData(err) {
		return 0, false, s.Failed("blob", err)
	}
	r := conn.Reply(record)
	return r.Number(0), r.Text(1) != "", nil
}

// BlobLimit is the most bytes of a blob that is put.
func (s *Blobs) BlobLimit(ctx context.Context) (int64, error) {
	limit, err := s.Redis.HGet(ctx, s.Keys.Meta(), "blob_limit").Int64()
	switch {
	case err == nil:
		return limit, nil
	case conn.IsNil(err) || conn.AboutData(err): // no server has published one
		return defaultLimit, nil
	default:
		return 0, s.Failed("blob limit", err)
	}
}

// FilesUntil is until when what a round returned is kept; the zero time if it is gone.
func (s *Blobs) FilesUntil(ctx context.Context, hash string) (time.Time, error) {
	till, err := s.Redis.ZScore(ctx, s.Keys.Blobs(conn.Returned), hash).Result()
	if err != nil && !conn.AboutData(err) {
		return time.Time{}, s.Failed("files", err)
	}
	if till == 0 {
		return time.Time{}, nil
	}
	return time.Unix(int64(till), 0).UTC(), nil
}
