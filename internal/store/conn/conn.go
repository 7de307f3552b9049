// Package conn is a namespace in a Redis, as all rooms of the store see it: its
// connections, the names of its keys, its clock and its history, and how scripts
// are called. It knows no tasks.
package conn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/task"
)

// Conn is one namespace in one Redis. It is safe for use by many goroutines.
type Conn struct {
	Redis redis.UniversalClient
	// Session is for heartbeats alone, so that neither a slow transfer nor an
	// exhausted pool delays them. It connects when it is used first.
	Session redis.UniversalClient
	// Patient is for commands that wait in Redis.
	Patient   redis.UniversalClient
	Keys      Keys
	namespace string
	where     config.Redis
	scripts   *scripts
	Memory    memory
}

// Option changes how a Conn works.
type Option func(*options)

type options struct {
	clock    string
	retries  int
	poolSize int
	onePool  bool
}

// sessionPool is how many connections heartbeats may use: one, and one more
// while a broken one is given up.
const sessionPool = 2

// Dial makes a Conn on the Redis that where describes. It connects lazily:
// the first error of an unreachable Redis comes from the first call, usually
// [Conn.Check]. The caller closes it. Rooms are the scripts of the rooms.
func Dial(where config.Redis, namespace string, rooms []Scripts, opts ...Option) (*Conn, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	uo, err := universal(where)
	if err != nil {
		return nil, err
	}
	if o.retries != 0 {
		uo.MaxRetries = o.retries
	}
	if o.onePool {
		uo.PipelinePoolSize = -1
	}
	own, waiting := *uo, *uo
	own.PoolSize = sessionPool
	if waiting.ReadTimeout > 0 {
		waiting.ReadTimeout += longestBlock
	}
	waiting.PipelinePoolSize = -1 // a script that is sent behind a wait needs no connection more
	uo.PoolSize = o.poolSize
	s := &Conn{
		Keys: NewKeys(namespace), namespace: namespace, where: where, scripts: newScripts(o.clock, append([]Scripts{Common}, rooms...)),
		Memory: memory{seen: History{Epoch: 1}},
	}
	arriving := &runIDs{all: s.scripts, meta: s.Keys.Meta()}
	s.Redis, s.Session, s.Patient = connect(uo, arriving), connect(&own, arriving), connect(&waiting, arriving)
	return s, nil
}

// Mark tells the Redis of this Conn from others; see config.Redis.
func (s *Conn) Mark() string { return s.where.Mark() }

// Namespace is the namespace the Conn works in.
func (s *Conn) Namespace() string { return s.namespace }

// Close closes the connections. Calls under way fail.
func (s *Conn) Close() error {
	if err := errors.Join(notClosed(s.Redis.Close()), notClosed(s.Session.Close()), notClosed(s.Patient.Close())); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// notClosed leaves out that something is closed already.
func notClosed(err error) error {
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}

// Failed wraps what go-redis returned. Errors of the connection match
// [task.ErrUnreachable]; an answer of Redis does not, unless it is temporary, nor does the end
// of the caller's context.
func (s *Conn) Failed(op string, err error) error {
	var answer redis.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errCaller), errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%s: %w", op, err)
	case errors.As(err, &answer) && !temporary(answer) && (!s.where.Cluster() || !moved(answer)):
		return fmt.Errorf("%s: redis answers: %w", op, err)
	default: // also errNotReplicated
		if h := hinderedBy(err); h != nil {
			return fmt.Errorf("%s: %w; %s: %s", op, &hinderedError{h, s.where.String(), err}, h.setting, h.remedy)
		}
		return fmt.Errorf("%s: %w at %s: %w", op, task.ErrUnreachable, s.where.String(), err)
	}
}

// Pipelined sends commands together. Its error is the first that is not about
// the data: that nothing is there, or that a key has another type, is for the
// caller to find at the command. Everything else, such as a refused password,
// says nothing about the data and must not be taken for its absence.
func (s *Conn) Pipelined(ctx context.Context, op string, queue func(redis.Pipeliner)) error {
	cmds, err := s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		queue(p)
		return nil
	})
	if err == nil {
		return nil
	}
	if !AboutData(err) { // the commands themselves may not say it
		return s.Failed(op, err)
	}
	for _, c := range cmds {
		if err := c.Err(); err != nil && !AboutData(err) {
			return s.Failed(op, err)
		}
	}
	return nil
}

// AboutData reports whether an error says that nothing is there, or that a key has another type.
func AboutData(err error) bool {
	return errors.Is(err, redis.Nil) || strings.HasPrefix(err.Error(), "WRONGTYPE ")
}

// WithClock replaces the Lua text that defines time(), which is TIME of Redis, so
// that a test can set it: seconds and microseconds. The text may use KEYS[1], the
// key of meta.
func WithClock(lua string) Option {
	return func(o *options) { o.clock = lua }
}

// WithRetries sets how often a command is repeated after a network error;
// -1 means never. The default is that of go-redis, three times.
func WithRetries(n int) Option {
	return func(o *options) { o.retries = n }
}

// WithPoolSize sets how many connections there may be at a time, besides those
// of heartbeats and subscriptions. The default is that of go-redis, ten for
// each core. A wait in [tasks.Tasks.WaitAndClaim] or [tasks.Tasks.Chunks] occupies one.
func WithPoolSize(n int) Option {
	return func(o *options) { o.poolSize = n }
}

// WithOnePool lets several commands that are sent together use the connections that single ones use, not some of their own: a
// program that does one thing after the other then has one connection.
func WithOnePool() Option { return func(o *options) { o.onePool = true } }

// universal translates the [redis] section. Commands are repeated after
// network errors (go-redis' default), which is safe because every script may
// be sent twice.
func universal(where config.Redis) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{
		Username: where.Username, Password: where.Password, DB: where.DB,
		DialTimeout: where.DialTimeout, ReadTimeout: where.ReadTimeout, WriteTimeout: where.WriteTimeout,
		MinRetryBackoff: 20 * time.Millisecond, MaxRetryBackoff: time.Second,
		ContextTimeoutEnabled: true,
		// One try a connection: commands are repeated already, and both together
		// would take minutes to say that a host is not there.
		DialerRetries: 1,
		// CLIENT SETINFO and CLIENT MAINT_NOTIFICATIONS are newer than the oldest
		// supported Redis, and an access list that names them fails to load there.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Protocol:                 2,
	}
	switch {
	case where.Cluster():
		o.Addrs, o.IsClusterMode = where.ClusterAddrs, true
	case where.Sentinel():
		o.Addrs, o.MasterName, o.SentinelPassword = where.SentinelAddrs, where.SentinelMaster, where.SentinelPassword
	default:
		_, addr := where.Addr()
		o.Addrs = []string{addr}
	}
	var err error
	o.TLSConfig, err = tlsConfig(where)
	return o, err
}

func tlsConfig(where config.Redis) (*tls.Config, error) {
	if !where.TLS {
		return nil, nil //nolint:nilnil // go-redis takes nil for "no TLS"
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: where.ServerName}
	if c.ServerName == "" {
		c.ServerName = where.Host
	}
	if where.CAFile != "" {
		pem, err := os.ReadFile(where.CAFile)
		if err != nil {
			return nil, tlsError("ca_file", where.CAFile, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, tlsError("ca_file", where.CAFile, fmt.Errorf("%w: no certificate in the file", task.ErrUnfit))
		}
	}
	if where.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(where.CertFile, where.KeyFile)
		if err != nil {
			return nil, tlsError("cert_file", where.CertFile, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func tlsError(key, file string, err error) error {
	return &SetupError{Setting: "[redis] " + key, Value: file, Err: err, Remedy: "name a readable PEM file"}
}

// Silence stops the Redis client from writing to stderr by itself, for the
// whole process. It is for programs that log every fault themselves, and is
// called once at the start; a library leaves the choice to its user.
func Silence() { logging.Disable() }

// topologyAge is how old the map of a Redis Cluster may be. A client that asks for
// it rarely goes on sending to a master that has died.
const topologyAge = 2 * time.Second

// connect makes a client of which every call ends, also where its context has no
// deadline: within the time to connect, to send and to receive once, all repetitions
// and the wait for a free connection included. With the defaults that is 11 s. The
// lives of Redis are noted by a.
func connect(o *redis.UniversalOptions, a *runIDs) redis.UniversalClient {
	limit := o.DialTimeout + o.WriteTimeout + o.ReadTimeout
	if !o.IsClusterMode {
		n := &nodeRun{runIDs: a}
		o.OnConnect = n.connected
		client := redis.NewUniversalClient(o)
		n.client = client
		client.AddHook(bound{limit: limit})
		client.AddHook(n)
		return client
	}
	cluster := o.Cluster()
	cluster.ClusterStateReloadInterval = topologyAge
	cluster.NewClient = a.connectNode
	client := redis.NewClusterClient(cluster)
	client.AddHook(bound{limit: limit, lost: func(ctx context.Context) { client.ReloadState(ctx) }})
	return client
}

// connectNode makes the client of one node of a Redis Cluster.
func (a *runIDs) connectNode(o *redis.Options) *redis.Client {
	n := &nodeRun{runIDs: a, lasts: lifeCheck}
	o.OnConnect = n.connected
	client := redis.NewClient(o)
	n.client = client
	client.AddHook(n)
	return client
}

// bound ends each call in time.
type bound struct {
	limit time.Duration
	// lost is called after a call without an answer; nil for nothing.
	lost func(context.Context)
}

// DialHook changes nothing: connections have a limit of their own.
func (b bound) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook bounds one command.
func (b bound) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return b.call(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook bounds several commands that are sent together.
func (b bound) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := b.call(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
		if errors.Is(err, errCaller) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// errCaller means that the deadline of the caller came before an answer. It comes with
// context.DeadlineExceeded. A deadline with the cause task.ErrUnreachable is not the caller's:
// by then Redis has to have answered.
var errCaller = errors.New("no answer yet")

func (b bound) call(caller context.Context, do func(context.Context) error) error {
	ctx := caller
	if b.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.limit)
		defer cancel()
	}
	err := do(ctx)
	var answer redis.Error
	if err != nil && b.lost != nil && !errors.As(err, &answer) {
		b.lost(ctx)
	}
	expired := errors.Is(caller.Err(), context.DeadlineExceeded) && !errors.Is(context.Cause(caller), task.ErrUnreachable)
	if err != nil && expired && !errors.As(err, &answer) {
		return fmt.Errorf("%w: %w", caller.Err(), errCaller)
	}
	return err
}

// Away reports whether nothing listens where Redis was, after a call that
// failed with err: then nobody else can reach it either. It is false where that
// cannot be known: with Sentinel or Cluster, another server may have taken over.
func (s *Conn) Away(ctx context.Context, err error) bool {
	if !errors.Is(err, task.ErrUnreachable) || s.where.Cluster() || s.where.Sentinel() {
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

// longestBlock is the longest that a command waits in Redis. Its connection has
// so much more time to answer.
const longestBlock = 5 * time.Second

// WhileBlocked is for a command that waits in Redis for d: it must have answered
// within read_timeout of that. The limit of the connection, which is for the longest
// wait, would notice late that a master hangs and was replaced.
func (s *Conn) WhileBlocked(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, Bounded(d)+s.AnswerLimit(), task.ErrUnreachable)
}

// AnswerLimit is how long Redis may take to answer what does not wait.
func (s *Conn) AnswerLimit() time.Duration {
	if s.where.ReadTimeout > 0 {
		return s.where.ReadTimeout
	}
	return longestBlock
}

// Bounded keeps a wait above 0, which would be for ever, and below longestBlock.
func Bounded(d time.Duration) time.Duration { return max(min(d, longestBlock), time.Millisecond) }

// NewToken returns a text no other process makes: for requests and claims.
func NewToken() string { return rand.Text()[:16] }

// Digest is a short text of lower-case letters that stands for the texts and their order.
func Digest(texts ...string) string {
	all := make([]byte, 0, 512)
	for _, text := range texts {
		all = append(strconv.AppendInt(all, int64(len(text)), 10), ':')
		all = append(all, text...)
	}
	sum, letters := sha256.Sum256(all), make([]byte, 0, 32)
	for _, b := range sum[:16] { // letters, since an older release takes each number for an id
		letters = append(letters, 'a'+b>>4, 'a'+b&15)
	}
	return string(letters)
}
