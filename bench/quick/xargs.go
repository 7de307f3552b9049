package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// xargs runs `xargs -P parallel -n 1 sh script` over the numbers from 1 to n.
func xargs(parallel int, script string) contender {
	return xargsIn("", parallel, "sh", script)
}

// xargsDirectly does the same, but executes the script as a worker does.
func xargsDirectly(parallel int, script string) contender {
	return xargsIn(filepath.Dir(script), parallel, "./"+filepath.Base(script))
}

func xargsIn(dir string, parallel int, words ...string) contender {
	run := func(ctx context.Context, n int) (time.Duration, error) {
		var numbers strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintln(&numbers, i)
		}
		args := append([]string{"-P", strconv.Itoa(parallel), "-n", "1"}, words...)
		cmd := exec.CommandContext(ctx, "xargs", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(numbers.String())
		start := time.Now()
		out, err := cmd.Output()
		took := time.Since(start)
		if err != nil {
			return 0, fmt.Errorf("xargs: %w", err)
		}
		if got := bytes.Count(out, []byte("\n")); got != n {
			return 0, fmt.Errorf("xargs: %d lines of output from %d tasks", got, n)
		}
		return took, nil
	}
	return contender{fmt.Sprintf("xargs -P%d", parallel), run}
}
