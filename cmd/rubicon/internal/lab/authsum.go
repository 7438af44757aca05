package lab

import "fmt"

// An AuthSum is what the rows of faults of a credential come to. The zero value
// is that of none.
type AuthSum struct{ clients []*clientSum }

// A clientSum is what the rows of one client come to.
type clientSum struct {
	name                          string
	calls, served, tokens, grants int
}

// Add adds r. A row that is of no credential is left out.
func (s *AuthSum) Add(r Row) {
	if r.Auth == nil {
		return
	}
	c := s.client(r.Client)
	c.calls += r.Auth.Calls
	c.served += r.Auth.Served
	c.tokens += r.Auth.TokenRequests
	if r.Auth.Grant == killed || r.Auth.Grant == leaked {
		c.grants++
	}
}

// client returns the sum of the client of that name.
func (s *AuthSum) client(name string) *clientSum {
	for _, c := range s.clients {
		if c.name == name {
			return c
		}
	}
	c := &clientSum{name: name}
	s.clients = append(s.clients, c)
	return c
}

// Lines returns a line for each client, in the order in which they came.
func (s *AuthSum) Lines() []string {
	var lines []string
	for _, c := range s.clients {
		lines = append(lines, fmt.Sprintf("auth: %-8s  served %4d of %d calls, asked for %4d tokens, lost %d %s",
			c.name, c.served, c.calls, c.tokens, c.grants, grants(c.grants)))
	}
	return lines
}

// grants is the word for n of them.
func grants(n int) string {
	if n == 1 {
		return "grant"
	}
	return "grants"
}
