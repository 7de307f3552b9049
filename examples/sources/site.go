package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	_ "embed"
)

// script is the program that all sources hold.
//
//go:embed run.sh
var script []byte

// site offers the program in all its forms, as files and over HTTP.
type site struct {
	dir  string // absolute
	url  string
	http *http.Server
	done chan struct{}
}

// openSite makes the files in a temporary directory and serves them on a free
// port that only this machine can reach.
func openSite(ctx context.Context) (*site, error) {
	dir, err := os.MkdirTemp("", "tdf-sources-")
	if err != nil {
		return nil, err
	}
	s := &site{dir: dir, done: make(chan struct{})}
	if err := packAll(dir, script); err != nil {
		_ = os.RemoveAll(dir) // the first error says more
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("serving the archives: %w", err)
	}
	s.url = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // ends with ErrServerClosed
	}()
	return s, nil
}

// close ends the server and removes the files.
func (s *site) close() error {
	_ = s.http.Close() // nobody is waiting for an answer any more
	<-s.done
	return os.RemoveAll(s.dir)
}

// file is the source of a file on this machine, for workers that run here too.
func (s *site) file(name string) string { return "rsync:" + filepath.Join(s.dir, name) }

// web is the source of a file over HTTP.
func (s *site) web(name string) string { return s.url + "/" + name }
