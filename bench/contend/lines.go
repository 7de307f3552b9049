package contend

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Xargs runs `xargs -P parallel -n 1 sh script` over the numbers from 1 to n.
func Xargs(parallel int, script string) Contender {
	return xargsIn("", parallel, "sh", script)
}

// XargsDirectly does the same, but executes the script as a worker does.
func XargsDirectly(parallel int, script string) Contender {
	return xargsIn(filepath.Dir(script), parallel, "./"+filepath.Base(script))
}

func xargsIn(dir string, parallel int, words ...string) Contender {
	args := append([]string{"-P", strconv.Itoa(parallel), "-n", "1"}, words...)
	return byLines(fmt.Sprintf("xargs -P%d", parallel), dir, "xargs", args...)
}

// Parallel is GNU parallel with the same work; it keeps the outputs of tasks apart.
func Parallel(parallel int, script string) Contender {
	jobs := "-j" + strconv.Itoa(parallel)
	return byLines("GNU parallel "+jobs, filepath.Dir(script), "parallel", jobs, "./"+filepath.Base(script))
}

// Spawn is the compiled bench/peers/spawn.c: a loop of posix_spawn that takes the output of each program.
func Spawn(binary string, parallel int, script string) Contender {
	return byLines("C, posix_spawn", filepath.Dir(script), binary, strconv.Itoa(parallel), "./"+filepath.Base(script))
}

// byLines runs a program that gets the numbers of the tasks as lines, and writes what each task has written.
func byLines(name, dir, program string, args ...string) Contender {
	run := func(ctx context.Context, n int) (time.Duration, error) {
		var numbers strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintln(&numbers, i)
		}
		cmd := Command(ctx, program, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(numbers.String())
		start := time.Now()
		out, err := cmd.Output()
		took := time.Since(start)
		if err != nil {
			return 0, fmt.Errorf("%s: %w%s", name, err, StderrOf(err))
		}
		return took, checkLines(name, n, out)
	}
	return Contender{name, run}
}

// checkLines is an error unless each number is there once, in whatever order.
func checkLines(name string, n int, out []byte) error {
	seen := make([]bool, n+1)
	lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	for _, line := range lines {
		task, err := strconv.Atoi(string(line))
		if err != nil || task < 1 || task > n || seen[task] {
			return fmt.Errorf("%s: unexpected line of output %q", name, line)
		}
		seen[task] = true
	}
	if len(lines) != n {
		return fmt.Errorf("%s: %d lines of output from %d tasks", name, len(lines), n)
	}
	return nil
}
