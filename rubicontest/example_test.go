package rubicontest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// A client that tries once more when the connection is lost pays twice: the
// server had acted before it closed the connection.
func Example() {
	s := rubicontest.NewServer(rubicontest.H1,
		rubicontest.Act().Close(),
		rubicontest.Act().Answer(200, "paid\n"),
	)
	defer s.Close()

	client := &http.Client{Transport: s.Transport()}
	for range 2 {
		res, err := client.Post(s.URL+"/payments", "text/plain", strings.NewReader("10 EUR"))
		if err != nil {
			continue // "failed", so once more
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Printf("client was told: %d %s", res.StatusCode, body)
	}
	fmt.Printf("server received %d requests and acted %d times\n", s.Requests(), s.Effects())
	// Output:
	// client was told: 200 paid
	// server received 2 requests and acted 2 times
}

// A table of faults needs no column of names: a Fault says what it is.
func ExampleFault() {
	for _, f := range []rubicontest.Fault{
		rubicontest.Act().Reset(),
		rubicontest.Act().CloseListener().Close(),
		rubicontest.ReadHeader().Answer(413, "too large").Drain(),
		rubicontest.Act().Stream("data: 1\n\n", "data: 2\n\n").Cut(9).Stall(),
		rubicontest.Act().ResetStream(http2.ErrCodeInternal),
	} {
		fmt.Println(f)
	}
	// Output:
	// act, reset
	// act, close listener, close
	// read header, answer 413, drain
	// act, answer 200 cut at 9, stall
	// act, RST_STREAM INTERNAL_ERROR
}

// A server that knows repeated requests by their key acts once.
func ExampleConfig_dedupe() {
	s := rubicontest.Config{
		Dedupe: "Idempotency-Key",
		Script: []rubicontest.Fault{rubicontest.Act().Answer(201, "made\n").Cut(0).Close()},
	}.Start()
	defer s.Close()

	client := &http.Client{Transport: s.Transport()}
	for range 2 {
		req, _ := http.NewRequestWithContext(context.Background(), "POST", s.URL, nil)
		req.Header.Set("Idempotency-Key", "order-77")
		res, err := client.Do(req)
		if err != nil {
			continue
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Printf("%d %q, error: %t\n", res.StatusCode, body, err != nil)
	}
	fmt.Println("effects:", s.Effects())
	// Output:
	// 201 "", error: true
	// 201 "made\n", error: false
	// effects: 1
}
