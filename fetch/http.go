package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// httpGet downloads src into sink and repeats what may be a passing trouble.
func (f *Fetcher) httpGet(ctx context.Context, src Source, sink *sink) error {
	delay := f.opts.RetryDelay
	for tries := 0; ; tries++ {
		if err := sink.reset(); err != nil {
			return err
		}
		err := f.getOnce(ctx, src, sink)
		if err == nil || tries == f.opts.HTTPRetries || ctx.Err() != nil || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(delay + rand.N(delay+1)):
		}
		delay *= 2
	}
}

// passing says whether a repeated GET may succeed.
func passing(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code == http.StatusTooManyRequests || status.Code >= 500
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
}

func (f *Fetcher) getOnce(ctx context.Context, src Source, sink *sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, src.Path, nil)
	if err != nil {
		return invalid(src.Location, "it is no URL")
	}
	req.Header.Set("User-Agent", "tdf")
	req.Header.Set("Accept-Encoding", "identity")
	if err := f.authorize(req); err != nil {
		return err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := f.checkResponse(resp, src); err != nil {
		return err
	}
	return f.receive(ctx, cancel, resp, sink)
}

// receive copies the body, and gives up when nothing comes for StallTimeout.
func (f *Fetcher) receive(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response, sink *sink) error {
	watchdog := time.AfterFunc(f.opts.StallTimeout, func() {
		cancel(fmt.Errorf("%w: nothing came for %v", ErrStalled, f.opts.StallTimeout))
	})
	defer watchdog.Stop()
	_, err := io.Copy(sink, readerFunc(func(p []byte) (int, error) {
		n, err := resp.Body.Read(p)
		watchdog.Reset(f.opts.StallTimeout)
		return n, err
	}))
	return downloadError(ctx, err, sink.n, resp.ContentLength)
}

// downloadError explains a broken transfer. A body shorter than announced ends
// in io.ErrUnexpectedEOF, which stays visible to errors.Is.
func downloadError(ctx context.Context, err error, got, want int64) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.ErrUnexpectedEOF) && want >= 0:
		return fmt.Errorf("download was truncated: %d of %d bytes: %w", got, want, err)
	default:
		return fmt.Errorf("download broke off after %d bytes: %w", got, err)
	}
}

// checkResponse refuses what cannot be the whole file, byte for byte.
func (f *Fetcher) checkResponse(resp *http.Response, src Source) error {
	if resp.StatusCode != http.StatusOK {
		return &StatusError{Code: resp.StatusCode}
	}
	if resp.ContentLength > f.opts.MaxDownloadBytes {
		return &LimitError{Option: limitDownload, Limit: f.opts.MaxDownloadBytes}
	}
	// Some servers describe a .tar.gz file as a .tar with a gzip encoding.
	encoding := strings.ToLower(resp.Header.Get("Content-Encoding"))
	described := src.Format == FormatTarGz && (encoding == "gzip" || encoding == "x-gzip")
	if encoding != "" && encoding != "identity" && !described {
		return fmt.Errorf("server sent content encoding '%s' though none was asked for", printable(encoding))
	}
	if resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && src.SHA256 == "" {
		return fmt.Errorf("%w: the server announces no length, so a truncated file could not be told from a whole one: "+
			"add %sHEX to the source", ErrUnpinned, pinPrefix)
	}
	return nil
}

// authorize adds the worker's own credentials for the host, if it has any.
func (f *Fetcher) authorize(req *http.Request) error {
	if f.opts.NetrcFile == "" {
		return nil
	}
	login, password, ok, err := netrcLookup(f.opts.NetrcFile, req.URL.Hostname())
	if err == nil && ok {
		req.SetBasicAuth(login, password)
	}
	return err
}

// withoutURL drops the URL that net/http puts before each error: the source is
// in the log already, and a redirect's target may hold secrets.
func withoutURL(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}
