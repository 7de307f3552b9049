package main

// Names of hash fields, which are also those of flags and in JSON.
const (
	nameField    = "name"
	queueField   = "queue"
	programField = "program"
	sourceField  = "source"
	roundField   = "round"
	holdField    = "hold"
	pausedField  = "paused"
	envField     = "env"
	dryRunField  = "dry_run"

	maxThreadsField = "maxthreads"

	listAlias = "list" // of the verbs ls
)
