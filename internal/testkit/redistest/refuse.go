package redistest

// Refuse answers commands that match with an error, for example "LOADING Redis is
// loading the dataset in memory", until [Proxy.Accept]. They do not reach Redis.
// What it has been asked before is answered as it answers.
func (p *Proxy) Refuse(match Match, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused, p.because = match, text
}

// Accept ends [Proxy.Refuse].
func (p *Proxy) Accept() { p.Refuse(nil, "") }

// Everything matches every command but those that begin a connection.
func Everything(args []string) bool { return !Command("HELLO")(args) && !Command("SELECT")(args) }

// refusal is the error that a command gets, empty if it is carried out.
func (p *Proxy) refusal(args []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil || !p.refused(args) {
		return ""
	}
	return p.because
}

// Mute holds back for good what comes from Redis on the connections there are, which
// stay open; new ones work. So it is when a host on the way has forgotten them.
func (p *Proxy) Mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.muted.Store(true)
	}
}
