package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWatchSignals(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 2)
	exited := make(chan int, 1)
	ctx, stop := watchSignals(t.Context(), signals, func(code int) { exited <- code })
	defer stop()

	signals <- syscall.SIGTERM
	<-ctx.Done()
	var cause *SignalError
	if !errors.As(context.Cause(ctx), &cause) || cause.ExitCode() != ExitTerminate {
		t.Errorf("cause = %v", context.Cause(ctx))
	}
	select {
	case code := <-exited:
		t.Fatalf("the first signal ended the process with %d", code)
	default:
	}
	signals <- os.Interrupt
	if code := <-exited; code != ExitInterrupt {
		t.Errorf("the second signal ended the process with %d", code)
	}
}

func TestWatchSignalsStops(t *testing.T) {
	t.Parallel()
	ctx, stop := watchSignals(t.Context(), make(chan os.Signal), func(int) { t.Error("exit") })
	stop()
	stop()
	if ctx.Err() == nil {
		t.Error("context still alive after stop")
	}
	parent, cancel := context.WithCancel(t.Context())
	ctx, stop = watchSignals(parent, make(chan os.Signal), func(int) { t.Error("exit") })
	defer stop()
	cancel()
	<-ctx.Done()
}

// With a function for it, the second signal calls it and the third exits.
func TestOnSecondSignal(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 3)
	exited, called := make(chan int, 1), make(chan string, 2)
	ctx, stop := watchSignals(t.Context(), signals, func(code int) { exited <- code })
	defer stop()
	type other struct{}
	derived := context.WithValue(ctx, other{}, "further down")
	OnSecondSignal(ctx, func() { called <- "replaced" })
	OnSecondSignal(derived, func() { called <- "second" })

	signals <- syscall.SIGTERM
	<-derived.Done()
	select {
	case name := <-called:
		t.Fatalf("the first signal called %s", name)
	default:
	}
	signals <- syscall.SIGTERM
	if name := <-called; name != "second" {
		t.Errorf("the second signal called %s", name)
	}
	select {
	case code := <-exited:
		t.Fatalf("the second signal ended the process with %d", code)
	default:
	}
	signals <- os.Interrupt
	if code := <-exited; code != ExitInterrupt {
		t.Errorf("the third signal ended the process with %d", code)
	}
}

// stop waits for the function that a second signal has called.
func TestStopWaitsForSecondSignal(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal)
	begun, proceed := make(chan struct{}), make(chan struct{})
	ended := false
	ctx, stop := watchSignals(t.Context(), signals, func(int) { t.Error("exit") })
	OnSecondSignal(ctx, func() {
		close(begun)
		<-proceed
		ended = true
	})
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	<-begun
	close(proceed)
	stop()
	if !ended {
		t.Error("stop did not wait")
	}
}

// Without signals behind the context nothing happens.
func TestOnSecondSignalElsewhere(t *testing.T) {
	t.Parallel()
	OnSecondSignal(t.Context(), func() { t.Error("called") })
}

// childMode makes the test binary a command that runs until signals end it.
const childMode = "CLI_TEST_CHILD"

// TestRealSignals sends signals to a real process.
func TestRealSignals(t *testing.T) {
	if mode := os.Getenv(childMode); mode != "" {
		child(mode)
		return
	}
	t.Parallel()
	for _, tc := range []struct {
		mode string
		sig  syscall.Signal
		more int // further signals after the first
		want int
	}{
		{"obedient", syscall.SIGTERM, 0, ExitTerminate},
		{"obedient", syscall.SIGINT, 0, ExitInterrupt},
		{"deaf", syscall.SIGTERM, 1, ExitTerminate},
		{"deaf", syscall.SIGINT, 1, ExitInterrupt},
		{"patient", syscall.SIGTERM, 2, ExitTerminate},
	} {
		t.Run(tc.mode+" "+tc.sig.String(), func(t *testing.T) {
			t.Parallel()
			if got := signalChild(t, tc.mode, tc.sig, tc.more); got != tc.want {
				t.Errorf("exit code %d; want %d", got, tc.want)
			}
		})
	}
}

// child is the process that receives the signals.
func child(mode string) {
	ctx, stop := SignalContext(context.Background())
	defer stop()
	if mode == "patient" {
		OnSecondSignal(ctx, func() { _, _ = os.Stdout.WriteString("second\n") })
	}
	_, _ = os.Stdout.WriteString("ready\n")
	<-ctx.Done()
	_, _ = os.Stdout.WriteString("first\n")
	if mode != "obedient" {
		select {} // only a further signal ends this
	}
	os.Exit(ExitCode(OrSignal(ctx, ctx.Err()))) //nolint:gocritic // a test's own process
}

func signalChild(t *testing.T, mode string, sig syscall.Signal, more int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRealSignals$")
	cmd.Env = append(os.Environ(), childMode+"="+mode)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if a check below fails
	// The child says when it is ready for the first signal, and what it has heard.
	for i, word := range []string{"ready\n", "first\n", "second\n"}[:max(2, more+1)] {
		buf := make([]byte, len(word))
		if _, err := io.ReadFull(out, buf); err != nil || string(buf) != word {
			t.Fatalf("child said %q, %v", buf, err)
		}
		if i <= more {
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || strings.Contains(err.Error(), "signal:") {
		t.Fatalf("child ended with %v", err)
	}
	return exit.ExitCode()
}
