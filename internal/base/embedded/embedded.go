// Package embedded runs a Redis inside the process, for trials: a server with
// "host = embedded" needs no other program. It keeps everything in memory and
// nothing survives its end.
package embedded

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/alicebob/miniredis/v2"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Start listens on the loopback address at the port of where (0: any free
// one), so that other programs of this machine can join. It returns where with
// the address filled in, and a function that ends it.
func Start(where config.Redis) (config.Redis, func(), error) {
	m := miniredis.NewMiniRedis()
	switch {
	case where.Username != "" && where.Password != "":
		m.RequireUserAuth(where.Username, where.Password)
	case where.Password != "":
		m.RequireAuth(where.Password)
	}
	if err := m.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(where.Port))); err != nil {
		return where, nil, fmt.Errorf("[redis] port = %d: cannot start the embedded Redis: %w; use a free port, or 0", where.Port, err)
	}
	port, err := strconv.Atoi(m.Port())
	if err != nil {
		m.Close()
		return where, nil, errors.Join(errors.New("embedded Redis: odd port "+m.Port()), err)
	}
	where.Host, where.Port = "127.0.0.1", port
	return where, m.Close, nil
}
