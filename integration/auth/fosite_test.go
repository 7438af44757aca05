package auth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"
	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/storage"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/oauth2"
)

// A fositeServer is ory/fosite: it rotates refresh tokens, a renewal ends the
// access token of before, and a refresh token that is used twice ends them all.
type fositeServer struct {
	mu       sync.Mutex // its MemoryStore races otherwise
	provider fosite.OAuth2Provider
	store    *storage.MemoryStore
}

// newFosite starts a site in front of fosite, with a token of its password
// grant.
func newFosite(t *testing.T) (*site, *fositeServer) {
	t.Helper()
	secret, err := bcrypt.GenerateFromPassword([]byte("hushhush"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	s := &fositeServer{store: storage.NewMemoryStore()}
	s.store.Clients["client"] = &fosite.DefaultClient{
		ID: "client", Secret: secret, GrantTypes: []string{"password", "refresh_token"}, Scopes: []string{"offline"},
	}
	s.store.Users["user"] = storage.MemoryUserRelation{Username: "user", Password: "pass"}
	config := &fosite.Config{
		GlobalSecret: []byte("a secret of thirty-two bytes, ok"), AccessTokenLifespan: time.Hour, HashCost: bcrypt.MinCost,
	}
	s.provider = compose.Compose(config, s.store,
		&compose.CommonStrategy{CoreStrategy: compose.NewOAuth2HMACStrategy(config)},
		//lint:ignore SA1019 it is the shortest way to a first token
		compose.OAuth2ResourceOwnerPasswordCredentialsFactory,
		compose.OAuth2RefreshTokenGrantFactory,
		compose.OAuth2TokenIntrospectionFactory,
	)
	server := httptest.NewServer(s)
	defer server.Close()
	login := oauth2.Config{
		ClientID: "client", ClientSecret: "hushhush", Scopes: []string{"offline"},
		Endpoint: oauth2.Endpoint{TokenURL: server.URL, AuthStyle: oauth2.AuthStyleInHeader},
	}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, server.Client())
	first, err := login.PasswordCredentialsToken(ctx, "user", "pass")
	if err != nil || first.RefreshToken == "" {
		t.Fatalf("the first token: %v", err)
	}
	return newSite(t, s, first), s
}

// ServeHTTP implements [http.Handler].
func (s *fositeServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx := req.Context()
	access, err := s.provider.NewAccessRequest(ctx, req, new(fosite.DefaultSession))
	if err != nil {
		s.provider.WriteAccessError(ctx, w, access, err)
		return
	}
	for _, scope := range access.GetRequestedScopes() {
		access.GrantScope(scope)
	}
	res, err := s.provider.NewAccessResponse(ctx, access)
	if err != nil {
		s.provider.WriteAccessError(ctx, w, access, err)
		return
	}
	s.provider.WriteAccessResponse(ctx, w, access, res)
}

func (s *fositeServer) good(ctx context.Context, access string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err := s.provider.IntrospectToken(ctx, access, fosite.AccessToken, new(fosite.DefaultSession))
	return err == nil
}

func (s *fositeServer) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.store.AccessTokens)
}

// alive returns how many access tokens there are.
func (s *fositeServer) alive() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.store.AccessTokens)
}

// end ends the grant.
func (s *fositeServer) end() {
	s.revoke()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.store.RefreshTokens)
}

// A mockServer is mockoidc: it does not rotate, says that its tokens live for
// nanoseconds in place of seconds, and answers for a dead refresh token 401
// with invalid_request.
type mockServer struct{ *mockoidc.MockOIDC }

// newMock starts a site in front of mockoidc.
func newMock(t *testing.T) (*site, mockServer, *oauth2.Config) {
	t.Helper()
	oidc, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mockServer{oidc}
	session, err := m.SessionStore.NewSession("openid", "", mockoidc.DefaultUser(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	site := newSite(t, m, nil)
	config := &oauth2.Config{
		ClientID: m.ClientID, ClientSecret: m.ClientSecret,
		Endpoint: oauth2.Endpoint{TokenURL: site.auth.URL, AuthStyle: oauth2.AuthStyleInParams},
	}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, tokenClient(t))
	site.first, err = config.Exchange(ctx, session.SessionID)
	if err != nil || site.first.RefreshToken == "" {
		t.Fatalf("the first token: %v", err)
	}
	site.requests.Store(0)
	return site, m, config
}

// ServeHTTP implements [http.Handler].
func (m mockServer) ServeHTTP(w http.ResponseWriter, req *http.Request) { m.Token(w, req) }

// good asks mockoidc's own API.
func (m mockServer) good(ctx context.Context, access string) bool {
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
	req.Header.Set("Authorization", "Bearer "+access)
	m.Userinfo(w, req)
	return w.Code == http.StatusOK
}

// revoke lets the time go by that an access token lives.
func (m mockServer) revoke() { m.FastForward(m.AccessTTL + time.Minute) }

// end lets the time go by that a refresh token lives.
func (m mockServer) end() { m.FastForward(m.RefreshTTL + time.Minute) }
