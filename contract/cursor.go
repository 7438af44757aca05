package contract

// A position is the last cursor that was seen.
type position struct {
	n int
	b [256]byte
}

// set sets the position. One that is too long to be kept is as good as none.
func (c *position) set(b []byte) {
	if c.n = 0; len(b) <= len(c.b) {
		c.n = copy(c.b[:], b)
	}
}

// A latest is the data of the last frame of which only the cursor is wanted:
// it is scanned when somebody asks.
type latest struct {
	n int
	b [512]byte
}

// Latest implements [wire.Sink].
func (e *engine) Latest(data []byte) {
	if e.rule == nil || e.rule.Cursor == "" || e.rule.Cursor == EventID {
		return
	}
	if len(data) <= len(e.latest.b) {
		e.latest.n = copy(e.latest.b[:], data)
		return
	}
	e.latest.n = 0
	e.skim(data)
}

// settle finds the cursor of the last frame of which only that is wanted.
func (e *engine) settle() {
	if e.latest.n == 0 {
		return
	}
	data := e.latest.b[:e.latest.n]
	e.latest.n = 0
	e.skim(data)
}

// skim takes the cursor from the data of an event, and nothing else. Another
// frame may have begun by its name.
func (e *engine) skim(data []byte) {
	e.begin()
	e.scan.feed(data)
	e.follow()
	e.begun = false
}

// follow notes the cursor of the frame that was scanned.
func (e *engine) follow() {
	if e.rule == nil || e.rule.Cursor == "" || e.rule.Cursor == EventID {
		return
	}
	f := e.view(false)
	if e.rule.outer != nil {
		f = e.unwrapped(f)
	}
	if c := f.Get(e.rule.Cursor); len(c) > 0 {
		e.cursor.set(c)
	}
}
