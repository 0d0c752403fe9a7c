# Everything that is built, tested or shown here is a target of this file; CI
# calls nothing else. `make help` lists the targets.

GO ?= go
# Without this, Go uses cgo on every machine that has a gcc, and fails if that gcc has no headers.
# Only the race detector needs cgo: see the target race.
export CGO_ENABLED := 0
# All builds and tests use -trimpath, so that they share one build cache.
GOFLAGS := $(or $(GOFLAGS),$(shell $(GO) env GOFLAGS))
export GOFLAGS := $(strip $(GOFLAGS) $(if $(filter -trimpath,$(GOFLAGS)),,-trimpath))

# Before the tag of the first release, the version names the commit.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.1.0-dev+$$(git describe --always --exclude '*' --dirty 2>/dev/null || echo unknown))
BIN := $(CURDIR)/bin
COMMA := ,
# Without these, gRPC makes the linker keep all methods, containerd's typeurl links a second protobuf library, and net/http
# a second implementation of HTTP/2. gRPC and the clients of an API server use that of golang.org/x/net.
TAGS := grpcnotrace,no_gogo,nethttpomithttp2

GOLANGCI_LINT_VERSION := v2.15.0
CONTAINERD2_VERSION := v2.4.2
COREDNS_VERSION := v1.14.3
METRICS_SERVER_VERSION := v0.9.0
GOVULNCHECK_VERSION := v1.1.4

KUBERNETES := -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36
# Functions begin at multiples of 16 bytes, as on arm64. Multiples of 32 make the programs 0.3 and 0.4 MiB larger on amd64, and
# not faster.
LDFLAGS := -s -w -buildid= -funcalign=16 $(KUBERNETES) -X github.com/podctl/podctl/commands/program.version=$(VERSION)
# The version names the commit. Go's own stamp of it would be another in a copy of the
# sources, and the bytes with it.
STATIC := $(GO) build -tags $(TAGS) -trimpath -buildvcs=false
# The compiler inlines only calls in podctl, and in the parts of Go's library whose speed matters. With all calls inlined, the
# programs are 2 and 4 MiB larger and start 2 % faster, and a node needs 5 MiB more memory. OpenTelemetry is inlined, because its
# initialisation would otherwise call a function for each name.
INLINE := -gcflags=all=-l -gcflags=std= -gcflags=github.com/podctl/podctl/...= -gcflags=go.opentelemetry.io/...= \
	-gcflags=net/...=-l -gcflags=text/...=-l -gcflags=crypto/tls=-l
BUILD := $(STATIC) $(INLINE) -ldflags "$(LDFLAGS)"
SMALL := $(STATIC) -ldflags "-s -w -buildid="

TOOL := $(GO) run -trimpath -tags $(TAGS)
# The limit stops a test that hangs. It is far above what a slow or busy machine needs. `make test` sets VET=-vet=off: all
# other targets, and the linter, run go vet.
VET ?=
# With another umask, directories of the tests could be written by others, and podctl refuses to use them.
TEST = sh -c 'umask 022 && exec "$$@"' sh $(GO) test -timeout 3h $(VET)

# quiet prints what the next command does and how long it may take, and the command's output only if it fails.
quiet = @sh hack/quiet.sh "$(1)"

IMAGES := $(BIN)/pause.tar $(BIN)/demo.tar
# The benchmarks are a separate module: podctl does not depend on them.
BENCHMARKS := cmd/bench
# The tests with a real kubelet are a separate module, too. They use the version of k8s.io/kubernetes in go.mod.
KUBETESTS := test/kubernetes
KUBERNETES_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2 }' go.mod)
KUBEBIN := $(BIN)/kubernetes-$(KUBERNETES_VERSION)
SOURCES := $(shell find cmd commands runtime podspec -name '*.go' -not -name '*_test.go' -not -path '$(BENCHMARKS)/*') go.mod go.sum
PODCTL := $(BIN)/podctl

.DEFAULT_GOAL := help

##@ Building

.PHONY: build
build: $(PODCTL) ## Build bin/podctl

# Programs that were built with other tags are rebuilt.
$(BIN)/tags: FORCE
	@mkdir -p $(BIN)
	@echo "$(TAGS)" | cmp -s - $@ || echo "$(TAGS)" >$@

$(PODCTL): $(SOURCES) $(BIN)/tags
	$(call quiet,building podctl (first time: about 2 minutes)) $(BUILD) -o $@ ./cmd/podctl

# NODE is a program of its own, so that other commands do not pay for the clients of an API server.
NODE := $(BIN)/podctl-node

.PHONY: build-node
build-node: $(NODE) ## Build bin/podctl-node, which podctl agent --kubeconfig runs

$(NODE): $(SOURCES) $(BIN)/tags
	$(call quiet,building podctl-node (first time: about 5 minutes)) $(BUILD) -o $@ ./cmd/podctl-node

.PHONY: images
images: $(IMAGES) ## Build the pause and demo images

$(BIN)/mkimage: $(SOURCES)
	$(call quiet,building mkimage (first time: about 20 seconds)) $(SMALL) -o $@ ./cmd/mkimage

$(BIN)/%.tar: $(BIN)/mkimage $(SOURCES)
	$(call quiet,building the image $* (a few seconds)) $(SMALL) -o $(BIN)/$* ./cmd/$*
	@$(BIN)/mkimage -name registry.local/podctl/$*:1 -binary $(BIN)/$* -o $@

.PHONY: generate
generate: ## Generate docs/cli and docs/fields.md
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

# Packed files have the time of the last commit, so that builds are reproducible.
ifndef SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
endif
export SOURCE_DATE_EPOCH

# Release builds ignore the builder's own settings and use the Go version in go.mod.
RELEASE := GOFLAGS= GOEXPERIMENT= GOTOOLCHAIN=go$(shell awk '$$1 == "go" { print $$2 }' go.mod) GOOS=linux GOAMD64=v1 GOARM64=v8.0

PROGRAMS := podctl podctl-node
PARTS = $(PROGRAMS:%=$(WORK)/$(ARCH)/%) $(PROGRAMS:%=$(WORK)/$(ARCH)/%.spdx.json) \
	$(WORK)/$(ARCH)/pause.tar $(WORK)/man $(WORK)/completions

.PHONY: parts
parts: $(PARTS) ## Build the files that install installs, for ARCH

# Programs contain the version, so they are rebuilt when it or the tags change.
$(WORK)/version: FORCE
	@mkdir -p $(WORK)
	@echo "$(VERSION) $(SOURCE_DATE_EPOCH) $(TAGS)" | cmp -s - $@ || echo "$(VERSION) $(SOURCE_DATE_EPOCH) $(TAGS)" >$@

.PHONY: FORCE
FORCE:

.SECONDARY:

$(WORK)/%/podctl: $(SOURCES) $(WORK)/version
	$(RELEASE) GOARCH=$* $(BUILD) -o $@ ./cmd/podctl

$(WORK)/%/podctl-node: $(SOURCES) $(WORK)/version
	$(RELEASE) GOARCH=$* $(BUILD) -o $@ ./cmd/podctl-node

$(WORK)/%/pause.tar: $(BIN)/mkimage $(SOURCES)
	$(RELEASE) GOARCH=$* $(SMALL) -o $(WORK)/$*/pause ./cmd/pause
	GOARCH=$* $(BIN)/mkimage -name registry.local/podctl/pause:1 -binary $(WORK)/$*/pause -o $@

$(WORK)/%.spdx.json: $(WORK)/%
	$(TOOL) ./cmd/sbom -version "$(VERSION)" $< >$@

$(WORK)/man $(WORK)/completions: $(SOURCES) $(WORK)/version
	$(TOOL) ./cmd/gendocs $(@F) $@

UNITS := $(wildcard docs/packaging/*.service)
SHARE = $(DESTDIR)$(PREFIX)/share
# Debian reserves this directory for the administrator.
ZSH ?= zsh/site-functions

.PHONY: install
install: $(PARTS) ## Install podctl, completions, manual pages and units below DESTDIR and PREFIX
	install -D -m 0755 $(WORK)/$(ARCH)/podctl $(DESTDIR)$(PREFIX)/bin/podctl
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/podctl $(WORK)/$(ARCH)/podctl-node
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/podctl $(WORK)/$(ARCH)/pause.tar
	install -D -m 0644 -t $(SHARE)/man/man1 $(WORK)/man/*.1
	install -D -m 0644 $(WORK)/completions/podctl.bash $(SHARE)/bash-completion/completions/podctl
	install -D -m 0644 -t $(SHARE)/$(ZSH) $(WORK)/completions/_podctl
	install -D -m 0644 -t $(SHARE)/fish/vendor_completions.d $(WORK)/completions/podctl.fish
	install -D -m 0644 -t $(SHARE)/doc/podctl README.md CHANGELOG.md LICENSE $(PROGRAMS:%=$(WORK)/$(ARCH)/%.spdx.json)
	install -D -m 0644 -t $(SHARE)/doc/podctl/docs docs/*.md
	install -D -m 0644 -t $(SHARE)/doc/podctl/examples docs/examples/*.yaml
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system $(UNITS)
	cd $(DESTDIR)$(PREFIX)/lib/systemd/system && sed -i 's|/usr/|$(PREFIX)/|g' $(notdir $(UNITS))
	install -d -m 0755 $(DESTDIR)/etc/podctl/pods

.PHONY: uninstall
uninstall: ## Remove what install installed; the configuration, the pods and podctl's state stay
	rm -rf $(DESTDIR)$(PREFIX)/bin/podctl $(DESTDIR)$(PREFIX)/lib/podctl $(SHARE)/doc/podctl
	rm -f $(SHARE)/man/man1/podctl.1 $(SHARE)/man/man1/podctl-*.1
	rm -f $(SHARE)/bash-completion/completions/podctl $(SHARE)/$(ZSH)/_podctl
	rm -f $(SHARE)/fish/vendor_completions.d/podctl.fish
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/lib/systemd/system/,$(notdir $(UNITS)))
	for dir in $(DESTDIR)/etc/podctl/pods $(DESTDIR)/etc/podctl; do \
		[ ! -d $$dir ] || rmdir --ignore-fail-on-non-empty $$dir; \
	done

# Debian versions begin with a digit: 1.2.0, or 1.2.0+3.gabcdef0 three commits later. 0.1.0~dev+20260701.abcdef0 is older than 0.1.0.
DEB_VERSION = $(shell echo '$(VERSION)' | sed -E 's/^v//; s/-dev\+/~dev+$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%Y%m%d)./; s/-/+/; s/-/./g; /^[0-9]/!s/^/0~/')
DEB = $(DIST)/podctl_$(DEB_VERSION)_$(ARCH).deb
MAINTAINER ?= $(shell git log -1 --format='%an <%ae>' 2>/dev/null || echo 'podctl authors <podctl@localhost>')

.PHONY: deb
deb: $(PARTS) ## Build a Debian package for ARCH
	@mkdir -p $(DIST)
	rm -rf $(WORK)/$(ARCH)/tree
	@$(MAKE) --no-print-directory install DESTDIR=$(WORK)/$(ARCH)/tree PREFIX=/usr ZSH=zsh/vendor-completions >/dev/null
	MAINTAINER="$(MAINTAINER)" sh docs/packaging/deb.sh $(WORK)/$(ARCH)/tree $(ARCH) "$(DEB_VERSION)" "$(DEB)"

.PHONY: check-deb
check-deb: deb ## Check the contents of the Debian package, and that uninstall removes what install installs
	@sh docs/packaging/check-deb.sh "$(DEB)"
	@PREFIX=$(PREFIX) sh docs/packaging/check-install.sh

.PHONY: dist
dist: ## Build the release files for ARCHES: programs, SBOMs, packages, checksums
	rm -rf $(DIST)
	@set -e; for arch in $(ARCHES); do \
		$(MAKE) --no-print-directory deb ARCH=$$arch; \
		for program in $(PROGRAMS); do \
			cp $(WORK)/$$arch/$$program $(DIST)/$$program-linux-$$arch; \
			cp $(WORK)/$$arch/$$program.spdx.json $(DIST)/$$program-linux-$$arch.spdx.json; \
		done; \
	done
	cd $(DIST) && sha256sum * >SHA256SUMS && cat SHA256SUMS

.PHONY: verify-dist
verify-dist: dist ## Check that a second build with an empty cache gives the same bytes
	sh docs/packaging/verify-dist.sh "$(DIST)" VERSION="$(VERSION)" MAINTAINER="$(MAINTAINER)" ARCHES="$(ARCHES)"

.PHONY: check-dist
check-dist: ## The same for ARCH with the existing cache, and check-deb
	@CACHE=$$($(GO) env GOCACHE) $(MAKE) --no-print-directory verify-dist ARCHES=$(ARCH)
	@sh docs/packaging/check-deb.sh "$(DEB)"
	@PREFIX=$(PREFIX) sh docs/packaging/check-install.sh

##@ Trying it

.PHONY: demo
demo: setup-runtime build images ## Start a private containerd and run docs/examples/hello.yaml
	@echo "running docs/examples/hello.yaml (about 20 seconds)"
	@PODCTL=$(PODCTL) BIN=$(BIN) sh docs/examples/demo.sh

.PHONY: picture
picture: setup-runtime build images ## Record the picture in the README
	$(GO) build -o $(BIN)/picture ./cmd/picture
	PODCTL=$(PODCTL) BIN=$(BIN) sh docs/examples/picture.sh >$(BIN)/session.svg
	mv $(BIN)/session.svg docs/pictures/session.svg

.PHONY: demo-down
demo-down: build ## Remove the pod and the private containerd of demo
	$(PODCTL) node down

##@ Testing

# What make test leaves out of the end-to-end tests: they take long, and find little that the others do not.
# The unit tests of ./runtime run with the end-to-end tests of these packages.
SLOW := agent_(after_restarts|eviction.*|faults|grace_periods|housekeeping|idle|soak|sources.*|standalone|unrest)|contract|images|killed.*|missing_image|random_faults|runtime_restart.*

.PHONY: test
test: ## Unit tests and the quick end-to-end tests: nine minutes the first time, later less
	@$(MAKE) --no-print-directory unit-packages unit-others VET=-vet=off SHORT=-short PACKAGES='./cmd/... ./commands/... ./podspec/... ./test/...'
	@$(MAKE) --no-print-directory e2e VET=-vet=off SKIP='^TestE2E$$/^($(SLOW))$$|InMemory$$|CrashMatrix$$'

# Each target installs what it needs. test-bare runs each of them in a bare root of its own, long ones in part.
CHECKS := verify lint unit race e2e smoke conformance-sample bench-smoke check-dist vm-smoke

# race runs most unit tests, and e2e only packages with end-to-end tests. Random tests run with fewer cases than in
# make unit, which test-all runs.
.PHONY: check
check: ## Everything CI runs: an hour
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit-packages unit-others PACKAGES='./cmd/... ./test/...'
	@$(MAKE) --no-print-directory race SKIP='CrashMatrix$$'
	@$(MAKE) --no-print-directory e2e E2E_PACKAGES='$(E2E_ONLY)'
	@$(MAKE) --no-print-directory test-bare

.PHONY: test-all
test-all: verify lint unit race e2e e2e-2 test-kubernetes test-kubectl test-cluster test-conformance test-vm bench test-bare ## Everything, on both versions of containerd in full

# BARE=full runs each target completely. Otherwise lint, unit, race, e2e and conformance-sample run in part.
# BARE=cold does so with empty build caches: make test-bare BARE=cold CHECKS=test measures demo and test.
BARE ?=

.PHONY: test-bare
test-bare: setup-bare ## Run demo and the targets of check in bare Debian 12 roots, long ones in part (BARE=full: completely; needs root)
	@GO=$(GO) sh hack/bare/bare.sh $(BIN)/bare '$(BARE)' $(CHECKS)

# Which packages lint, unit and race take, and which end-to-end tests e2e runs, as go test takes them.
PACKAGES ?= ./...
RUN ?=
SKIP ?=
# -short leaves out the longest unit tests.
SHORT ?=
WHOLE := $(filter ./...,$(PACKAGES))

.PHONY: unit
unit: unit-packages $(if $(WHOLE),unit-others) ## Unit tests (PACKAGES=./runtime/plan limits them to packages)

.PHONY: unit-packages
unit-packages:
	$(TEST) $(SHORT) -tags $(TAGS) $(PACKAGES)

.PHONY: unit-others
# -count=1, because a cached result does not notice changes of docs/, which is outside of the module.
unit-others:
	cd $(BENCHMARKS) && $(TEST) -count=1 ./...

.PHONY: race
race: setup-race ## Unit tests under the race detector
	CGO_ENABLED=1 $(TEST) -race -short $(if $(SKIP),-skip '$(value SKIP)') -tags $(TAGS) $(if $(WHOLE),./commands/... ./podspec/... ./runtime/...,$(PACKAGES))

.PHONY: lint
lint: lint-packages $(if $(WHOLE),lint-others) ## Run the linter

.PHONY: lint-packages
lint-packages: $(BIN)/golangci-lint
	$(BIN)/golangci-lint run --build-tags $(TAGS) $(PACKAGES)

.PHONY: lint-others
lint-others: $(BIN)/golangci-lint
	cd $(BENCHMARKS) && $(BIN)/golangci-lint run ./...
	cd $(KUBETESTS) && $(BIN)/golangci-lint run .

.PHONY: verify
verify: generate ## Check that generated documents, go.mod and go.sum are up to date
	$(GO) mod tidy -diff
	$(GO) mod verify
	cd $(BENCHMARKS) && $(GO) mod tidy -diff && $(GO) mod verify
	cd $(KUBETESTS) && $(GO) mod tidy -diff && $(GO) mod verify
	git diff --exit-code -- docs

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities of dependencies (needs the Go vulnerability database)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) -tags $(TAGS) ./cmd/podctl ./cmd/podctl-node

# Packages with end-to-end tests. The unit tests of the others in ./runtime/... run with them.
E2E_ONLY := ./commands/e2e/ ./runtime/ ./runtime/cgroup/ ./runtime/containerd/ ./runtime/netfilter/ ./runtime/volume/
E2E_PACKAGES ?= ./commands/e2e/ ./runtime/...
E2E := PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) $(TEST) -tags "$(TAGS),e2e" -count=1 -short
# The value function keeps each dollar sign of a pattern.
E2E_ALL = $(E2E) $(if $(SKIP),-skip '$(value SKIP)') $(if $(RUN),-run '$(value RUN)' ./commands/e2e/,$(E2E_PACKAGES))

.PHONY: e2e
e2e: setup-e2e build images ## End-to-end tests on a private containerd of the distribution (RUN=TestE2E/hello selects tests)
	PODCTL_CONTAINERD=containerd $(E2E_ALL)

.PHONY: e2e-2
e2e-2: setup-e2e setup-containerd2 build images ## End-to-end tests on containerd 2
	PODCTL_CONTAINERD=$(BIN)/containerd2/containerd $(E2E_ALL)

.PHONY: smoke
smoke: setup-e2e setup-containerd2 build images ## The most important end-to-end tests on containerd 2
	PODCTL_CONTAINERD=$(BIN)/containerd2/containerd $(E2E) -run 'TestE2E/(hello|replace|delete)' ./commands/e2e/

VM := $(BIN)/vm
# The limit of one boot stops a machine that hangs. Emulated, all takes ten to twenty times as long as usual.
VM_SECONDS ?= 14400

# run-vm boots the machine and runs one of the scripts in it.
run-vm = machine=$$(sh hack/vm/image.sh $(VM)) && sh hack/vm/run.sh "$$machine" $(VM)/share $(VM_SECONDS) sh $(1)

.PHONY: vm-tests
vm-tests:
	@mkdir -p $(VM)
	set -e; for package in commands/e2e runtime/cgroup runtime/volume; do \
		$(GO) test -c -tags "$(TAGS),e2e" -ldflags "-s -w" -o $(VM)/$${package##*/}.test ./$$package; \
	done

.PHONY: test-vm
test-vm: setup-vm setup-containerd2 build images vm-deb vm-tests ## End-to-end tests in an emulated Debian 13: cgroup v2, systemd, AppArmor; both cgroup drivers
	sh hack/vm/test.sh $(VM) $(BIN) $(VM_SECONDS) '$(VM_RUN)' '$(VM_SKIP)'

# Which tests of a node run in the emulated machine.
VM_NODE ?= TestSmallMachine|TestMachineShutdown|TestMachinePowerLoss

.PHONY: test-vm-node
test-vm-node: setup-vm setup-e2e setup-containerd2 build images vm-deb $(KUBEBIN)/kubelet $(KUBEBIN)/services.test ## A node of a cluster in an emulated Debian 13: little memory and shutdowns, beside a real kubelet, and losses of power (VM_NODE=TestSmallMachine; needs root)
	PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$(BIN)/containerd2/containerd \
		KUBELET_BIN=$(KUBEBIN)/kubelet SERVICES_BIN=$(KUBEBIN)/services.test \
		VM_MACHINE=$$(sh hack/vm/image.sh $(VM)) VM_PACKAGE=$$(ls $(VM)/*.deb) \
		$(GO) test -C $(KUBETESTS) -count=1 -timeout 10h -v -run '^($(VM_NODE))$$' .

# No specs start after this time.
VM_TIME ?= 12h

.PHONY: vm-serial
vm-serial: ## Kubernetes' node tests that must run alone, in the emulated Debian 13 (SPEC='GarbageCollect|SystemNodeCriticalPod', VM_TIME=2h for each of podctl agent and a kubelet; needs root)
	$(MAKE) --no-print-directory vm-conformance VM_SUITE=TestMachineSerial

VM_SUITE ?= TestMachineConformance

.PHONY: vm-conformance
vm-conformance: setup-vm setup-conformance build build-node images $(addprefix $(KUBEBIN)/,e2e_node.test services.test ginkgo agnhost nonewprivs kubelet) ## The core of Kubernetes' node tests in the emulated Debian 13, against podctl agent and a kubelet (GROUP, SPEC, VM_TIME=2h; needs root)
	PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$(BIN)/containerd2/containerd \
		KUBELET_BIN=$(KUBEBIN)/kubelet SERVICES_BIN=$(KUBEBIN)/services.test KUBERNETES_BIN=$(KUBEBIN) \
		KUBERNETES_IMAGES=$$($(GO) list -C $(KUBETESTS) -m -f '{{.Dir}}' k8s.io/kubernetes)/test/images \
		VM_MACHINE=$$(sh hack/vm/image.sh $(VM)) VM_TIME=$(VM_TIME) \
		CONFORMANCE_REPORT=$(VM)/conformance CONFORMANCE_GROUP='$(GROUP)' CONFORMANCE_SPEC='$(value SPEC)' \
		$(GO) test -C $(KUBETESTS) -count=1 -timeout 0 -v -run '^$(VM_SUITE)$$' .

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
vm-smoke: setup-vm build images ## Boot the emulated Debian 13 and run its shortest test
	sh hack/vm/stage.sh $(VM)/share $(BIN)
	@echo "booting an emulated Debian 13 (about 5 minutes; the first time, its image takes 3 more)"
	$(call run-vm,smoke.sh)

# How long the agent lives in make soak, and how long its directory is edited while it is killed.
SOAK ?= 1h
UNREST ?= 5m

.PHONY: soak
soak: setup-e2e build images ## Run the agent for an hour with a change each second, and kill it for five minutes
	PODCTL_CONTAINERD=$${PODCTL_CONTAINERD:-containerd} PODCTL_AGENT_SOAK=$(SOAK) PODCTL_AGENT_UNREST=$(UNREST) \
		$(E2E) -run 'TestE2E/agent_(soak|unrest)' -v ./commands/e2e/

.PHONY: test-crash
test-crash: setup-e2e build images ## Kill podctl and its agent at every point in memory, and in every shape on a real runtime (PODCTL_CRASH=all: at every point)
	PODCTL_CRASH=memory $(TEST) -tags $(TAGS) -count=1 -run 'Test(Agent)?CrashMatrix' ./commands/e2e/
	PODCTL_CRASH=$${PODCTL_CRASH:-shapes} PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=containerd \
		$(TEST) -tags "$(TAGS),e2e" -count=1 -run 'TestE2E/killed' ./commands/e2e/

# The number of faults in each part of make test-faults.
FAULTS ?= 2000

.PHONY: test-faults
test-faults: setup-e2e build images ## Make 2000 random calls of an agent fail, in memory, on a real runtime and as a node of a cluster
	PODCTL_CONTAINERD=$${PODCTL_CONTAINERD:-containerd} PODCTL_TRIALS=$(FAULTS) \
		$(E2E) -run 'Test(AgentFaultsInMemory|NodeFaults|E2E)$$/^agent_faults$$' -v ./commands/e2e/

# The emulator that runs programs for arm64.
QEMU_ARM64 ?= qemu-aarch64-static

.PHONY: test-arm64
test-arm64: setup-arm64 build ## Unit tests that need no machine, and podctl itself, for arm64 in an emulator
	GOARCH=arm64 $(BUILD) -o $(BIN)/arm64/podctl ./cmd/podctl
	PODCTL=$(PODCTL) EMULATED="$(QEMU_ARM64) $(BIN)/arm64/podctl" sh docs/packaging/check-arm64.sh
	PODCTL_TEST_EMULATOR=$(QEMU_ARM64) GOARCH=arm64 $(TEST) -short -tags $(TAGS) -exec $(QEMU_ARM64) ./podspec/... \
		$(addprefix ./runtime/,admission/... criconfig/... model/... plan/... podstatus/... render/... safefs/... snapshot/... state/...)

KUBELDFLAGS := -s -w $(KUBERNETES) -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)

$(KUBEBIN)/kubelet $(KUBEBIN)/kubectl: PACKAGE = k8s.io/kubernetes/cmd/$(@F)
$(KUBEBIN)/ginkgo: PACKAGE := github.com/onsi/ginkgo/v2/ginkgo
$(KUBEBIN)/agnhost $(KUBEBIN)/nonewprivs: PACKAGE = k8s.io/kubernetes/test/images/$(@F)

$(addprefix $(KUBEBIN)/,kubelet kubectl ginkgo agnhost nonewprivs):
	$(call quiet,building $(@F) (first time: up to 15 minutes)) $(GO) build -C $(KUBETESTS) -trimpath -buildvcs=false -ldflags "$(KUBELDFLAGS)" -o $@ $(PACKAGE)

$(KUBEBIN)/controlplane: $(wildcard $(KUBETESTS)/controlplane/*.go)
	$(call quiet,building etcd$(COMMA) kube-apiserver and the other programs of a cluster (first time: about 20 minutes)) \
		$(GO) build -C $(KUBETESTS) -trimpath -buildvcs=false -ldflags "$(KUBELDFLAGS)" -o $@ ./controlplane

$(KUBEBIN)/coredns:
	$(call quiet,building CoreDNS $(COREDNS_VERSION) (first time: about 5 minutes)) env GOBIN=$(KUBEBIN) \
		$(GO) install github.com/coredns/coredns@$(COREDNS_VERSION)

$(KUBEBIN)/metrics-server:
	$(call quiet,building metrics-server $(METRICS_SERVER_VERSION) (first time: about 5 minutes)) env GOBIN=$(KUBEBIN) \
		$(GO) install sigs.k8s.io/metrics-server/cmd/metrics-server@$(METRICS_SERVER_VERSION)

$(KUBEBIN)/e2e_node.test:
	$(call quiet,building Kubernetes' node tests (first time: about 10 minutes)) $(GO) test -C $(KUBETESTS) -c -trimpath -ldflags "$(KUBELDFLAGS)" -o $@ k8s.io/kubernetes/test/e2e_node

$(KUBEBIN)/services.test: $(wildcard $(KUBETESTS)/services/*.go)
	$(call quiet,building etcd and kube-apiserver (first time: about 15 minutes)) $(GO) test -C $(KUBETESTS) -c -trimpath -ldflags "$(KUBELDFLAGS)" -o $@ ./services

.PHONY: test-kubernetes
test-kubernetes: setup-e2e build images $(KUBEBIN)/kubelet $(KUBEBIN)/services.test ## Hand pods to a real kubelet and back, with and without an API server (builds both; needs root)
	PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$${PODCTL_CONTAINERD:-containerd} \
		KUBELET_BIN=$(KUBEBIN)/kubelet SERVICES_BIN=$(KUBEBIN)/services.test $(GO) test -C $(KUBETESTS) -count=1 -timeout 3h -skip '^(TestCluster|TestOutages|TestWeek|TestNodeTakeOver|TestConformance|TestKubectl|TestBesideKubelet.*|TestSmallMachine|TestMachine.*|TestPowerLoss)$$' .

# LOSSES is the number of losses of power in this test and in TestMachinePowerLoss.
export LOSSES ?=

.PHONY: test-power-loss
test-power-loss: setup-e2e setup-containerd2 build build-node images $(KUBEBIN)/services.test ## Kill a node of a cluster twenty times, as a power failure does (LOSSES=5; needs root)
	PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$(BIN)/containerd2/containerd SERVICES_BIN=$(KUBEBIN)/services.test \
		$(GO) test -C $(KUBETESTS) -count=1 -timeout 3h -v -run '^TestPowerLoss$$' .

.PHONY: test-kubectl
test-kubectl: setup-e2e build build-node images $(addprefix $(KUBEBIN)/,kubelet kubectl services.test) ## kubectl with pods of podctl agent, and of a kubelet (builds Kubernetes; needs root)
	PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$${PODCTL_CONTAINERD:-containerd} \
		KUBELET_BIN=$(KUBEBIN)/kubelet KUBECTL_BIN=$(KUBEBIN)/kubectl SERVICES_BIN=$(KUBEBIN)/services.test \
		$(GO) test -C $(KUBETESTS) -count=1 -timeout 3h -v -run '^TestKubectl$$' .

# CLUSTER_RUN selects parts of the test, as in CLUSTER_RUN='network|jobs'. All others need the part network.
CLUSTER_RUN ?= .*
# CLUSTER_CONTAINERD is the containerd, as in CLUSTER_CONTAINERD=containerd for that of the distribution.
CLUSTER_CONTAINERD ?= $(BIN)/containerd2/containerd
# The logs of the last run.
CLUSTER_LOGS := $(BIN)/cluster

CLUSTER_ENV = PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$(CLUSTER_CONTAINERD) SERVICES_BIN=none \
	KUBECTL_BIN=$(KUBEBIN)/kubectl KUBELET_BIN=$(KUBEBIN)/kubelet CONTROLPLANE_BIN=$(KUBEBIN)/controlplane \
	KUBERNETES_BIN=$(KUBEBIN) \
	KUBERNETES_IMAGES=$$($(GO) list -C $(KUBETESTS) -m -f '{{.Dir}}' k8s.io/kubernetes)/test/images \
	CLUSTER_LOGS=$(CLUSTER_LOGS)
CLUSTER_PROGRAMS := $(addprefix $(KUBEBIN)/,controlplane coredns metrics-server kubectl kubelet agnhost)

# Each test runs in a process of its own, because it has namespaces of its own.
.PHONY: test-cluster
test-cluster: setup-conformance build build-node images $(CLUSTER_PROGRAMS) ## podctl agent in a cluster with controllers, scheduler, kube-proxy and RBAC (builds Kubernetes; needs root)
	set -e; for test in Cluster Outages NodeTakeOver; do \
		$(CLUSTER_ENV) $(GO) test -C $(KUBETESTS) -count=1 -timeout 3h -v -run "^Test$$test\$$/^($(CLUSTER_RUN))\$$" .; \
	done

# How long the days of test-week take together, and the seed with which its events repeat.
WEEK ?= 1h
WEEK_SEED ?=

.PHONY: test-week
test-week: setup-conformance build build-node images $(CLUSTER_PROGRAMS) ## A node in a week of random events, compressed into an hour (WEEK=10m, WEEK_SEED=1; needs root)
	$(CLUSTER_ENV)/week PODCTL_WEEK=$(WEEK) PODCTL_WEEK_SEED=$(WEEK_SEED) \
		$(GO) test -C $(KUBETESTS) -count=1 -timeout 6h -v -run '^TestWeek$$' .

# GROUP is a group of specs.txt, and SPEC a pattern of names. Without them, all specs of the list run.
GROUP ?=
SPEC ?=
# Results and logs of the last run.
CONFORMANCE := $(BIN)/conformance

.PHONY: test-conformance
test-conformance: setup-conformance build build-node images $(addprefix $(KUBEBIN)/,e2e_node.test services.test ginkgo agnhost nonewprivs) ## Kubernetes' node tests against podctl agent (GROUP=hooks, SPEC='Pods should'; needs root)
	PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$(BIN)/containerd2/containerd \
		SERVICES_BIN=$(KUBEBIN)/services.test KUBERNETES_BIN=$(KUBEBIN) \
		KUBERNETES_IMAGES=$$($(GO) list -C $(KUBETESTS) -m -f '{{.Dir}}' k8s.io/kubernetes)/test/images \
		CONFORMANCE_REPORT=$(CONFORMANCE) CONFORMANCE_GROUP='$(GROUP)' CONFORMANCE_SPEC='$(value SPEC)' \
		$(GO) test -C $(KUBETESTS) -count=1 -timeout 6h -v -run '^TestConformance$$' .

.PHONY: conformance-sample
conformance-sample: ## One or two short specs of each group of test-conformance
	@$(MAKE) --no-print-directory test-conformance GROUP=$(or $(GROUP),sample)

FUZZTIME ?= 60s

# package:test pairs; a test holds the list complete.
FUZZ := podspec/load:FuzzLoad runtime/snapshot:FuzzPlan runtime/snapshot:FuzzRead runtime/logfile:FuzzLogs \
	runtime/state:FuzzDecodeCheckpoint runtime/state:FuzzDecodeHistory runtime/filelock:FuzzHolder runtime/containerd:FuzzFullName \
	runtime/containerd:FuzzArchiveName commands/lifecycle:FuzzSavedPlan commands/config:FuzzConfig commands/terminal:FuzzPrintable podspec/load:FuzzNames \
	commands:FuzzRedact runtime/state:FuzzPaths runtime/kubeletapi:FuzzLogQuery \
	runtime/kubeletapi:FuzzRequest runtime/kubeletapi:FuzzFrames runtime/kubeletapi/access:FuzzReviews \
	runtime/cluster:FuzzKubeconfig runtime/cluster/node:FuzzFromAPI runtime/cluster/listwatch:FuzzAnswers \
	runtime/cluster/tokens:FuzzAnswer runtime/agent/api:FuzzRequest runtime/kubeletconf:FuzzFiles

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME
	@set -e; for pair in $(FUZZ); do \
		echo "$$pair for $(FUZZTIME)"; \
		$(TEST) -tags $(TAGS) -run '^$$' -fuzz "^$${pair##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$${pair%%:*}; \
	done

BENCH := $(BIN)/bench -podctl $(PODCTL) -images $(BIN)
# More flags for the bench, for example -only start, -rounds 3 or -podman 'podman --runtime runc'.
BENCHFLAGS ?=

$(BIN)/bench: $(wildcard $(BENCHMARKS)/*)
	$(call quiet,building the bench (first time: about 2 minutes)) $(GO) build -C $(BENCHMARKS) -trimpath -buildvcs=false -o $@ .

.PHONY: bench
bench: setup-runtime build images $(BIN)/bench ## Measure podctl beside the bare CRI calls and other tools; writes docs/benchmarks*.md
	$(TEST) -tags $(TAGS) -run '^$$' -bench . ./runtime/plan
	$(BENCH) -docs docs $(BENCHFLAGS)

.PHONY: bench-agent
bench-agent: setup-runtime setup-containerd2 build images $(BIN)/bench $(KUBEBIN)/kubelet ## Measure podctl agent beside a real kubelet; writes docs/benchmarks*.md
	$(BENCH) -agent -containerd $(BIN)/containerd2/containerd -kubelet $(KUBEBIN)/kubelet -docs docs $(BENCHFLAGS)

.PHONY: bench-node
bench-node: setup-e2e setup-containerd2 build build-node images $(KUBEBIN)/kubelet $(KUBEBIN)/services.test ## Measure podctl agent beside a real kubelet, both as the node of an API server (prints a table; needs root)
	PODCTL_BIN=$(PODCTL) PODCTL_IMAGES=$(BIN) PODCTL_CONTAINERD=$(BIN)/containerd2/containerd \
		KUBELET_BIN=$(KUBEBIN)/kubelet SERVICES_BIN=$(KUBEBIN)/services.test \
		$(GO) test -C $(KUBETESTS) -count=1 -timeout 3h -v -run '^TestBesideKubelet' .

.PHONY: bench-smoke
bench-smoke: setup-runtime build images $(BIN)/bench ## Check that the benchmarks run
	$(BENCH) -rounds 1 -only 'start-1|replace|plan-1$$'

##@ Setting up

.PHONY: setup
setup: setup-e2e setup-race setup-vm setup-bare setup-containerd2 $(BIN)/golangci-lint ## Install everything that is missing

# Packages of the distribution that a target needs, as program:package or file:package.
RUNTIME := containerd:containerd runc:runc iptables:iptables \
	$(if $(wildcard /opt/cni/bin/bridge),,/usr/lib/cni/bridge:containernetworking-plugins)

.PHONY: setup-runtime
setup-runtime: ## Install the runtime packages that are missing (needs root, Debian or Ubuntu)
	@sh hack/install.sh $(RUNTIME)

.PHONY: setup-e2e
setup-e2e: ## Install what the end-to-end tests need, if it is missing
	@sh hack/install.sh $(RUNTIME) nft:nftables ip:iproute2

.PHONY: setup-conformance
setup-conformance: setup-e2e setup-containerd2 ## Install what the images of Kubernetes' node tests are made from, if it is missing
	@sh hack/install.sh busybox:busybox-static curl:curl nc.openbsd:netcat-openbsd hostname:hostname ipcmk:util-linux

.PHONY: setup-race
setup-race: ## Install the C compiler and the headers for the race detector, if they are missing
	@sh hack/install.sh gcc:gcc /usr/include/pthread.h:libc6-dev

.PHONY: setup-vm
setup-vm: ## Install what an emulated machine needs, if it is missing
	@sh hack/install.sh qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap mke2fs:e2fsprogs \
		/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring

.PHONY: setup-bare
setup-bare: ## Install what a bare root needs, if it is missing
	@sh hack/install.sh mmdebstrap:mmdebstrap slirp4netns:slirp4netns /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring

.PHONY: setup-arm64
setup-arm64: ## Install the emulator for arm64 if it is missing
	@sh hack/install.sh $(QEMU_ARM64):qemu-user-static

.PHONY: setup-containerd2
setup-containerd2: $(BIN)/containerd2/containerd ## Build the current containerd 2 into bin/containerd2

$(BIN)/containerd2/containerd:
	$(call quiet,building containerd $(CONTAINERD2_VERSION) (first time: about 4 minutes)) env GOBIN=$(BIN)/containerd2 \
		$(GO) install github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@$(CONTAINERD2_VERSION) \
		github.com/containerd/containerd/v2/cmd/containerd@$(CONTAINERD2_VERSION)

$(BIN)/golangci-lint:
	$(call quiet,building golangci-lint $(GOLANGCI_LINT_VERSION) (first time: about 8 minutes)) env GOBIN=$(BIN) \
		$(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

##@ Help

# What a newcomer needs, in this order.
FIRST := demo demo-down build install test

.PHONY: help
help: ## List the targets
	@awk -v first="$(FIRST)" 'BEGIN { FS = ":.*## "; n = split(first, names, " ") } \
		/^##@/ { all = all "\n" substr($$0, 5) "\n" } \
		/^[a-zA-Z0-9_-]+:.*## / { line = sprintf("  %-18s %s\n", $$1, $$2); all = all line; of[$$1] = line } \
		END { print "Begin with"; for (i = 1; i <= n; i++) printf "%s", of[names[i]]; printf "%s", all }' $(MAKEFILE_LIST)
