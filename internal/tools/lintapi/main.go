// Lintapi reads a description in OpenAPI on stdin, and prints what a linter has to say of it. It ends with 1 if that is anything.
//
// It is a module of its own, since the linter has tests whose own modules are not needed here.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/speakeasy-api/openapi/linter"
	"github.com/speakeasy-api/openapi/openapi"
	rules "github.com/speakeasy-api/openapi/openapi/linter"
)

func main() {
	found, err := lint(context.Background())
	if err != nil {
		found = append(found, err)
	}
	for _, problem := range found {
		fmt.Println(problem)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// others are the rules beside the recommended ones, and those of them that do not fit: a site does not know by which address clients
// reach it.
var others = map[string]bool{
	"style-operation-tags": true, "style-operation-singular-tag": true, "style-operation-tag-defined": true, "style-tag-description": true,
	"style-paths-kebab-case": true, "style-no-verbs-in-path": true,
	"style-oas3-host-trailing-slash": false, "owasp-security-hosts-https-oas3": false,
}

// lint returns what breaks the rules.
func lint(ctx context.Context) ([]error, error) {
	document, invalid, err := openapi.Unmarshal(ctx, os.Stdin)
	if err != nil {
		return nil, err
	}
	config := &linter.Config{Extends: []string{"recommended"}}
	for id, wanted := range others {
		config.Rules = append(config.Rules, linter.RuleEntry{ID: id, Disabled: new(!wanted)})
	}
	l, err := rules.NewLinter(config)
	if err != nil {
		return nil, err
	}
	out, err := l.Lint(ctx, linter.NewDocumentInfo(document, "openapi.json"), invalid, nil)
	if err != nil {
		return nil, err
	}
	return out.Results, nil
}
