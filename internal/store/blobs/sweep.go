package blobs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

const (
	// lookAgain is after how long it is looked again whether something refers to a blob.
	lookAgain = 10 * time.Minute
	// sweepPage is how many blobs one call of [Blobs.Sweep] judges, walkPage how many records are read at a time, and
	// stepsPage of how many plans the steps are, which may have 1 MiB each.
	sweepPage, walkPage, stepsPage = 100, 500, 10
)

// dueBlob is a blob whose time is over.
type dueBlob struct {
	blob

	till string
	// witness is a task that referred to it when somebody looked last, 0 for none known.
	witness int64
}

// Sweep removes uploads that nothing refers to, and what rounds have returned whose time is over. It returns how many
// blobs of each are gone. A damaged one does not keep the others.
func (s *Blobs) Sweep(ctx context.Context) (uploads, returned int, err error) {
	uploads, err = s.sweepUploads(ctx)
	for !errors.Is(err, task.ErrUnreachable) && ctx.Err() == nil {
		n := 0
		due, failed := s.due(ctx, conn.Returned)
		if failed == nil {
			n, failed = s.removeAll(ctx, due)
		}
		returned += n
		if n == 0 {
			return uploads, returned, errors.Join(err, failed)
		}
	}
	return uploads, returned, err
}

// sweepUploads removes the blobs whose [Lease] is over and that nothing refers to: no task that is in Redis, by its source or stdin, nor
// a step that is yet to be opened, nor a record. Of each blob one task is known that refers to it, the newest when somebody looked: only
// when that is gone, records are searched for another.
func (s *Blobs) sweepUploads(ctx context.Context) (removed int, err error) {
	due, err := s.due(ctx, conn.Uploads)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	for _, search := range []func(context.Context, []*dueBlob) (map[*dueBlob]int64, error){
		s.witnesses, s.newest, s.steps, s.records,
	} {
		found, err := search(ctx, due)
		if err != nil {
			return 0, err
		}
		if err := s.prolong(ctx, found); err != nil {
			return 0, err
		}
		due = slices.DeleteFunc(due, func(b *dueBlob) bool { _, refers := found[b]; return refers })
	}
	return s.removeAll(ctx, due)
}

// removeAll removes those that nobody has put again meanwhile.
func (s *Blobs) removeAll(ctx context.Context, due []*dueBlob) (removed int, err error) {
	for _, b := range due {
		gone, failed := s.remove(ctx, b.blob, 0, b.till)
		if errors.Is(failed, task.ErrUnreachable) || ctx.Err() != nil {
			return removed, failed
		}
		err = errors.Join(err, failed) // a damaged one does not keep the others
		if gone {
			removed++
		}
	}
	return removed, err
}

// due are blobs whose time is over.
func (s *Blobs) due(ctx context.Context, f conn.Family) ([]*dueBlob, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	over, err := s.Redis.ZRangeByScoreWithScores(ctx, s.Keys.Blobs(f), &redis.ZRangeBy{
		Min: "-inf", Max: "(" + now.Text(), Count: sweepPage,
	}).Result()
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("sweep", err)
	}
	due := make([]*dueBlob, len(over))
	records := make([]*redis.SliceCmd, len(over))
	err = s.Pipelined(ctx, "sweep", func(p redis.Pipeliner) {
		for i, z := range over {
			hash, _ := z.Member.(string)
			due[i] = &dueBlob{blob: blob{family: f, hash: hash}, till: strconv.FormatInt(int64(z.Score), 10)}
			records[i] = p.HMGet(ctx, s.Keys.Blob(f, hash), "after", "witness")
		}
	})
	for i, r := range records {
		record := conn.Reply(r.Val())
		due[i].after, due[i].witness = record.Number(0), record.Number(1)
	}
	return due, err
}

// prolong notes who refers to blobs, and looks again later.
func (s *Blobs) prolong(ctx context.Context, found map[*dueBlob]int64) error {
	for b, witness := range found {
		if _, err := s.keep(ctx, b.blob, 0, lookAgain, strconv.FormatInt(witness, 10)); err != nil {
			return err
		}
	}
	return nil
}

// witnesses finds the blobs that the task which is known still refers to.
func (s *Blobs) witnesses(ctx context.Context, due []*dueBlob) (map[*dueBlob]int64, error) {
	known := slices.DeleteFunc(slices.Clone(due), func(b *dueBlob) bool { return b.witness == 0 })
	ids := make([]int64, len(known))
	for i, b := range known {
		ids[i] = b.witness
	}
	found := map[*dueBlob]int64{}
	wanted, err := s.wanted(ctx, ids)
	for i, b := range known {
		if err == nil && slices.Contains(wanted[i], b.hash) {
			found[b] = b.witness
		}
	}
	return found, err
}

// newest finds the newest task that refers to each blob, as far as there is one.
func (s *Blobs) newest(ctx context.Context, due []*dueBlob) (map[*dueBlob]int64, error) {
	missing := map[string]*dueBlob{}
	first := int64(0)
	for _, b := range due {
		if len(missing) == 0 || b.after < first {
			first = b.after
		}
		missing[b.hash] = b
	}
	found := map[*dueBlob]int64{}
	last, err := s.tasks.LastID(ctx)
	if err != nil || len(missing) == 0 || last <= first {
		return found, err
	}
	spans, err := s.tasks.Spans(ctx, first+1, last)
	for _, span := range slices.Backward(spans) {
		for to := span.Last; to >= span.First && len(missing) > 0 && err == nil; to -= walkPage {
			err = s.search(ctx, max(span.First, to-walkPage+1), to, missing, found)
		}
	}
	return found, err
}

// search moves those of the missing blobs to the found ones that tasks from one id to another refer to.
func (s *Blobs) search(ctx context.Context, from, to int64, missing map[string]*dueBlob, found map[*dueBlob]int64) error {
	ids := make([]int64, 0, to-from+1)
	for id := to; id >= from; id-- {
		ids = append(ids, id)
	}
	wanted, err := s.wanted(ctx, ids)
	for i, hashes := range wanted {
		for _, hash := range hashes {
			if b := missing[hash]; b != nil {
				found[b] = ids[i]
				delete(missing, hash)
			}
		}
	}
	return err
}

// wanted are the hashes that tasks refer to, by source and stdin; none for one that is not there.
func (s *Blobs) wanted(ctx context.Context, ids []int64) ([][]string, error) {
	records, err := s.tasks.Fields(ctx, ids, "source", "stdin")
	hashes := make([][]string, len(records))
	for i, r := range records {
		hashes[i] = []string{task.SourceSHA256(r["source"]), task.SourceSHA256(r["stdin"])}
	}
	return hashes, err
}

// steps finds the blobs that a step refers to that a plan has yet to open.
func (s *Blobs) steps(ctx context.Context, due []*dueBlob) (map[*dueBlob]int64, error) {
	found := map[*dueBlob]int64{}
	if len(due) == 0 {
		return found, nil
	}
	plans, err := s.Redis.ZRange(ctx, s.Keys.Plans(), 0, -1).Result()
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("sweep", err)
	}
	for page := range slices.Chunk(plans, stepsPage) {
		templates := make([]*redis.StringCmd, len(page))
		err := s.Pipelined(ctx, "sweep", func(p redis.Pipeliner) {
			for i, id := range page {
				templates[i] = p.HGet(ctx, s.Keys.Growth(task.PlanID(conn.IDOf(id))), "template")
			}
		})
		if err != nil {
			return nil, err
		}
		for _, b := range due {
			if slices.ContainsFunc(templates, func(t *redis.StringCmd) bool { return strings.Contains(t.Val(), b.hash) }) {
				found[b] = 0
			}
		}
	}
	return found, nil
}

// records finds the blobs that a record refers to, such as a series by the task that it opens.
func (s *Blobs) records(ctx context.Context, due []*dueBlob) (map[*dueBlob]int64, error) {
	found := map[*dueBlob]int64{}
	for _, kind := range task.RecordKinds() {
		for after := ""; len(due) > 0; {
			names, err := s.tasks.RecordNames(ctx, kind, after, stepsPage)
			if err != nil && conn.AboutData(err) || err == nil && len(names) == 0 {
				break
			}
			var page []task.Record
			if err == nil {
				page, err = s.tasks.RecordsNamed(ctx, kind, names)
			}
			if err != nil {
				return nil, err
			}
			for _, b := range due {
				if slices.ContainsFunc(page, func(r task.Record) bool { return strings.Contains(r.Value, b.hash) }) {
					found[b] = 0
				}
			}
			after = names[len(names)-1]
		}
	}
	return found, nil
}
