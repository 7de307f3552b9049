package conn

// Universal is what the client of Redis is told.
var Universal = universal

// Names are those of the keys and arguments in the header of a script. It panics on a name that no key has.
func (room *Scripts) Names(script string) (keys, args []string) {
	h := headerOf(room.body(script))
	_ = keysOf(script, h)
	return h.keys, h.args
}

// Body is the file of a script, Text that with all it uses, Placed the whole of it as it is sent but for words, Read any file.
func (room *Scripts) Body(script string) string { return room.body(script) }

func (room *Scripts) Text(script string) string { return room.text("", script) }

func (room *Scripts) Placed(script string) string {
	return placed(room.text("", script), headerOf(room.body(script)), nil)
}

func (room *Scripts) Read(file string) string { return room.read(file) }
