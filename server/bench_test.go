package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// BenchmarkPass settles tasks that have been executed; the time is that of one.
func BenchmarkPass(b *testing.B) {
	sp := storetest.New(b)
	s, err := assemble(withDefaults("server", sp.Dial(b)))
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		sp.Open(b, storetest.Spec())
		for _, t := range sp.Claim(b, "w", 1) {
			if out := sp.Report(b, &t, "33\n", ""); out.Err != nil {
				b.Fatal(out.Err)
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for settled := 0; settled < b.N; {
		n, _, err := s.pass(b.Context())
		if err != nil || n == 0 {
			b.Fatalf("%d of %d tasks settled: %v", settled, b.N, err)
		}
		settled += n
	}
}
