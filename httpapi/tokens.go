package httpapi

import (
	"context"
	"net/http"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// tokens serves the access tokens themselves.
func (a *api) tokens() {
	const tag = "tokens"
	add(a, operation{
		method: http.MethodGet, path: "/tokens", id: "list-tokens", tag: tag, role: task.TokenAdmin,
		does: "List the access tokens, expired ones too", detail: "Their secrets are kept nowhere.",
	}, all(a.m.Tokens))
	add(a, operation{
		method: http.MethodPost, path: "/tokens", id: "add-token", tag: tag, role: task.TokenAdmin, status: http.StatusCreated,
		does: "Make an access token", detail: "The answer has its secret, which is not shown again.",
	}, a.addToken)
	add(a, operation{
		method: http.MethodDelete, path: "/tokens/{name}", id: "revoke-token", tag: tag, role: task.TokenAdmin,
		does: "Revoke a token, by its name or its id", detail: "The next request that shows it is refused.",
	}, func(ctx context.Context, in *changedIn) (*body[answer.Removed], error) {
		return in.removed(a.m.RevokeToken(ctx, in.Name, in.change(ctx)))
	})
}

type tokenIn struct {
	Body struct {
		Name    string         `json:"name" doc:"Its name, which no other token has." example:"ci"`
		Role    task.TokenRole `json:"role" enum:"read,submit,operate,admin" doc:"What its holder may do."`
		Expires string         `json:"expires,omitempty" doc:"How long it is good, such as 90d. Default: until it is revoked." example:"90d"`
		DryRun  bool           `json:"dry_run,omitempty" doc:"Say what would be done, and do nothing."`
	}
}

func (a *api) addToken(ctx context.Context, in *tokenIn) (*body[*answer.TokenAdded], error) {
	b := &in.Body
	made, err := answer.AddToken(ctx, a.m, b.Name, b.Role, b.Expires, callerOf(ctx).change("", b.DryRun))
	return &body[*answer.TokenAdded]{made}, err
}
