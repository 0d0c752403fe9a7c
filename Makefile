# Everything that is built, tested or shown here is a target of this file; CI
# calls nothing else. `make help` lists the targets.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
BIN := $(CURDIR)/bin
COMMA := ,
TAGS := grpcnotrace

GOLANGCI_LINT_VERSION := v2.15.0
CONTAINERD2_VERSION := v2.4.2
GOVULNCHECK_VERSION := v1.1.4

KUBERNETES := -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36
LDFLAGS := -s -w -buildid= $(KUBERNETES) -X github.com/podctl/podctl/commands.version=$(VERSION)
# The version names the commit. Go's own stamp of it would be another in a copy of the
# sources, and the bytes with it.
STATIC := CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -buildvcs=false
BUILD := $(STATIC) -ldflags "$(LDFLAGS)"
SMALL := $(STATIC) -ldflags "-s -w -buildid="

TOOL := $(GO) run -trimpath -tags $(TAGS)

IMAGES := $(BIN)/pause.tar $(BIN)/demo.tar
# The benchmarks are a module of their own: nothing of them gets into the product.
BENCHMARKS := cmd/bench
# So are the tests with a real kubelet, whose version is that of k8s.io/kubernetes in go.mod.
KUBETESTS := test/kubernetes
KUBERNETES_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2 }' go.mod)
KUBEBIN := $(BIN)/kubernetes-$(KUBERNETES_VERSION)
SOURCES := $(shell find cmd commands runtime podspec -name '*.go' -not -name '*_test.go' -not -path '$(BENCHMARKS)/*') go.mod go.sum
PODCTL := $(BIN)/podctl

.DEFAULT_GOAL := help

##@ Building

.PHONY: build
build: $(PODCTL) ## Build bin/podctl

# What was built with other tags is old.
$(BIN)/tags: FORCE
	@mkdir -p $(BIN)
	@echo "$(TAGS)" | cmp -s - $@ || echo "$(TAGS)" >$@

$(PODCTL): $(SOURCES) $(BIN)/tags
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
	$(TOOL) ./cmd/gendocs docs docs

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) $(DIST)

##@ Installing it

PREFIX ?= /usr/local
ARCH ?= $(shell $(GO) env GOARCH)
ARCHES ?= amd64 arm64
DIST := $(CURDIR)/dist
WORK := $(BIN)/parts

# All that is packed bears the time of the last commit, so that it is the same
# whenever and wherever it is built.
ifndef SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
endif
export SOURCE_DATE_EPOCH

# Nothing of the builder's own settings may get into what is given away, and it is
# built with the Go that go.mod names.
RELEASE := GOFLAGS= GOEXPERIMENT= GOTOOLCHAIN=go$(shell awk '$$1 == "go" { print $$2 }' go.mod) GOOS=linux GOAMD64=v1 GOARM64=v8.0

PARTS = $(WORK)/$(ARCH)/podctl $(WORK)/$(ARCH)/pause.tar $(WORK)/$(ARCH)/podctl.spdx.json $(WORK)/man $(WORK)/completions

.PHONY: parts
parts: $(PARTS) ## Build all that install installs, for ARCH

# The version is in the programs, so they are old when it is another, or the tags.
$(WORK)/version: FORCE
	@mkdir -p $(WORK)
	@echo "$(VERSION) $(SOURCE_DATE_EPOCH) $(TAGS)" | cmp -s - $@ || echo "$(VERSION) $(SOURCE_DATE_EPOCH) $(TAGS)" >$@

.PHONY: FORCE
FORCE:

.SECONDARY:

$(WORK)/%/podctl: $(SOURCES) $(WORK)/version
	$(RELEASE) GOARCH=$* $(BUILD) -o $@ ./cmd/podctl

$(WORK)/%/pause.tar: $(BIN)/mkimage $(SOURCES)
	$(RELEASE) GOARCH=$* $(SMALL) -o $(WORK)/$*/pause ./cmd/pause
	GOARCH=$* $(BIN)/mkimage -name registry.local/podctl/pause:1 -binary $(WORK)/$*/pause -o $@

$(WORK)/%/podctl.spdx.json: $(WORK)/%/podctl
	$(TOOL) ./cmd/sbom -version "$(VERSION)" $< >$@

$(WORK)/man $(WORK)/completions: $(SOURCES) $(WORK)/version
	$(TOOL) ./cmd/gendocs $(@F) $@

UNITS := $(wildcard docs/packaging/*.service)
SHARE = $(DESTDIR)$(PREFIX)/share
# Where zsh looks differs: Debian keeps this one for the administrator.
ZSH ?= zsh/site-functions

.PHONY: install
install: $(PARTS) ## Install podctl, completions, manual and units below DESTDIR and PREFIX
	install -D -m 0755 $(WORK)/$(ARCH)/podctl $(DESTDIR)$(PREFIX)/bin/podctl
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/podctl $(WORK)/$(ARCH)/pause.tar
	install -D -m 0644 -t $(SHARE)/man/man1 $(WORK)/man/*.1
	install -D -m 0644 $(WORK)/completions/podctl.bash $(SHARE)/bash-completion/completions/podctl
	install -D -m 0644 -t $(SHARE)/$(ZSH) $(WORK)/completions/_podctl
	install -D -m 0644 -t $(SHARE)/fish/vendor_completions.d $(WORK)/completions/podctl.fish
	install -D -m 0644 -t $(SHARE)/doc/podctl README.md CHANGELOG.md LICENSE $(WORK)/$(ARCH)/podctl.spdx.json
	install -D -m 0644 -t $(SHARE)/doc/podctl/docs docs/*.md
	install -D -m 0644 -t $(SHARE)/doc/podctl/examples docs/examples/*.yaml
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system $(UNITS)
	cd $(DESTDIR)$(PREFIX)/lib/systemd/system && sed -i 's|/usr/|$(PREFIX)/|g' $(notdir $(UNITS))
	install -d -m 0755 $(DESTDIR)/etc/podctl/pods

# A version of Debian's begins with a digit: 1.2.0, 1.2.0+3.gabcdef0 three commits
# later, and before the first tag one that is older than all.
DEB_VERSION = $(shell echo '$(VERSION)' | sed -E 's/^v//; s/-/+/; s/-/./g; /^[0-9]+\.[0-9]/!s/^/0~git$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%Y%m%d)./')
DEB = $(DIST)/podctl_$(DEB_VERSION)_$(ARCH).deb
MAINTAINER ?= $(shell git log -1 --format='%an <%ae>' 2>/dev/null || echo 'podctl authors <podctl@localhost>')

.PHONY: deb
deb: $(PARTS) ## Build a Debian package for ARCH
	@mkdir -p $(DIST)
	rm -rf $(WORK)/$(ARCH)/tree
	@$(MAKE) --no-print-directory install DESTDIR=$(WORK)/$(ARCH)/tree PREFIX=/usr ZSH=zsh/vendor-completions >/dev/null
	MAINTAINER="$(MAINTAINER)" sh docs/packaging/deb.sh $(WORK)/$(ARCH)/tree $(ARCH) "$(DEB_VERSION)" "$(DEB)"

.PHONY: check-deb
check-deb: deb ## Unpack the Debian package and look at everything in it
	@sh docs/packaging/check-deb.sh "$(DEB)"

.PHONY: dist
dist: ## Build what is given away, for ARCHES: programs, SBOMs, packages, sums
	rm -rf $(DIST)
	@set -e; for arch in $(ARCHES); do \
		$(MAKE) --no-print-directory deb ARCH=$$arch; \
		cp $(WORK)/$$arch/podctl $(DIST)/podctl-linux-$$arch; \
		cp $(WORK)/$$arch/podctl.spdx.json $(DIST)/podctl-linux-$$arch.spdx.json; \
	done
	cd $(DIST) && sha256sum * >SHA256SUMS && cat SHA256SUMS

.PHONY: verify-dist
verify-dist: dist ## Build it again elsewhere and with an empty cache: the bytes are the same
	sh docs/packaging/verify-dist.sh "$(DIST)" VERSION="$(VERSION)" MAINTAINER="$(MAINTAINER)" ARCHES="$(ARCHES)"

.PHONY: check-dist
check-dist: ## The same for ARCH alone with the build cache of before, and check-deb
	@CACHE=$$($(GO) env GOCACHE) $(MAKE) --no-print-directory verify-dist ARCHES=$(ARCH)
	@sh docs/packaging/check-deb.sh "$(DEB)"

##@ Trying it

.PHONY: demo
demo: setup-runtime build images ## Start a private containerd and run docs/examples/hello.yaml
	@PODCTL=$(PODCTL) BIN=$(BIN) sh docs/examples/demo.sh

.PHONY: picture
picture: setup-runtime build images ## Record the picture of README
	$(GO) build -o $(BIN)/picture ./cmd/picture
	PODCTL=$(PODCTL) BIN=$(BIN) sh docs/examples/picture.sh > docs/pictures/session.svg

.PHONY: demo-down
demo-down: build ## Take down what demo started
	$(PODCTL) node down

##@ Testing

.PHONY: test
test: setup verify lint unit race e2e smoke bench-smoke check-dist vm-smoke ## Everything CI runs

.PHONY: test-all
test-all: setup verify lint unit race e2e e2e-2 test-kubernetes test-vm bench ## Everything, on both versions of containerd in full

.PHONY: unit
unit: ## Unit tests
	CGO_ENABLED=0 $(GO) test -timeout 30m -tags $(TAGS) ./...
	cd $(BENCHMARKS) && CGO_ENABLED=0 $(GO) test ./...

.PHONY: race
race: ## Unit tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -short -timeout 30m -tags $(TAGS) ./commands/... ./podspec/... ./runtime/...

.PHONY: lint
lint: $(BIN)/golangci-lint ## Lint
	$(BIN)/golangci-lint run --build-tags $(TAGS) ./...
	cd $(BENCHMARKS) && $(BIN)/golangci-lint run ./...
	cd $(KUBETESTS) && $(BIN)/golangci-lint run .

.PHONY: verify
verify: generate ## Generated documents and go.mod are up to date, the sources of others as go.sum has them
	$(GO) mod tidy -diff
	$(GO) mod verify
	cd $(BENCHMARKS) && $(GO) mod tidy -diff && $(GO) mod verify
	cd $(KUBETESTS) && $(GO) mod tidy -diff && $(GO) mod verify
	git diff --exit-code -- docs

.PHONY: vulncheck
vulncheck: ## Look for known faults in what is used (needs the Go vulnerability database)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) -tags $(TAGS) ./cmd/podctl

E2E := CGO_ENABLED=0 PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) $(GO) test -tags "$(TAGS),e2e" -count=1 -timeout 20m -short

.PHONY: e2e
e2e: setup-runtime build images ## End-to-end tests on a private containerd of the distribution
	PODCTL_CONTAINERD=containerd $(E2E) ./commands/e2e/ ./runtime/...

.PHONY: e2e-2
e2e-2: setup-containerd2 build images ## The same on containerd 2
	PODCTL_CONTAINERD=$(BIN)/containerd2/containerd $(E2E) ./commands/e2e/ ./runtime/...

.PHONY: smoke
smoke: setup-containerd2 build images ## The most important of them on containerd 2
	PODCTL_CONTAINERD=$(BIN)/containerd2/containerd $(E2E) -run 'TestE2E/(hello|replace|delete)' ./commands/e2e/

VM := $(BIN)/vm
# How long one boot may last. Emulated, all takes ten to twenty times as long as usual.
VM_SECONDS ?= 5400

# run-vm boots the machine and runs one of the scripts in it.
run-vm = sh hack/vm/run.sh "$$(sh hack/vm/image.sh $(VM))" $(VM)/share $(VM_SECONDS) sh $(1)

.PHONY: vm-tests
vm-tests:
	@mkdir -p $(VM)
	set -e; for package in commands/e2e runtime/cgroup runtime/volume; do \
		CGO_ENABLED=0 $(GO) test -c -tags "$(TAGS),e2e" -ldflags "-s -w" -o $(VM)/$${package##*/}.test ./$$package; \
	done

.PHONY: test-vm
test-vm: setup-vm setup-containerd2 build images vm-deb vm-tests ## End-to-end tests in an emulated Debian 13: cgroup v2, systemd, AppArmor; both cgroup drivers
	sh hack/vm/test.sh $(VM) $(BIN) $(VM_SECONDS) '$(VM_RUN)' '$(VM_SKIP)'

.PHONY: vm-deb
vm-deb:
	@mkdir -p $(VM)
	rm -f $(VM)/*.deb
	$(MAKE) --no-print-directory deb DIST=$(VM)

# Which end-to-end tests run there, as go test -run and -skip take them. Those that are skipped depend on
# no kernel, cgroup or systemd, or are too long for an hour: VM_SKIP=none runs them too.
VM_RUN ?= .
VM_SKIP ?= ^(plan_writes_nothing|missing_.*|configuration_update|bad_input|snapshot|saved_plan|environment_file|host_port_conflict|probe_--wait|run|get|objects|logs|events|wait|config|doctor_bundle|images|image_pull|prune|agent_idle|agent_soak|agent_faults|a_delete_wins|stopped_holder|bounded_inputs|escapes|delete_thirty|runtime_restart_at_calls)$$

.PHONY: vm-smoke
vm-smoke: VM_SECONDS = 1200
vm-smoke: setup-vm build images ## The shortest of it: boot, node up, limits, delete
	sh hack/vm/stage.sh $(VM)/share $(BIN)
	$(call run-vm,smoke.sh)

# How long the agent lives in make soak, and how long its directory is edited while it is killed.
SOAK ?= 1h
UNREST ?= 5m

.PHONY: soak
soak: setup-runtime build images ## The agent for an hour with something each second, and for five minutes while it is killed
	PODCTL_CONTAINERD=$${PODCTL_CONTAINERD:-containerd} PODCTL_AGENT_SOAK=$(SOAK) PODCTL_AGENT_UNREST=$(UNREST) \
		$(E2E) -timeout 3h -run 'TestE2E/agent_(soak|unrest)' -v ./commands/e2e/

.PHONY: test-crash
test-crash: setup-runtime build images ## Kill podctl and its agent at every point: all in memory, every shape on a real runtime (PODCTL_CRASH=all: every point there too)
	CGO_ENABLED=0 PODCTL_CRASH=memory $(GO) test -tags $(TAGS) -count=1 -timeout 2h -run 'Test(Agent)?CrashMatrix' ./commands/e2e/
	CGO_ENABLED=0 PODCTL_CRASH=$${PODCTL_CRASH:-shapes} PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=containerd \
		$(GO) test -tags "$(TAGS),e2e" -count=1 -timeout 3h -run 'TestE2E/killed' ./commands/e2e/

# How many faults come about in each half of make test-faults.
FAULTS ?= 2000

.PHONY: test-faults
test-faults: setup-runtime build images ## Let calls of an agent go wrong 2000 times at random, in memory and on a real runtime
	PODCTL_CONTAINERD=$${PODCTL_CONTAINERD:-containerd} PODCTL_TRIALS=$(FAULTS) \
		$(E2E) -timeout 3h -run 'Test(AgentFaultsInMemory|E2E)$$/^agent_faults$$' -v ./commands/e2e/

# The emulator that runs programs for arm64.
QEMU_ARM64 ?= qemu-aarch64-static

.PHONY: test-arm64
test-arm64: setup-arm64 build ## Unit tests of what depends on no machine, and the program itself, for arm64 in an emulator
	GOARCH=arm64 $(BUILD) -o $(BIN)/arm64/podctl ./cmd/podctl
	PODCTL=$(PODCTL) EMULATED="$(QEMU_ARM64) $(BIN)/arm64/podctl" sh docs/packaging/check-arm64.sh
	PODCTL_TEST_EMULATOR=$(QEMU_ARM64) CGO_ENABLED=0 GOARCH=arm64 $(GO) test -short -timeout 60m -tags $(TAGS) -exec $(QEMU_ARM64) ./podspec/... \
		$(addprefix ./runtime/,admission/... criconfig/... model/... plan/... podstatus/... render/... safefs/... snapshot/... state/...)

KUBELDFLAGS := -s -w $(KUBERNETES) -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)

$(KUBEBIN)/kubelet:
	CGO_ENABLED=0 $(GO) build -C $(KUBETESTS) -trimpath -buildvcs=false -ldflags "$(KUBELDFLAGS)" -o $@ k8s.io/kubernetes/cmd/kubelet

$(KUBEBIN)/services.test: $(wildcard $(KUBETESTS)/services/*.go)
	CGO_ENABLED=0 $(GO) test -C $(KUBETESTS) -c -trimpath -ldflags "$(KUBELDFLAGS)" -o $@ ./services

.PHONY: test-kubernetes
test-kubernetes: setup-runtime build images $(KUBEBIN)/kubelet $(KUBEBIN)/services.test ## A real kubelet, alone and at an API server, takes pods over and gives them back (builds both, as root)
	CGO_ENABLED=0 PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$${PODCTL_CONTAINERD:-containerd} \
		KUBELET_BIN=$(KUBEBIN)/kubelet SERVICES_BIN=$(KUBEBIN)/services.test $(GO) test -C $(KUBETESTS) -count=1 -timeout 30m .

FUZZTIME ?= 60s

# package:test pairs; a test holds the list complete.
FUZZ := podspec/load:FuzzLoad runtime/snapshot:FuzzPlan runtime/snapshot:FuzzRead runtime/logfile:FuzzLogs \
	runtime/state:FuzzDecodeCheckpoint runtime/state:FuzzDecodeHistory runtime/filelock:FuzzHolder runtime/containerd:FuzzFullName \
	runtime/containerd:FuzzArchiveName commands/lifecycle:FuzzSavedPlan commands/config:FuzzConfig commands/terminal:FuzzPrintable podspec/load:FuzzNames \
	commands:FuzzRedact runtime/state:FuzzPaths

.PHONY: fuzz
fuzz: ## Look for input that breaks a promise, each fuzz test for FUZZTIME
	@set -e; for pair in $(FUZZ); do \
		echo "$$pair for $(FUZZTIME)"; \
		CGO_ENABLED=0 $(GO) test -tags $(TAGS) -run '^$$' -fuzz "^$${pair##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$${pair%%:*}; \
	done

BENCH := $(BIN)/bench -podctl $(PODCTL) -images $(BIN)
# More flags for the bench, for example -only start, -podman 'podman --runtime runc' or -kubelet PATH.
BENCHFLAGS ?=

$(BIN)/bench: $(wildcard $(BENCHMARKS)/*)
	CGO_ENABLED=0 $(GO) build -C $(BENCHMARKS) -trimpath -buildvcs=false -o $@ .

.PHONY: bench
bench: setup-runtime build images $(BIN)/bench ## Times against the bare CRI calls and other tools, in one run; writes docs/benchmarks.md
	CGO_ENABLED=0 $(GO) test -tags $(TAGS) -run '^$$' -bench . ./runtime/plan
	$(BENCH) -json $(BIN)/bench.json -markdown docs/benchmarks.md $(BENCHFLAGS)

.PHONY: bench-agent
bench-agent: setup-runtime setup-containerd2 build images $(BIN)/bench $(KUBEBIN)/kubelet ## podctl agent beside a real kubelet, each on a containerd of its own, in one run; writes docs/benchmarks.md
	$(BENCH) -agent -containerd $(BIN)/containerd2/containerd -kubelet $(KUBEBIN)/kubelet -json $(BIN)/bench-agent.json -markdown docs/benchmarks.md $(BENCHFLAGS)

.PHONY: bench-smoke
bench-smoke: setup-runtime build images $(BIN)/bench ## See that the bench itself works
	$(BENCH) -rounds 1 -only 'start-1|replace|plan-1$$|startup'

##@ Setting up

.PHONY: setup
setup: setup-runtime setup-containerd2 $(BIN)/golangci-lint ## Install everything that is missing

# program:package pairs of the distribution.
NEEDED := containerd:containerd runc:runc iptables:iptables nft:nftables ip:iproute2 gcc:gcc

# install installs the packages of programs and files that are missing.
define install
missing=""; \
for pair in $(1); do \
	command -v $${pair%%:*} >/dev/null || test -e $${pair%%:*} || missing="$$missing $${pair##*:}"; \
done; \
if [ -n "$$missing" ]; then \
	echo "installing$$missing"; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing </dev/null; \
fi
endef

.PHONY: setup-runtime
setup-runtime: ## Install the runtime packages that are missing (needs root, Debian or Ubuntu)
	@$(call install,$(NEEDED) $(if $(wildcard /opt/cni/bin/bridge),,/usr/lib/cni/bridge:containernetworking-plugins))

.PHONY: setup-vm
setup-vm: ## Install what an emulated machine needs, if it is missing
	@$(call install,qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap mke2fs:e2fsprogs /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring)

.PHONY: setup-arm64
setup-arm64: ## Install the emulator for arm64 if it is missing
	@command -v $(QEMU_ARM64) >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user-static </dev/null; }

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
