package top

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestRates(t *testing.T) {
	t.Parallel()
	sc, s := scripted()
	drive(s, s.Init())
	if got := s.meters.done.short().String() + s.meters.queue("default").String(); got != "--" {
		t.Errorf("rates of one snapshot: %s", got)
	}
	for range 3 { // 180 done in 90 s, of which the last 60 s had 160
		sc.now = sc.now.Add(30 * time.Second)
		sc.snapshot.Done += 80
		if sc.now.Equal(start.Add(30 * time.Second)) {
			sc.snapshot.Done -= 60
		}
		sc.snapshot.Failed += 3
		sc.snapshot.Queues[0].Ended[statemachine.Succeeded] += 50 // of which 5 were failures, and are retried
		sc.snapshot.Queues[0].Ended[statemachine.Failed] -= 10
		sc.snapshot.Queues[0].Retried += 5
		s.Update(s.feed.read())
	}
	for name, c := range map[string]struct {
		got  rate
		want float64
	}{
		"done in 1m":     {s.meters.done.short(), 160.0 / 60},
		"done":           {s.meters.done.long(), 2},
		"failures in 1m": {s.meters.failed.short(), 0.1},
		"failures":       {s.meters.failed.long(), 0.1},
		"default":        {s.meters.queue("default"), 1.5},
		"licensed":       {s.meters.queue("licensed"), 0},
	} {
		if !c.got.known || c.got.perSecond != c.want {
			t.Errorf("%s: %+v, want %v", name, c.got, c.want)
		}
	}
	sc.snapshot.Queues = nil
	s.Update(s.feed.read())
	if s.meters.queue("default").known || len(s.meters.queues) != 0 {
		t.Error("a queue that is gone still has a rate")
	}
}

func TestMeterStartsAfresh(t *testing.T) {
	t.Parallel()
	for name, odd := range map[string]reading{
		"counter fell":    {start.Add(time.Second), 5},
		"clock went back": {start.Add(-time.Hour), 200},
	} {
		m := meter{}
		m.add(reading{start, 100})
		m.add(odd)
		if m.short().known || m.long().known {
			t.Errorf("%s: %v", name, m.short())
		}
		m.add(reading{odd.at.Add(2 * time.Second), odd.n + 8})
		if m.short().perSecond != 4 || m.long().perSecond != 4 {
			t.Errorf("%s: then %v, %v", name, m.short(), m.long())
		}
	}
}

func TestMeterAfterALongPause(t *testing.T) {
	t.Parallel()
	m := meter{}
	for i := range 100 {
		m.add(reading{start.Add(time.Duration(i) * time.Second), int64(i)})
	}
	if len(m.recent) != 61 {
		t.Errorf("%d readings are kept, 61 are needed", len(m.recent))
	}
	m.add(reading{start.Add(time.Hour), 99 + 3501*2})
	if len(m.recent) != 2 || m.short().perSecond != 2 {
		t.Errorf("%d readings, %v", len(m.recent), m.short())
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{rate{}.String(), "-"}, {rate{0, true}.String(), "0"}, {rate{0.0123, true}.String(), "0.012"},
		{rate{12.34, true}.String(), "12.3"}, {rate{1234.5, true}.String(), "1234"},
		{span(-time.Second), "0s"}, {span(59 * time.Second), "59s"}, {span(185 * time.Second), "3m05s"},
		{span(2*time.Hour + 13*time.Minute), "2h13m"}, {span(98 * time.Hour), "4d02h"},
		{age(start, time.Time{}), "-"}, {age(start, start.Add(time.Minute)), "0s"},
		{limit(task.Unlimited), "-"}, {limit(task.AtMost(0)), "0"}, {limit(task.AtMost(7)), "7"},
		{text(""), "-"}, {text("a\tb\x00"), `a\tb\x00`}, {firstLine("\n\n one\r\ntwo"), "one"}, {firstLine(" \n"), "-"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
