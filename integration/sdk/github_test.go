package sdk

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-github/v92/github"
)

// githubFamily is GitHub.
var githubFamily = family{
	host:    "api.github.com",
	busy:    problem{503, `{"message":"Service unavailable"}`},
	denied:  problem{401, `{"message":"Bad credentials"}`},
	limited: problem{429, `{"message":"You have exceeded a secondary rate limit."}`},
}

func githubClients() []client {
	return []client{{
		name: "go-github", family: &githubFamily, open: githubIssue,
		answer: answer{kind: "application/json", pieces: []string{`{"id":1,"number":1,"state":"open","title":"hello"}`}},
	}}
}

func githubIssue(t *testing.T, hc *http.Client, url string) call {
	base := url + "/"
	c, err := github.NewClient(github.WithHTTPClient(hc), github.WithURLs(&base, &base))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (string, error) {
		issue, _, err := c.Issues.Create(ctx, "owner", "repo", github.CreateIssueRequest{Title: "hello"})
		return issue.GetTitle(), err
	}
}
