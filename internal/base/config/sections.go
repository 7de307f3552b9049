package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/task"
)

// EmbeddedHost is the value of [redis] host with which a server starts a Redis
// of its own inside the process, for trials; nothing survives its end.
const EmbeddedHost = "embedded"

// Complete fills the fields that a program has left at zero from another value of the
// same struct. A negative number becomes 0, which turns a setting off.
func Complete[T any](given, from T) T {
	into, rest := reflect.ValueOf(&given).Elem(), reflect.ValueOf(from)
	for i := range into.NumField() {
		switch field := into.Field(i); v := field.Interface().(type) {
		case int, int64, time.Duration:
			switch n := field.Int(); {
			case n == 0:
				field.Set(rest.Field(i))
			case n < 0:
				field.SetInt(0)
			}
		case bool:
			field.SetBool(v || rest.Field(i).Bool())
		default:
			if field.IsZero() {
				field.Set(rest.Field(i))
			}
		}
	}
	return given
}

// The structs of the sections have a field a key. What a key means, its default and
// its limits, and what an empty text means, stand in [schemaOf]; sizes are in bytes.

// Redis holds the section [redis]: which server to use and how to reach it.
type Redis struct {
	Host             string
	Port             int // 0, with an embedded Redis only, for any free one
	Username         string
	Password         string `json:"-"` // never to be printed
	PasswordFile     string // the file that Password was read from
	DB               int
	TLS              bool
	CAFile           string
	CertFile         string
	KeyFile          string
	ServerName       string
	SentinelMaster   string // with it, Host and Port are not used
	SentinelAddrs    []string
	SentinelPassword string   `json:"-"` // never to be printed
	ClusterAddrs     []string // with them, Host and Port are not used

	DialTimeout, ReadTimeout, WriteTimeout time.Duration

	Durability         string // DurabilityFast, DurabilitySafe or DurabilityHA
	ReplicationTimeout time.Duration
}

// The values of [redis] durability.
const (
	DurabilityFast = "fast"
	DurabilitySafe = "safe"
	DurabilityHA   = "ha"
)

// Embedded reports whether the server is to start a Redis inside its process.
func (r Redis) Embedded() bool { return r.Host == EmbeddedHost }

// Sentinel reports whether the sentinels name the master.
func (r Redis) Sentinel() bool { return r.SentinelMaster != "" }

// Cluster reports whether Redis is a cluster.
func (r Redis) Cluster() bool { return len(r.ClusterAddrs) > 0 }

// Addr returns the network ("tcp" or "unix") and address of a single Redis. An
// embedded one has the loopback address on which it listens.
func (r Redis) Addr() (network, address string) {
	port := strconv.Itoa(r.Port)
	switch {
	case strings.HasPrefix(r.Host, "/"):
		return "unix", r.Host
	case r.Embedded():
		return "tcp", net.JoinHostPort("127.0.0.1", port)
	default:
		return "tcp", net.JoinHostPort(strings.Trim(r.Host, "[]"), port)
	}
}

// String describes where Redis is, without any secret, for logs and errors.
func (r Redis) String() string {
	db := " db " + strconv.Itoa(r.DB)
	switch {
	case r.Cluster():
		return "cluster " + strings.Join(r.ClusterAddrs, ",")
	case r.Sentinel():
		return "sentinel " + r.SentinelMaster + "@" + strings.Join(r.SentinelAddrs, ",") + db
	default:
		_, address := r.Addr()
		return address + db
	}
}

// Mark is a short text that is the same for the same description of a Redis: it
// keeps what belongs to one Redis apart from the same names of another on a host.
func (r Redis) Mark() string {
	sum := sha256.Sum256([]byte(r.String()))
	return hex.EncodeToString(sum[:4])
}

// GoString is like String: %#v cannot leak a password.
func (r Redis) GoString() string { return "config.Redis(" + r.String() + ")" }

// TDF holds the section [tdf].
type TDF struct {
	Namespace string // see [ValidNamespace]
	Pprof     string
}

// HTTP holds the section [http].
type HTTP struct {
	Listen            string // empty for nowhere
	WorkerListen      string // of tdf-worker
	CertFile, KeyFile string // with them over TLS
	Insecure          bool
	Flock             bool // the paths of Flock's document are served too
	Disbatch          bool // those of Disbatch are
}

// Server holds the section [server].
type Server struct {
	RoundDuration    time.Duration
	TimeoutGrace     time.Duration
	WorkerTimeout    time.Duration
	Quarantine       string // QuarantineOff, QuarantineWarn or QuarantineOn
	QuarantineProbe  time.Duration
	HistoryFile      string
	Events           int
	BlobLimit        int64 // bytes, as is BlobQuota
	BlobQuota        int64
	FileRetention    time.Duration
	ArchiveRetention []Retention // outcomes that are not named stay for ever
	ArchiveDir       string
	BatchSize        int
	RepairInterval   time.Duration
	RepairBatch      int
}

// The words for what becomes of a suspicious node; see Server.Quarantine.
const (
	QuarantineOff  = "off"  // nobody looks
	QuarantineWarn = "warn" // it is announced
	QuarantineOn   = "on"   // it is announced, and gets no tasks but probes
)

// Worker holds the section [worker].
type Worker struct {
	Slots      int // 0 for the number of cores
	Ahead      int // at most MaxAhead
	Node       string
	Env        string
	Labels     []string
	Resources  task.Resources
	Classes    []string
	MaxThreads task.Limit

	OutputFile, ErrorFile string
	OutputLimit           int64
	OutputMax             int64
	KeepRounds            int    // 0 for all
	Settle                string // SettleByWorker or SettleByServer

	SleepAfterSuccess, SleepAfterFailure time.Duration
	SleepInitial                         time.Duration
	SleepIncrease                        float64
	SleepMax                             time.Duration
	SleepAfterNoProcessClaimed           time.Duration // 0, written inf, for no bound

	KillGrace, DrainTimeout time.Duration
	OnRedisLoss             string // StopOnLoss or FinishOnLoss

	ProgramDir, TempDir, SpoolDir string
	Workdir                       string // task.WorkdirPrivate or task.WorkdirShared
	Commands                      string // CommandsOn or CommandsOff
	ProgramCache                  int64
	DiskReserve                   int64

	Environment        []string
	Containment        string // auto, pidns, cgroup or group
	RequireContainment bool
	Cgroup             string
	RunAs              string
	Wrapper            string
	Rlimits            map[string]uint64 // by name
	MemoryMax          int64             // 0 for no limit
	PidsMax            int               // 0 for no limit

	FetchTimeout                     time.Duration
	FetchMaxBytes, FetchMaxFileBytes int64
	FetchMaxEntries                  int
	FetchMaxRedirects                int
	Revalidate                       time.Duration
	NetrcFile, CAFile                string
	SSHOptions, RsyncPath            string
	RequirePinned                    bool
}

// MaxAhead is the most of [worker] ahead.
const MaxAhead = 4

// The values of [worker] on_redis_loss.
const (
	StopOnLoss   = "stop"
	FinishOnLoss = "finish"
)

// The values of [worker] settle.
const (
	SettleByWorker = "worker"
	SettleByServer = "server"
)

// The values of [worker] commands.
const (
	CommandsOn  = "on"
	CommandsOff = "off"
)

// Manager holds the section [manager].
type Manager struct {
	RoundDuration     time.Duration
	BatchSize         int
	KeyTTL            time.Duration
	HandlerBackoff    time.Duration
	HandlerBackoffMax time.Duration
	HandlingLease     time.Duration
}

// The values of [manager] pin, and of --pin.
const (
	PinAuto    = "auto"
	PinRequire = "require"
	PinOff     = "off"
)

// TaskDefaults holds the section [task_defaults]: the texts of the fields of a
// new task that its opener did not give, as package task has them.
type TaskDefaults struct {
	task.Defaults
	AddRandomStartOffset bool
}

// ArchiveAtOnce lets tasks be archived when they end, unless the task or its queue says otherwise: their opener waits for no handlers.
func (d *TaskDefaults) ArchiveAtOnce() {
	if d.Defaults == nil {
		d.Defaults = task.Defaults{}
	}
	d.Defaults["archive"] = task.ArchiveAtOnce
}

// Check refuses values that contradict each other. The error is an *Error.
func (d *TaskDefaults) Check() error {
	start, end := d.Defaults["start_after"], d.Defaults["end_before"]
	if number(start) <= number(end) {
		return nil
	}
	return &Error{
		Section: "task_defaults", Key: "start_after", Value: start, Err: ErrInvalid,
		Problem: "later than end_before (" + end + "), so that the task would expire",
		Remedy:  "write an earlier start_after or a later end_before",
	}
}

// number converts a text that Load has validated.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}
