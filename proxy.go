package rubicon

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// A ProxyError is a proxy's refusal to open a tunnel: the request never left
// for its origin.
type ProxyError struct {
	Proxy  string      // the proxy's host
	Status int         // of its answer to CONNECT
	Header http.Header // of its answer
}

// ProxyConnectResponse keeps the status of a proxy that refuses CONNECT, of
// which net/http otherwise leaves only a text. It is meant for
// [http.Transport.OnProxyConnectResponse].
func ProxyConnectResponse(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: proxy.Host, Status: res.StatusCode, Header: res.Header.Clone()}
}

// Error implements error.
func (e *ProxyError) Error() string {
	return fmt.Sprintf("rubicon: proxy %s refused CONNECT: %d %s", e.Proxy, e.Status, http.StatusText(e.Status))
}

// Final reports whether asking again would not help: 407 asks for credentials
// (RFC 9110 section 15.5.8) and 403 forbids (section 15.5.4).
func (e *ProxyError) Final() bool {
	return e.Status == http.StatusProxyAuthRequired || e.Status == http.StatusForbidden
}

// GoString is Error, so that %#v prints no header.
func (e *ProxyError) GoString() string { return e.Error() }
