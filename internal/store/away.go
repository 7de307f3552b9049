package store

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// Away reports whether nothing listens where Redis was, after a call that
// failed with err: then nobody else can reach it either. It is false where that
// cannot be known: with Sentinel or Cluster, another server may have taken over.
func (s *Store) Away(ctx context.Context, err error) bool {
	if !errors.Is(err, ErrUnreachable) || s.where.Cluster() || s.where.Sentinel() {
		return false
	}
	network, addr := s.where.Addr()
	dialer := net.Dialer{Timeout: s.where.DialTimeout}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err == nil {
		_ = conn.Close() // it was only to see
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED) || network == "unix" && errors.Is(err, os.ErrNotExist)
}
