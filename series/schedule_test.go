package series

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// times lists when a calendar is due from a moment on.
func times(t *testing.T, cron, zone, from string, n int) string {
	t.Helper()
	c, err := newCalendar(cron, zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", from, c.zone)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for range n {
		at = c.next(at)
		list = append(list, at.In(c.zone).Format("02 15:04-0700"))
	}
	return strings.Join(list, ", ")
}

// A time that the clocks skip is due when they go on, once; one that they show twice is due the first time, or both times if the hour
// is left open. All zones keep their rules for these dates.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, cron, zone, from, want string }{
		{"put forward, in the gap", "30 2 * * *", "Europe/Berlin", "2024-03-30 00:00",
			"30 02:30+0100, 31 03:00+0200, 01 02:30+0200"},
		{"put forward, at its ends", "0 2,3 * * *", "Europe/Berlin", "2024-03-31 00:00", "31 03:00+0200, 01 02:00+0200, 01 03:00+0200"},
		{"put forward, any hour", "*/30 * * * *", "Europe/Berlin", "2024-03-31 01:00",
			"31 01:30+0100, 31 03:00+0200, 31 03:30+0200"},
		{"put back, twice there", "30 2 * * *", "Europe/Berlin", "2024-10-26 12:00", "27 02:30+0200, 28 02:30+0100"},
		{"put back, any hour", "*/30 * * * *", "Europe/Berlin", "2024-10-27 01:59",
			"27 02:00+0200, 27 02:30+0200, 27 02:00+0100, 27 02:30+0100, 27 03:00+0100"},
		{"put back, hours named", "0 1-4 * * *", "Europe/Berlin", "2024-10-27 00:59",
			"27 01:00+0200, 27 02:00+0200, 27 03:00+0100, 27 04:00+0100"},
		{"New York, forward", "15 2 * * *", "America/New_York", "2024-03-09 03:00", "10 03:00-0400, 11 02:15-0400"},
		{"New York, back", "15 1 * * *", "America/New_York", "2024-11-02 03:00", "03 01:15-0400, 04 01:15-0500"},
		{"New York, back, any hour", "0 * * * *", "America/New_York", "2024-11-03 00:30",
			"03 01:00-0400, 03 01:00-0500, 03 02:00-0500"},
		{"half an hour, forward", "15 2 * * *", "Australia/Lord_Howe", "2024-10-05 03:00", "06 02:30+1100, 07 02:15+1100"},
		{"half an hour, back", "45 1 * * *", "Australia/Lord_Howe", "2024-04-06 03:00", "07 01:45+1100, 08 01:45+1030"},
		{"half an hour, back, any hour", "15,45 * * * *", "Australia/Lord_Howe", "2024-04-07 00:50",
			"07 01:15+1100, 07 01:45+1100, 07 01:45+1030, 07 02:15+1030"},
		{"no midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-02 12:00", "03 00:00-0300, 04 01:00-0200, 05 00:00-0200"},
		{"midnight twice", "0 0 * * *", "America/Sao_Paulo", "2018-02-16 12:00", "17 00:00-0200, 18 00:00-0300, 19 00:00-0300"},
		{"before a second midnight", "30 23 * * *", "America/Sao_Paulo", "2018-02-16 12:00", "16 23:30-0200, 17 23:30-0200, 18 23:30-0300"},
		{"a day that is not there", "0 12 * * *", "Pacific/Apia", "2011-12-28 13:00", "29 12:00-1000, 31 00:00+1400, 31 12:00+1400"},
		{"no change", "@daily", "UTC", "2024-02-28 12:00", "29 00:00+0000, 01 00:00+0000"},
	} {
		n := strings.Count(c.want, ",") + 1
		if got := times(t, c.cron, c.zone, c.from, n); got != c.want {
			t.Errorf("%s: %s in %s\n got %s\nwant %s", c.what, c.cron, c.zone, got, c.want)
		}
	}
}

// slow finds when a calendar is due by a look at each minute.
func slow(c *calendar, t time.Time) time.Time {
	minute := func(wall time.Time) bool { return c.spec.Next(wall.Add(-time.Minute)).Equal(wall) }
	shownBefore := func(at, wall time.Time) bool { // whether the clocks showed it in the three hours before
		for b := at.Add(-3 * time.Hour); b.Before(at); b = b.Add(time.Minute) {
			if c.shown(b).Equal(wall) {
				return true
			}
		}
		return false
	}
	for at := t.Truncate(time.Minute).Add(time.Minute); ; at = at.Add(time.Minute) {
		wall := c.shown(at)
		if minute(wall) && (c.anyHours || !shownBefore(at, wall)) {
			return at
		}
		for skipped := c.shown(at.Add(-time.Minute)).Add(time.Minute); skipped.Before(wall); skipped = skipped.Add(time.Minute) {
			if minute(skipped) {
				return at
			}
		}
	}
}

// The times of a calendar are those that a look at each minute finds, and last finds what next does.
func TestCalendarTwin(t *testing.T) {
	t.Parallel()
	from := map[string]string{
		"Europe/Berlin": "2024-03-31 00:00 2024-10-27 00:00", "America/New_York": "2024-03-10 00:00 2024-11-03 00:00",
		"Australia/Lord_Howe": "2024-10-06 00:00 2024-04-07 00:00", "America/Sao_Paulo": "2018-11-03 22:00 2018-02-17 22:00",
	}
	for zone, days := range from {
		for _, text := range []string{"*/7 * * * *", "30 * * * *", "*/20 0-3 * * *", "10 2 * * *", "45 1,2 * * *", "0 0,23 * * *", "0 */2 * * *"} {
			c, err := newCalendar(text, zone)
			if err != nil {
				t.Fatal(err)
			}
			for _, day := range []string{days[:16], days[17:]} {
				begin, _ := time.ParseInLocation("2006-01-02 15:04", day, c.zone)
				for range 8 {
					at := begin.Add(time.Duration(rand.IntN(5*3600)) * time.Second)
					got, want := c.next(at), slow(c, at)
					if !got.Equal(want) {
						t.Fatalf("%s in %s after %v: %v, want %v", text, zone, at, got.In(c.zone), want.In(c.zone))
					}
					if last := c.last(begin.Add(-72*time.Hour), got.Add(30*time.Second)); !last.Equal(got) {
						t.Fatalf("%s in %s: the last until %v is %v", text, zone, got, last)
					}
				}
			}
		}
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	from := time.Unix(1000, 0)
	i := interval{from: from, every: 10 * time.Second}
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for after, want := range map[int64]int64{0: 1000, 999: 1000, 1000: 1010, 1009: 1010, 1010: 1020} {
		if got := i.next(at(after)); !got.Equal(at(want)) {
			t.Errorf("after %d: %v", after, got.Unix())
		}
	}
	got := []time.Time{i.last(at(1000), at(1039)), i.last(at(1035), at(1039)), i.last(from, at(999)), i.last(from, at(1000))}
	if diff := cmp.Diff([]time.Time{at(1030), {}, {}, at(1000)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCalendarRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"* * * *", "UTC", "cron"}, {"TZ=UTC * * * * *", "UTC", "without a zone"}, {"@every 1h", "UTC", "every"}, {"0 0 30 2 *", "UTC", "that comes"},
		{"@daily", "Nowhere/Else", "zone"}, {"@daily", "Local", "zone"}, {"61 * * * *", "UTC", "cron"},
	} {
		if _, err := newCalendar(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q in %s: error %v", c[0], c[1], err)
		}
	}
}
