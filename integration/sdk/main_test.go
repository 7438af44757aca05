package sdk

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// langchainLeak is where langchaingo leaves a goroutine behind for each stream
// that reports a failure, over whatever transport.
const langchainLeak = "github.com/tmc/langchaingo/llms/anthropic/internal/anthropicclient.parseStreamingMessageResponse.func1"

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of these tests wait in the loops of an SDK, so that more of them can
	// run than there are processors.
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set("16")
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(langchainLeak), goleak.Cleanup(func(code int) {
		if testing.Verbose() && lastWord != "" {
			fmt.Println(lastWord)
		}
		os.Exit(code)
	}))
}
