package shim

// memory is what the counters of the slot's cgroup said before a round.
type memory struct {
	kills int64
	peak  bool // the peak is this round's own
}

// memoryBefore reads the counters, where there are any.
func (s *Slot) memoryBefore() memory {
	if s.group == nil || s.container.options.MemoryMax == 0 {
		return memory{}
	}
	// What cannot be read counts as nothing; New refused limits that do not work.
	kills, _ := s.group.OOMKills()
	return memory{kills: kills, peak: s.group.ResetPeak() == nil}
}

// memoryAfter puts into the result what happened since.
func (s *Slot) memoryAfter(before memory, r *Result) {
	if s.group == nil || s.container.options.MemoryMax == 0 || !r.Started {
		return
	}
	if kills, err := s.group.OOMKills(); err == nil {
		r.OutOfMemory = kills > before.kills
	}
	if peak, err := s.group.PeakMemory(); err == nil && before.peak {
		r.MaxMemory = peak
	}
}
