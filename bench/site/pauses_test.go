package site

import (
	"testing"
	"time"
)

func TestPauses(t *testing.T) {
	t.Parallel()
	var p Pauses // all are counted
	if got := p.Expected(time.Second); got != 0 {
		t.Errorf("expects %v before it has looked", got)
	}
	p.Watch(t.Context(), time.Millisecond)
	p.Watch(t.Context(), time.Millisecond)
	if p.Watched < 2*watchSpell || p.Count == 0 || p.Longest == 0 || p.Longest > p.Watched {
		t.Errorf("%+v", p)
	}
	p = Pauses{Limit: time.Hour, Watched: 4 * time.Second, Count: 2}
	p.spell()
	if p.Count != 2 {
		t.Errorf("%+v", p)
	}
	p.Watched = 4 * time.Second
	if mean, most := p.Expected(10*time.Second), p.Chance(10*time.Second); mean != 5 || most != 12.5 {
		t.Errorf("expects %v, at most %v", mean, most)
	}
}
