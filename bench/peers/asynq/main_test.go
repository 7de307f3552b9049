package main

import (
	"io"
	"strings"
	"testing"
)

func TestWork(t *testing.T) {
	t.Parallel()
	for command, wantErr := range map[string]bool{
		"": false, "echo": false, "true": true, "false": true, "/no/such": true,
	} {
		if err := work(t.Context(), strings.Fields(command), "7"); (err != nil) != wantErr {
			t.Errorf("command %q: error %v", command, err)
		}
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-redis=s", "-tasks=0"}, {"-redis=s", "-concurrency=0"}, {"-tasks=1"}, {"-redis=s", "-enqueuers=0"}, {"-redis=s", "-rate=-1"}, {"-redis=s", "-warm=-1"}, {"-redis=s", "-check-interval=0"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: accepted", args)
		}
	}
}

func TestUnreachableRedis(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"-rate=0", "-rate=100"} {
		err := run(t.Context(), []string{"-redis=/no/such.sock", "-tasks=1", mode}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "/no/such.sock") {
			t.Errorf("%s: the error should name the address: %v", mode, err)
		}
	}
}
