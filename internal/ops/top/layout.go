package top

// split is the least number of lines with which all panels are shown, not only
// the active one; each panel has two lines beside its rows.
const (
	frame = 2
	split = panels * (frame + 2)
)

// layout is where the lines of the screen go.
type layout struct {
	header []string
	banner string
	shown  [panels]bool
	rows   [panels]int // how many rows each panel has room for
}

// layout gives the header its share, the footer one line and the panels the rest.
func (s *screen) layout() layout {
	l := layout{header: s.header(max(1, s.height/4)), banner: s.banner()}
	room := s.height - len(l.header) - 1
	if l.banner != "" {
		room--
	}
	if room < split {
		l.shown[s.active] = true
		l.rows[s.active] = max(0, room-frame)
		return l
	}
	s.share(&l, room)
	return l
}

// share gives each panel what it needs up to a third, and what is left to
// those that need more, the active one first.
func (s *screen) share(l *layout, room int) {
	left := room
	for i := range panels {
		l.shown[i] = true
		l.rows[i] = min(s.need(i), room/panels-frame)
		left -= frame + l.rows[i]
	}
	for turn := range panels {
		i := (s.active + turn) % panels
		more := min(left, s.need(i)-l.rows[i])
		l.rows[i] += more
		left -= more
	}
}

// need is how many rows a panel would fill; one says that there are none.
func (s *screen) need(panel int) int { return max(1, len(s.tables[panel].rows)) }
