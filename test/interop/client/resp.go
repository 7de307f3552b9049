package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// patience bounds one command.
const patience = 10 * time.Second

// redis is one connection that speaks RESP2.
type redis struct {
	conn net.Conn
	r    *bufio.Reader
}

// dial connects over TCP and logs in where there is a user.
func dial(ctx context.Context, addr, user, password string) (*redis, error) {
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &redis{conn: conn, r: bufio.NewReader(conn)}
	if user != "" {
		if _, err := c.do("AUTH", user, password); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return c, nil
}

// do sends one command and returns its answer: a string, int64, []any or nil.
func (c *redis) do(args ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	answer, err := c.read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	return answer, nil
}

// transaction sends commands as one MULTI ... EXEC.
func (c *redis) transaction(commands ...[]string) error {
	for _, args := range append(append([][]string{{"MULTI"}}, commands...), []string{"EXEC"}) {
		if _, err := c.do(args...); err != nil {
			return err
		}
	}
	return nil
}

func (c *redis) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("read: an empty line")
	}
	text := line[1:]
	switch line[0] {
	case '+':
		return text, nil
	case '-':
		return nil, errors.New("redis answers: " + text)
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '$':
		return c.readBulk(text)
	case '*':
		return c.readList(text)
	default:
		return nil, fmt.Errorf("read: %q is not RESP", line)
	}
}

func (c *redis) readBulk(length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(c.r, body); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return string(body[:n]), nil
}

func (c *redis) readList(length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// texts are the strings of an answer that is a list.
func texts(answer any) []string {
	list, _ := answer.([]any)
	out := make([]string, 0, len(list))
	for _, v := range list {
		text, _ := v.(string)
		out = append(out, text)
	}
	return out
}
