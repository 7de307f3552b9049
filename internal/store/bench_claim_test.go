package store_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// BenchmarkClaimBehind claims single tasks with none, and with a million, waiting
// in front that this worker may not run: of another env, not due, and of a full queue. With -short a hundredth of that.
func BenchmarkClaimBehind(b *testing.B) {
	many := 1_000_000
	if testing.Short() {
		many = 10_000
	}
	for _, n := range []int{0, many} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			sp := storetest.New(b)
			full := task.ParseQueue("full", nil)
			full.Threads = task.AtMost(0)
			sp.AddQueue(b, full)
			benchmarkCrowd(b, sp, n/2, task.Bucket{Env: "java"}, task.Bucket{Queue: "full"})
			benchmarkOpen(b, sp, b.N, 100)
			buckets := []task.Bucket{{}, {Env: "java"}, {Queue: "full"}}
			benchmarkTurns(b, sp, task.Candidates(buckets, []task.QueueSpec{full}, task.Offer{}))
		})
	}
}

// benchmarkCrowd fills buckets without the tasks themselves: a claim that does not
// look at them does not miss them.
func benchmarkCrowd(b *testing.B, sp *storetest.Space, n int, buckets ...task.Bucket) {
	b.Helper()
	for _, bucket := range buckets {
		for first := 0; first < n; first += 1000 {
			members := make([]redis.Z, 1000)
			for i := range members {
				members[i] = redis.Z{Score: 1, Member: fmt.Sprintf("h%08d", first+i)}
			}
			if err := sp.Raw.ZAdd(b.Context(), sp.Key("ready:"+bucket.Name()), members...).Err(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkClaimMany claims single tasks from 20 queues with 5 buckets each, where
// one bucket has work, and where all have.
func BenchmarkClaimMany(b *testing.B) {
	for _, filled := range []int{1, 100} {
		b.Run(strconv.Itoa(filled), func(b *testing.B) {
			sp := storetest.New(b)
			turns := make([]task.Candidate, 20)
			for i := range turns {
				q := task.ParseQueue(fmt.Sprint("q", i), nil)
				q.Threads, q.MaxThreads = task.AtMost(1_000_000), task.AtMost(1_000_000)
				sp.AddQueue(b, q)
				turns[i] = task.Candidate{Queue: q}
				for p := range 5 {
					turns[i].Buckets = append(turns[i].Buckets, task.Bucket{Queue: q.Name, Priority: p})
				}
			}
			for n := range filled {
				bucket := turns[n%20].Buckets[n/20]
				specs := make([]task.Definition, 100)
				for i := range specs {
					specs[i] = storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, bucket) })
				}
				for left := b.N/filled + 1; left > 0; left -= 100 {
					sp.Open(b, specs[:min(left, 100)]...)
				}
			}
			benchmarkTurns(b, sp, turns)
		})
	}
}

// benchmarkTurns claims b.N tasks one by one, on a node with a cap.
func benchmarkTurns(b *testing.B, sp *storetest.Space, turns []task.Candidate) {
	b.Helper()
	b.ResetTimer()
	for i := range b.N {
		r, err := sp.Store.Claim(b.Context(), tasks.ClaimRequest{
			Worker: "w", Request: conn.NewToken(), Candidates: turns, First: i, Max: 1, Node: "n", MaxThreads: task.AtMost(1_000_000),
		})
		if err != nil || len(r.Tasks) != 1 {
			b.Fatalf("claim %d: %+v, error %v", i, r, err)
		}
	}
}
