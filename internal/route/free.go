package route

// Free are turns for buckets of queues without attributes, whoever asks: for
// claims that no rule restricts.
func Free(buckets ...Bucket) []Turn {
	byQueue := map[string]int{}
	var turns []Turn
	for _, b := range buckets {
		name := b.QueueName()
		at, known := byQueue[name]
		if !known {
			at, byQueue[name] = len(turns), len(turns)
			turns = append(turns, Turn{Queue: NewQueue(name)})
		}
		turns[at].Buckets = append(turns[at].Buckets, b)
	}
	return turns
}
