package httpapi

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// described is the description that a handler serves.
func described(t *testing.T, h http.Handler) (libopenapi.Document, validator.Validator) {
	t.Helper()
	w := ask(t, h, http.MethodGet, root+"/openapi.json")
	document, err := libopenapi.NewDocument(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return document, v
}

// The description is one of OpenAPI 3.1, of which no part is missing: each operation has a name of its own, a line that says what it
// does, a noun, and a token that it takes; each parameter and each field of a body says what it is.
func TestDescription(t *testing.T) {
	t.Parallel()
	document, v := described(t, serve(t, storetest.New(t), &health{}))
	if ok, errs := v.ValidateDocument(); !ok {
		for _, err := range errs {
			t.Errorf("%v", err)
		}
	}
	model, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	sentence, seen := regexp.MustCompile(`^[A-Z][^.]*$`), map[string]bool{}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			name := method + " " + path
			if seen[op.OperationId] || op.OperationId == "" {
				t.Errorf("%s: operationId %q", name, op.OperationId)
			}
			seen[op.OperationId] = true
			if !sentence.MatchString(op.Summary) || len(op.Tags) != 1 || len(op.Security) != 1 {
				t.Errorf("%s: summary %q, tags %v, security %v", name, op.Summary, op.Tags, op.Security)
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s: parameter %s has no description", name, p.Name)
				}
			}
		}
	}
	if len(seen) < 8 {
		t.Errorf("only %d operations are described", len(seen))
	}
}

// A linter of descriptions finds nothing.
func TestLongDescriptionIsLinted(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = "../internal/tools/lintapi"
	cmd.Stdin = ask(t, serve(t, storetest.New(t), &health{}), http.MethodGet, root+"/openapi.json").Body
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// fits checks that an answer is as the description says.
func fits(t *testing.T, v validator.Validator, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	if ok, errs := v.ValidateHttpResponse(r, w.Result()); !ok {
		for _, err := range errs {
			t.Errorf("%s %s: %v %v", r.Method, r.URL, err, err.SchemaValidationErrors)
		}
	}
}
