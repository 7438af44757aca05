package sdk

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// packages are what the README's snippets for SDKs name, and what the names
// stand for.
var packages = map[string]string{
	"anthropic":       "github.com/anthropics/anthropic-sdk-go",
	"anthropicoption": "github.com/anthropics/anthropic-sdk-go/option",
	"azcore":          "github.com/Azure/azure-sdk-for-go/sdk/azcore",
	"bedrockruntime":  "github.com/aws/aws-sdk-go-v2/service/bedrockruntime",
	"einoopenai":      "github.com/cloudwego/eino-ext/components/model/openai",
	"genai":           "google.golang.org/genai",
	"github":          "github.com/google/go-github/v92/github",
	"goopenai":        "github.com/sashabaranov/go-openai",
	"http":            "net/http",
	"langchainopenai": "github.com/tmc/langchaingo/llms/openai",
	"mcp":             "github.com/modelcontextprotocol/go-sdk/mcp",
	"mcptransport":    "github.com/mark3labs/mcp-go/client/transport",
	"ollama":          "github.com/ollama/ollama/api",
	"openai":          "github.com/openai/openai-go/v3",
	"openaioption":    "github.com/openai/openai-go/v3/option",
	"policy":          "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy",
	"rubicon":         "github.com/rubicon-go/rubicon",
	"stripe":          "github.com/stripe/stripe-go/v84",
}

// TestReadmeCompiles compiles what the README shows for each SDK.
func TestReadmeCompiles(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```go sdk\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(snippets) < 12 {
		t.Fatalf("README.md shows %d snippets for SDKs", len(snippets))
	}
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("=> ../.."), []byte("=> "+root))
		write(t, filepath.Join(dir, name), text)
	}
	for i, s := range snippets {
		write(t, filepath.Join(dir, fmt.Sprintf("snippet%d", i), "x.go"), snippet(s[1]))
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// snippet returns the file that a snippet stands for.
func snippet(code string) []byte {
	var b strings.Builder
	b.WriteString("package p\n\nimport (\n\"context\"\n\"net/url\"\n\"github.com/aws/aws-sdk-go-v2/aws\"\n")
	for name, path := range packages {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(code) {
			fmt.Fprintf(&b, "%s %q\n", name, path)
		}
	}
	b.WriteString(")\n\nfunc _(ctx context.Context, cfg aws.Config, base *url.URL) {\n" + code)
	for _, name := range regexp.MustCompile(`(?m)^(\w+)(?:, (\w+))? :=`).FindStringSubmatch(code)[1:] {
		if name != "" {
			fmt.Fprintf(&b, "_ = %s\n", name)
		}
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

// write writes a file and the directory it is in.
func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
