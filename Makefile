# Everything that is built, tested or shown here is a target of this file; CI
# calls nothing else. `make help` lists the targets.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
BIN := $(CURDIR)/bin
TAGS := grpcnotrace

GOLANGCI_LINT_VERSION := v2.15.0
CONTAINERD2_VERSION := v2.4.2

KUBERNETES := -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36
LDFLAGS := -s -w -buildid= $(KUBERNETES) -X github.com/podctl/podctl/commands.version=$(VERSION)
BUILD := CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags "$(LDFLAGS)"
SMALL := CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags "-s -w -buildid="

IMAGES := $(BIN)/pause.tar $(BIN)/demo.tar
SOURCES := $(shell find cmd commands runtime podspec -name '*.go' -not -name '*_test.go') go.mod go.sum
PODCTL := $(BIN)/podctl

.DEFAULT_GOAL := help

##@ Building

.PHONY: build
build: $(PODCTL) ## Build bin/podctl

$(PODCTL): $(SOURCES)
	$(BUILD) -o $@ ./cmd/podctl

.PHONY: images
images: $(IMAGES) ## Build the two images of this repository, pause and demo

$(BIN)/mkimage: $(SOURCES)
	$(SMALL) -o $@ ./cmd/mkimage

$(BIN)/%.tar: $(BIN)/mkimage $(SOURCES)
	$(SMALL) -o $(BIN)/$* ./cmd/$*
	$(BIN)/mkimage -name registry.local/podctl/$*:1 -binary $(BIN)/$* -o $@

.PHONY: generate
generate: ## Write docs/cli and docs/fields.md from the code
	$(GO) run -tags $(TAGS) ./cmd/gendocs docs docs

.PHONY: install
install: build ## Install podctl to /usr/local/bin
	install -m 0755 $(PODCTL) $(DESTDIR)/usr/local/bin/podctl

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) dist

##@ Trying it

.PHONY: demo
demo: setup-runtime build images ## Start a private containerd and run docs/examples/hello.yaml
	@PODCTL=$(PODCTL) BIN=$(BIN) sh docs/examples/demo.sh

.PHONY: demo-down
demo-down: build ## Take down what demo started
	$(PODCTL) node down

##@ Testing

.PHONY: test
test: setup verify lint unit race e2e smoke ## Everything CI runs

.PHONY: test-all
test-all: setup verify lint unit race e2e e2e-2 bench ## Everything, on both versions of containerd in full

.PHONY: unit
unit: ## Unit tests
	CGO_ENABLED=0 $(GO) test -tags $(TAGS) ./...

.PHONY: race
race: ## Unit tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -tags $(TAGS) ./commands/... ./podspec/... ./runtime/...

.PHONY: lint
lint: $(BIN)/golangci-lint ## Lint
	$(BIN)/golangci-lint run --build-tags $(TAGS) ./...

.PHONY: verify
verify: generate ## Generated documents and go.mod are up to date
	$(GO) mod tidy -diff
	git diff --exit-code -- docs

E2E := CGO_ENABLED=0 PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) $(GO) test -tags "$(TAGS) e2e" -count=1

.PHONY: e2e
e2e: setup-runtime build images ## End-to-end tests on a private containerd of the distribution
	PODCTL_CONTAINERD=containerd $(E2E) ./commands/ ./runtime/...

.PHONY: e2e-2
e2e-2: setup-containerd2 build images ## The same on containerd 2
	PODCTL_CONTAINERD=$(BIN)/containerd2/containerd $(E2E) ./commands/ ./runtime/...

.PHONY: smoke
smoke: setup-containerd2 build images ## The most important of them on containerd 2
	PODCTL_CONTAINERD=$(BIN)/containerd2/containerd $(E2E) -run 'TestE2E/(hello|replace|delete)' ./commands/

FUZZTIME ?= 60s

.PHONY: fuzz
fuzz: ## Look for input that makes a plan panic or differ, for FUZZTIME
	CGO_ENABLED=0 $(GO) test -tags $(TAGS) -run '^$$' -fuzz FuzzPlan -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./runtime

.PHONY: bench
bench: setup-runtime build images ## Times against the bare CRI calls, in one run; plans a second
	CGO_ENABLED=0 $(GO) test -tags $(TAGS) -run '^$$' -bench . ./runtime/plan
	PODCTL_CONTAINERD=containerd $(E2E) -run '^$$' -bench . -benchtime 10x ./commands/

##@ Setting up

.PHONY: setup
setup: setup-runtime setup-containerd2 $(BIN)/golangci-lint ## Install everything that is missing

# program:package pairs of the distribution.
NEEDED := containerd:containerd runc:runc iptables:iptables gcc:gcc

.PHONY: setup-runtime
setup-runtime: ## Install the runtime packages that are missing (needs root, Debian or Ubuntu)
	@missing=""; \
	for pair in $(NEEDED); do command -v $${pair%%:*} >/dev/null || missing="$$missing $${pair##*:}"; done; \
	test -x /usr/lib/cni/bridge || test -x /opt/cni/bin/bridge || missing="$$missing containernetworking-plugins"; \
	if [ -n "$$missing" ]; then \
		echo "installing$$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing </dev/null; \
	fi

.PHONY: setup-containerd2
setup-containerd2: $(BIN)/containerd2/containerd ## Build the current containerd 2 into bin/containerd2

$(BIN)/containerd2/containerd:
	GOBIN=$(BIN)/containerd2 CGO_ENABLED=0 $(GO) install github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@$(CONTAINERD2_VERSION)
	GOBIN=$(BIN)/containerd2 CGO_ENABLED=0 $(GO) install github.com/containerd/containerd/v2/cmd/containerd@$(CONTAINERD2_VERSION)

$(BIN)/golangci-lint:
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

##@ Help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
