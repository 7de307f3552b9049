package fetch

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mholt/archiver/v4"
)

func ensureHTTP(t *testing.T, o Options, source string) error {
	t.Helper()
	f := newFetcher(t, o)
	_, err := f.Ensure(t.Context(), "p", source, nil)
	if err != nil {
		nothingInstalled(t, o)
	}
	return err
}

// Each answer is refused with its own reason; gets is how often it was asked.
func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	data := tarBytes(t, goodEntries())
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		target error
		text   string
		gets   int64
	}{
		"404": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, nil, "HTTP status 404", 1},
		"500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, nil, "HTTP status 500", 3},
		"206": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206); _, _ = w.Write(data) }, nil, "206", 1},
		"304": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, nil, "304", 1},
		"gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(data)
		}, nil, "content encoding 'gzip'", 1},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000000000")
			w.WriteHeader(200)
		}, ErrLimit, "fetch_max_bytes", 1},
		"too large unannounced": {func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				_, _ = w.Write(data)
				_ = http.NewResponseController(w).Flush()
			}
		}, ErrLimit, "fetch_max_bytes", 1},
		"truncated": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:1024])
		}, nil, fmt.Sprintf("truncated: 1024 of %d bytes", len(data)), 3},
		"truncated chunks": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(data[:1024])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, nil, "broke off after 1024 bytes", 3},
		"large header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 100<<10))
		}, nil, "header", 1},
		"redirect loop": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, 302) }, nil, "more than 5 redirects", 6},
		"to file": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(301)
		}, nil, "redirect refused: to scheme 'file'", 1},
		"to userinfo": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://me:canary@127.0.0.1/p.tar")
			w.WriteHeader(301)
		}, nil, "it carries credentials", 1},
		"to metadata": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest", 302)
		}, errForbidden, "link-local", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gets atomic.Int64
			srv := handle(t, func(w http.ResponseWriter, r *http.Request) { gets.Add(1); c.answer(w, r) })
			o := testOptions(t)
			o.MaxBytes = 20 * int64(len(data))
			err := ensureHTTP(t, o, srv.URL+"/p.tar")
			wantErr(t, err, c.target, c.text)
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("credentials shown: %v", err)
			}
			if n := gets.Load(); n != c.gets {
				t.Errorf("%d GETs, want %d", n, c.gets)
			}
		})
	}
}

func TestHTTPGoodAnswers(t *testing.T) {
	t.Parallel()
	data := compress(t, archiver.Gz{}, tarBytes(t, goodEntries()))
	var tries atomic.Int64
	for name, answer := range map[string]http.HandlerFunc{
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(data)
		},
		"described as encoding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "x-gzip")
			_, _ = w.Write(data)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				http.Redirect(w, r, "/elsewhere?x=1", 302)
				return
			}
			_, _ = w.Write(data)
		},
		"503 once": func(w http.ResponseWriter, _ *http.Request) {
			if tries.Add(1) == 1 {
				w.WriteHeader(503)
				return
			}
			_, _ = w.Write(data)
		},
		"no request for encodings": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "identity" {
				w.WriteHeader(400)
			}
			_, _ = w.Write(data)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noErr(t, ensureHTTP(t, testOptions(t), handle(t, answer).URL+"/p.tar.gz"))
		})
	}
}

// A body that ends with the connection cannot be told from a truncated one.
func TestHTTPWithoutLength(t *testing.T) {
	t.Parallel()
	srv := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = buf.WriteString("HTTP/1.0 200 OK\r\n\r\n" + script)
		_ = buf.Flush()
		_ = conn.Close()
	})
	wantErr(t, ensureHTTP(t, testOptions(t), srv.URL+"/run.sh"), ErrUnpinned, "announces no length")
	noErr(t, ensureHTTP(t, testOptions(t), srv.URL+"/run.sh#sha256="+sum([]byte(script))))
}

// In a bubble time passes only while all wait: what runs out is what the sender
// lets run out, however busy the machine is.
func TestHTTPTimeouts(t *testing.T) {
	t.Parallel()
	const silent, stalls = "", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"
	for _, c := range []struct {
		name, answer   string
		stall, timeout time.Duration
		target         error
		text           string
	}{
		{"stalls", stalls, time.Minute, time.Hour, errStalled, "nothing came for 1m0s"},
		{"silent", silent, time.Minute, time.Hour, nil, "timeout awaiting response headers"},
		{"takes too long", stalls, time.Hour, time.Minute, ErrTimeout, "[worker] fetch_timeout"},
		{"silent for too long", silent, time.Hour, time.Minute, ErrTimeout, "[worker] fetch_timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := testOptions(t)
				o.stallTimeout, o.Timeout = c.stall, c.timeout
				f := newFetcher(t, o)
				f.client.Transport.(*http.Transport).DialContext = answering(c.answer)
				began := time.Now()
				_, err := f.Ensure(t.Context(), "p", "http://host/run.sh", nil)
				wantErr(t, err, c.target, c.text)
				nothingInstalled(t, o)
				if took := time.Since(began); took != min(c.stall, c.timeout) {
					t.Errorf("given up after %v", took)
				}
			})
		})
	}
}

// answering connects to a server that reads a request, sends the text and no more.
func answering(text string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			in := bufio.NewReader(server)
			if _, err := http.ReadRequest(in); err == nil {
				_, _ = io.WriteString(server, text)
				_, _ = in.ReadByte() // until the client hangs up
			}
		}()
		return client, nil
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	plain := newServer(t, map[string][]byte{"/run.sh": []byte(script)})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down/run.sh" {
			http.Redirect(w, r, plain.URL+"/run.sh", 302)
			return
		}
		_, _ = w.Write([]byte(script))
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	wantErr(t, ensureHTTP(t, testOptions(t), srv.URL+"/run.sh"), nil, "certificate")

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	caFile := write(t, filepath.Join(t.TempDir(), "ca.pem"), ca, 0o644)
	trusting := func() Options { o := testOptions(t); o.CAFile = caFile; return o }
	noErr(t, ensureHTTP(t, trusting(), srv.URL+"/run.sh"))
	wantErr(t, ensureHTTP(t, trusting(), srv.URL+"/down/run.sh"), nil, "from https to http")
	if plain.gets.Load() != 0 {
		t.Error("the redirect was followed")
	}
	wrongHost := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	wantErr(t, ensureHTTP(t, trusting(), wrongHost+"/run.sh"), nil, "certificate")
}

// Credentials come from the netrc file, for the host they belong to only.
func TestNetrc(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]string{}
	note := func(where string, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		user, password, _ := r.BasicAuth()
		seen[where] = user + ":" + password + r.Header.Get("Referer")
	}
	other := handle(t, func(w http.ResponseWriter, r *http.Request) {
		note("other", r)
		_, _ = w.Write([]byte(script))
	})
	first := handle(t, func(w http.ResponseWriter, r *http.Request) {
		note("first"+r.URL.Path, r)
		switch r.URL.Path {
		case "/same/run.sh":
			http.Redirect(w, r, "/run.sh", 302)
		case "/cross/run.sh":
			http.Redirect(w, r, other.URL+"/run.sh", 302)
		default:
			_, _ = w.Write([]byte(script))
		}
	})
	netrc := write(t, filepath.Join(t.TempDir(), "netrc"), []byte("default login d password dd\nmachine 127.0.0.1\n login me\n password canary\n"), 0o600)
	for path, want := range map[string]map[string]string{
		"/run.sh":       {"first/run.sh": "me:canary"},
		"/same/run.sh":  {"first/same/run.sh": "me:canary", "first/run.sh": "me:canary"},
		"/cross/run.sh": {"first/cross/run.sh": "me:canary", "other": ":"},
	} {
		o := testOptions(t)
		o.NetrcFile = netrc
		noErr(t, ensureHTTP(t, o, first.URL+path))
		for where, auth := range want {
			if seen[where] != auth {
				t.Errorf("%s: %s got %q, want %q", path, where, seen[where], auth)
			}
		}
		clear(seen)
	}
	o := testOptions(t)
	o.NetrcFile = netrc
	noErr(t, ensureHTTP(t, o, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+"/run.sh"))
	if seen["other"] != ":" {
		t.Errorf("default entry was used: %q", seen["other"])
	}
}

func TestNetrcLookup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"machine h login a password b":                                                        "a:b true",
		"# note\nmachine x login n password n machine H password b\nlogin a":                  "a:b true",
		"machine h login a password b\nmachine h login c password d":                          "a:b true",
		"macdef init\nmachine h login n password n\n\nmachine h login a account z password b": "a:b true",
		"default login n password n":                                                          ": false",
		"machine h login a password b default login n password n":                             "a:b true",
		"":                   ": false",
		"machine h login":    ": false ends within",
		"machine h canary a": ": false malformed",
	} {
		file := write(t, filepath.Join(dir, "n"), []byte(text), 0o600)
		login, password, ok, err := netrcLookup(file, "h")
		got := fmt.Sprintf("%s:%s %v", login, password, ok)
		if want, part, bad := strings.Cut(want, "e "); bad {
			wantErr(t, err, nil, part)
			if got != want+"e" || strings.Contains(err.Error(), "canary") {
				t.Errorf("%q: %s, %v", text, got, err)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	if _, _, _, err := netrcLookup(filepath.Join(dir, "none"), "h"); err == nil {
		t.Error("missing file")
	}
}

func TestSameOrigin(t *testing.T) {
	t.Parallel()
	for pair, want := range map[string]bool{
		"http://h/a http://h/b": true, "http://h https://h": true, "https://h/a https://h/b": true,
		"http://h http://sub.h": false, "http://h http://h:81": false, "http://h:80 https://h:443": false, "https://h http://h": false,
	} {
		a, b, _ := strings.Cut(pair, " ")
		ua, _ := url.Parse(a)
		ub, _ := url.Parse(b)
		if sameOrigin(ua, ub) != want {
			t.Errorf("%s: want %v", pair, want)
		}
	}
}

func TestDialControl(t *testing.T) {
	t.Parallel()
	for address, allowed := range map[string]bool{
		"127.0.0.1:80": true, "10.0.0.1:80": true, "[::1]:80": true, "169.254.169.254:80": false,
		"[fe80::1%eth0]:80": false, "[::ffff:169.254.169.254]:80": false, "[fd00:ec2::254]:80": false,
	} {
		if err := dialControl(t.Context(), "tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A dead host is asked once for a hundred tasks; the error stays the same.
func TestFailureIsRemembered(t *testing.T) {
	t.Parallel()
	srv := newServer(t, nil)
	o := testOptions(t)
	o.FailureBackoff = time.Minute
	f := newFetcher(t, o)
	now := time.Now()
	f.failures.now = func() time.Time { return now }
	f.failures.random = func() float64 { return 0.5 }
	var texts sync.Map
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			_, err := f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
			texts.Store(err.Error(), true)
		})
	}
	wg.Wait()
	texts.Range(func(text, _ any) bool {
		if want := "could not fetch program 'p': server answered with HTTP status 404"; text != want {
			t.Errorf("%q, want %q", text, want)
		}
		return true
	})
	if n := srv.gets.Load(); n != 1 {
		t.Errorf("%d GETs, want 1", n)
	}
	srv.mu.Lock()
	srv.files = map[string][]byte{"/p.tar": tarBytes(t, goodEntries())}
	srv.mu.Unlock()
	now = now.Add(89 * time.Second)
	_, err := f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
	wantErr(t, err, nil, "404")
	now = now.Add(2 * time.Second)
	_, err = f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
	noErr(t, err)
}

func TestFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := newFailures(time.Second, func() time.Time { return now }, func() float64 { return 0 })
	for i := range 100 {
		f.remember(fmt.Sprint(i), net.ErrClosed)
		now = now.Add(time.Second)
	}
	if len(f.known) != 1 {
		t.Errorf("%d remembered", len(f.known))
	}
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(t, err)
	noErr(t, l.Close())
	wantErr(t, ensureHTTP(t, testOptions(t), "http://"+l.Addr().String()+"/run.sh"), nil, "connection refused")
}
