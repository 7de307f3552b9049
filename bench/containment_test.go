package main

import (
	"bytes"
	"testing"
)

func TestContainmentTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"containment", "-tasks", "30", "-rounds", "1"}, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "| xargs -P2 |", "| Go, contains nothing |", "| shim, group |", "| containment | shim, group | xargs -P2 |", "in xargs -P2, CPU ms a task: ")
}

func TestDirectoriesTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"directories", "-tasks", "30", "-rounds", "1"}, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "| the program's directory |", "| its copy, left alone |", "| its copy, a file added |", "| its copy, run.sh changed |", "| an overlay, a file added |")
}

func TestUploadsTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"uploads", "-tasks", "1", "-rounds", "1"}, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "| installed from a web server |", "| installed from Redis |", "| packed |", "| put into Redis |", "| returned |", "| returned to a directory |", "| collected |", "| stdin fetched |")
}

func TestJobsTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"jobs", "-tasks", "50", "-rounds", "1"}, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "| no job |", "| a job |")
}

func TestHTTPTables(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"http", "work", "lists", "-tasks", "50", "-rounds", "1"}, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "| opened by the package |", "| opened over HTTP |", "| done through Redis |",
		"| done through Redis, 1 slot a worker |", "| done over HTTP, 1 a turn |",
		"| done over HTTP, 40 a turn |", "- done over HTTP, 40 a turn in done through Redis, without opening: ", "| GET /tasks |", "| GET /jobs/j1 |", "| GET /stats |")
}

func TestClaimsTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{"claims", "-tasks", "20", "-rounds", "1", "-many", "2000"}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "| behind 4 that fit nobody |", "| behind 2000 that fit nobody |", "- behind 2000 that fit nobody in behind 4 that fit nobody, tasks a second: ")
}
