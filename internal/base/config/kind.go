package config

// Kind is the program a configuration is loaded for.
type Kind int

// The programs. Each accepts the sections of the others too, so that one file
// can serve all three.
const (
	ForServer Kind = iota + 1
	ForWorker
	ForManager
)

// String returns the name of the program, for example "tdf-server".
func (k Kind) String() string {
	switch k {
	case ForServer:
		return "tdf-server"
	case ForWorker:
		return "tdf-worker"
	case ForManager:
		return "tdf-manager"
	default:
		return "tdf"
	}
}
