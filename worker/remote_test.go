package worker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What a worker does it does over HTTP as well: these are its tests for Redis.
func TestOverHTTP(t *testing.T) { //nolint:paralleltest // each of them is parallel
	for name, test := range map[string]func(*testing.T){
		"executed": TestTaskIsExecuted, "failure": TestFailure, "words": TestInputIsOnlyWords, "arguments": TestResultsAreArguments,
		"files of results": TestResultsAreFiles, "cancel": TestCancelStopsTheRound, "handler": TestHandlers, "handlers only": TestHandlersOnly,
		"trace": TestTrace, "timeout": TestTimeoutOpensTheNextRound, "shutdown": TestShutdownHandsBack, "orders": TestOrders,
		"cut": TestOutputLimit, "whole output": TestOutputMax, "return": TestReturn, "first version": TestFirstWorkerPins,
		"gone": TestGoneForGood, "live": TestLiveOutput, "progress": TestProgramProgress, "attributes": TestTooManyAttributes,
		"successor": TestSpoolIsDeliveredByTheSuccessor, "name": TestSecondWorkerOfANameIsRefused, "lease": TestLeaseTakenAway,
		"status": TestStatus, "permanent": TestPermanent, "commands": TestCommandsOff, "slots": TestSlots, "eta": TestETA,
	} {
		t.Run(name, test)
	}
}

// remoteTo is a remote of a server that answers all requests so.
func remoteTo(t *testing.T, answer http.HandlerFunc) *remote {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	b, err := Remote(srv.URL+"/", "w", "secret")
	if err != nil {
		t.Fatal(err)
	}
	r, ok := b.(*remote)
	if !ok {
		t.Fatalf("%T", b)
	}
	return r
}

// An error status means one of three things: try again, the session is over, or give up.
func TestRemoteRefused(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		http.StatusServiceUnavailable: task.ErrUnreachable, http.StatusBadGateway: task.ErrUnreachable, http.StatusGatewayTimeout: task.ErrUnreachable,
		http.StatusGone: ErrLeaseLost, http.StatusUnauthorized: nil, http.StatusForbidden: nil, http.StatusInternalServerError: nil,
		http.StatusRequestEntityTooLarge: nil, http.StatusFound: nil, http.StatusTooManyRequests: task.ErrUnreachable,
	} {
		r := remoteTo(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
		})
		_, err := r.Renew(t.Context(), Session{Name: "w", Incarnation: 1}, Heartbeat{})
		if err == nil || strings.Contains(err.Error(), "secret") || errors.Is(err, ErrAway) {
			t.Errorf("%d: %v", status, err)
		}
		for _, kind := range []error{task.ErrUnreachable, ErrLeaseLost} {
			if errors.Is(err, kind) != errors.Is(want, kind) {
				t.Errorf("%d: %v", status, err)
			}
		}
		if denied := status == http.StatusUnauthorized || status == http.StatusForbidden; denied && !strings.Contains(err.Error(), "token add") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// A token goes to the server of the address alone, and a server that has had too much is asked again.
func TestRemoteAsksAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	r := remoteTo(t, func(w http.ResponseWriter, req *http.Request) {
		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if req.Header.Get("Authorization") != "Bearer secret" || req.URL.Path != "/api/v1/workers/w/site" {
			t.Errorf("%v %v", req.URL, req.Header)
		}
		_, _ = w.Write([]byte(`{"namespace":"n","grace":null}`))
	})
	site, err := r.Site(t.Context())
	if err != nil || asked != 2 || site.Namespace != "n" || site.Grace != statemachine.Forever || site.Mark == "" {
		t.Errorf("%+v, %v, asked %d times", site, err, asked)
	}
}

// The end of a wait is no loss of the site, and its claim keeps its number until there is another one.
func TestRemoteWaits(t *testing.T) {
	t.Parallel()
	r := remoteTo(t, func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Waited, 1)
	go func() {
		done <- r.WaitAndClaim(ctx, WaitFor{}, time.Minute, ClaimRequest{Incarnation: 1, Request: "a", Max: 1})
	}()
	cancel()
	if w := wait.Receive(t, patience, done, "the wait does not end"); w.Err != nil || w.Claimed == nil && !w.Reply.Stale {
		t.Errorf("%+v", w)
	}
	first, same, other := r.numbered("a"), r.numbered("a"), r.numbered("b")
	if first != same || same == other || !strings.HasSuffix(other, "-2") {
		t.Errorf("%s, %s, %s", first, same, other)
	}
}

// What is no address or no token is refused without being shown.
func TestRemoteIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, token, field string }{
		{"ftp://h", "t", "url"}, {"http://", "t", "url"}, {"h:80", "t", "url"}, {"http://u:secret@h", "t", "url"}, {"http://h?x=1", "t", "url"},
		{"http://h", "", "token"}, {"http://h", "secret\n", "token"},
	} {
		_, err := Remote(c.url, "w", c.token)
		if wrong, ok := errors.AsType[*statemachine.FieldError](err); !ok || wrong.Field != c.field || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.url, err)
		}
	}
}
