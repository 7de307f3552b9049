# What one does with this repository. `make` alone lists the targets.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  := $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
CLI     := github.com/tdf-go/tdf/internal/base/cli
LDFLAGS := -s -w -X $(CLI).Version=$(VERSION) -X $(CLI).Commit=$(COMMIT)

PROGRAMS := $(notdir $(wildcard cmd/tdf*))

# The packages that have long tests.
LONG = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=bin '^func TestLong' *))))
# Those of them that explore one step after the other, or drive programs from outside.
UNRACED := statemachine|internal/(store|ops/audit|tools/prove)|bench(/.*)?|test/(demo|model|tour|upgrade)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## two workers add the numbers from 10 to 100, before your eyes
	@scripts/demo.sh

.PHONY: build
build: ## put the static programs into bin/
	@mkdir -p bin
	@for program in $(PROGRAMS); do \
		CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/$$program ./cmd/$$program || exit 1; \
		echo "bin/$$program"; \
	done

.PHONY: test
test: ## install what the tests need, then run all of them but the long ones
	@scripts/setup-test.sh
	@scripts/test.sh -skip '^TestLong' ./...

.PHONY: test-long
test-long: ## the tests that explore, kill at random or measure for long, the benchmarks once, and each setting forgotten
	@scripts/setup-test.sh
	@cd bench/peers && go test -race ./...
	@scripts/bench-once.sh
	@TDF_TEST_UNRACED='$(UNRACED)' TDF_TEST_EVENTS=bin/test-long-events.json scripts/test.sh -run '^TestLong' $(LONG)
	@go run ./internal/tools/mutate -settings

.PHONY: test-busy
test-busy: ## the tests beside busy loops, to find those that are wrong: make test-busy RUNS=10 PACKAGES=./worker
	@scripts/setup-test.sh
	@RUNS='$(or $(RUNS),10)' scripts/test-busy.sh -skip '^TestLong' $(or $(PACKAGES),./...)

.PHONY: race
race: ## the tests again and again: statemachine and store twenty times, all three times
	@scripts/setup-test.sh
	@TDF_TEST_UNRACED=none TDF_TEST_TIMEOUT=60m scripts/test.sh -skip '^TestLong' -count=20 ./statemachine ./internal/store
	@TDF_TEST_UNRACED=none TDF_TEST_TIMEOUT=60m scripts/test.sh -count=3 ./...

.PHONY: chaos
chaos: ## kill, freeze and starve everything at random: make chaos SEED=7 DURATION=10m REPORT=chaos.json
	@scripts/setup-test.sh
	@TDF_CHAOS_SEED='$(SEED)' TDF_CHAOS_DURATION='$(or $(DURATION),1m)' CHAOS_REPORT='$(abspath $(REPORT))' \
		go test -count=1 -timeout=0 -v -run '^TestLongKilledAtRandom$$' ./test/chaos

.PHONY: stress-plans
stress-plans: ## a plan of 100 tasks while all is killed: make stress-plans SEEDS=20, or SEED=7
	@scripts/setup-test.sh
	@TDF_STRESS_SEEDS='$(or $(SEEDS),20)' TDF_STRESS_SEED='$(SEED)' \
		go test -count=1 -timeout=0 -v -run '^TestLongPlanWhileAllIsKilled$$' ./test/acceptance

.PHONY: lint
lint: ## gofmt and golangci-lint (built from source on first use)
	@scripts/lint.sh

.PHONY: generate
generate: ## rewrite the generated files
	@go generate ./...

.PHONY: api
api: ## rewrite docs/api.txt: what the public packages export
	@go generate ./internal/tools/shape

.PHONY: verify
verify: ## generated files and go.mod are up to date, everything compiles, the CHANGELOG knows the API
	@scripts/verify.sh
	@scripts/api.sh
	@$(MAKE) --no-print-directory build

.PHONY: ci
ci: ## what a change must pass: build, lint, shape, verify, test, test-long
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory shape
	@$(MAKE) --no-print-directory verify
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-long
	@scripts/report.sh bin/test-events.json bin/test-long-events.json

.PHONY: bench
bench: build ## speed beside all peers, into bench/RESULTS.md: some ten minutes (ARGS=latency: that table alone, and no file)
	@scripts/setup-bench.sh
	@go run ./bench $(or $(ARGS),programs wide handlers latency -markdown bench/RESULTS.md -json bench/results.json)

.PHONY: bench-check
bench-check: build ## run it again: no ratio to a peer may be much worse than in bench/results.json (ARGS="-tolerance 0.1")
	@scripts/setup-bench.sh
	@go run ./bench -check bench/results.json $(ARGS)

.PHONY: bench-quick
bench-quick: build ## programs beside xargs and asynq, and containment, one round each (ARGS="-rounds 9": more)
	@scripts/setup-test.sh
	@go run ./bench programs containment -rounds 1 $(ARGS)

.PHONY: bench-plans
bench-plans: ## what plans cost: 100,000 tasks of ten needs beside as many that need nothing (ARGS="-tasks 10000": less)
	@scripts/setup-test.sh
	@go run ./bench plans $(ARGS)

.PHONY: bench-size
bench-size: ## what a waiting task costs, and many of them: memory, speed behind them, quiet servers
	@scripts/setup-test.sh
	@go run ./bench memory scale quiet $(ARGS)

.PHONY: bench-fleet
bench-fleet: ## 1,000 workers on one Redis: speed, fairness, what an idle one costs (ARGS="-workers 10000": more)
	@scripts/setup-test.sh
	@go run ./bench fleet $(ARGS)

.PHONY: bench-flow
bench-flow: ## memory of Redis while 2,000,000 tasks flow through it and few are kept (ARGS="-tasks 200000": less)
	@scripts/setup-test.sh
	@go run ./bench flow $(ARGS)

.PHONY: mutate
mutate: ## plant defects and forget settings, one at a time; each must turn a test red
	@scripts/setup-test.sh
	@go run ./internal/tools/mutate

.PHONY: model
model: ## check the Promela model of the protocol with spin (docs/model)
	@scripts/model.sh

.PHONY: prove
prove: ## bring known bugs of other queues back; each must turn its test red (BUG=name: one)
	@scripts/setup-test.sh
	@go run ./internal/tools/prove -bug '$(BUG)'

.PHONY: shape
shape: ## how simple the house and the path of a task are; fails if they have become less so
	@go build -cover -covermode=atomic -coverpkg=./... -o bin/shape ./internal/tools/shape
	@rm -rf bin/shape-cover && mkdir bin/shape-cover && GOCOVERDIR=bin/shape-cover bin/shape

.PHONY: clean
clean: ## remove bin/
	@rm -rf bin
