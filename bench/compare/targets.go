package main

// target is a ratio that the issue of speed asks for. For metrics of which less is better it is the most.
type target struct {
	row string
	// of is the peer; of several, the best one that is there, round by round.
	of         []string
	metric     metric
	least, aim float64
}

// reaches reports whether a ratio is as good as a bound.
func (m metric) reaches(ratio, bound float64) bool {
	if m.less {
		return ratio <= bound
	}
	return ratio >= bound
}

func programTargets(xargs, parallel string) []target {
	return []target{
		{groupName, []string{xargs}, rate, 0.85, 1},
		{defaultName, []string{xargs}, rate, 0.7, 0.9},
		{defaultName, []string{parallel}, rate, 4, 5},
	}
}

func handlerTargets() []target {
	return []target{
		{tdfName, []string{asynqName}, rate, 1.5, 2.5},
		{tdfName, []string{bullName}, rate, 0.8, 1.2},
	}
}

func openingTargets() []target { return []target{{tdfName, []string{asynqName}, opened, 1.5, 2.5}} }

func latencyTargets() []target {
	best := []string{faktoryName, bullName}
	return []target{{tdfName, best, p50, 1.2, 1}, {tdfName, best, p99, 1.2, 1}}
}

// verdict says what is reached.
func (t target) verdict(ratio float64) string {
	switch {
	case t.metric.reaches(ratio, t.aim):
		return "aim reached"
	case t.metric.reaches(ratio, t.least):
		return "reached"
	}
	return "not reached"
}
