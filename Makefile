# tailtrace - `make` lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OBJECTS := tracer/kernel/objects
PAGE := exporters/page
BUILT := dashboards/built

# What building and running needs, and what the tests compare with.
BUILD_PACKAGES := clang llvm libbpf1 libbpf-dev linux-libc-dev gcc g++ libc6-dev python3-dev python3-venv
LAB_PACKAGES := qemu-system-x86 busybox-static e2fsprogs kmod udev util-linux
TEST_PACKAGES := prometheus util-linux bpftool chromium chromium-driver \
	$(shell command -v kubectl >/dev/null || echo kubernetes-client)
BENCH_PACKAGES := libbpf-tools bpfcc-tools bpftrace
IMAGE_PACKAGES := buildah debootstrap podman runc

ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
BPF_CFLAGS := -g -O2 -std=gnu11 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra -Werror \
	-Wno-unused-parameter -Ibpf -idirafter /usr/include/$(shell uname -m)-linux-gnu
BPF_SOURCES := $(wildcard bpf/*.bpf.c)
BPF_OBJECTS := $(BPF_SOURCES:bpf/%.bpf.c=$(OBJECTS)/%.bpf.o)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# $(call debian,PACKAGES) installs those that are missing.
debian = missing=$$(for p in $(1); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null \
	| grep -q 'ok installed' || echo $$p; done); \
	[ -z "$$missing" ] || { apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; }

build/.system: Makefile
	@mkdir -p build
	@$(call debian,$(BUILD_PACKAGES) $(TEST_PACKAGES)) >build/apt.log || { cat build/apt.log; false; }
	@touch $@

$(VENV)/.installed: pyproject.toml stepmark/pyproject.toml build/.system
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/pip install --quiet --disable-pip-version-check --group dev -e '.[timeline]' -e ./stepmark
	@touch $@

.PHONY: setup
setup: $(VENV)/.installed bpf page ## install what is missing, build the BPF objects and the page

.PHONY: bpf
bpf: $(BPF_OBJECTS) ## build the BPF objects

$(OBJECTS)/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) bpf/tailtrace.bpf.c stepmark/stepmark/include/stepmark_page.h | build/.system
	@mkdir -p $(@D)
	clang $(BPF_CFLAGS) -c $< -o $@
	@llvm-strip -g $@

.PHONY: page
page: $(PAGE)/vendor ## fetch what the page for people is drawn with

$(PAGE)/vendor: $(PAGE)/package.json $(PAGE)/package-lock.json | $(VENV)/.installed
	$(BIN)/npm --prefix $(PAGE) ci --ignore-scripts --no-audit --no-fund --loglevel error >/dev/null
	@mkdir -p $@
	cp $(PAGE)/node_modules/uplot/dist/uPlot{.iife.min.js,.min.css} $@
	cp $(PAGE)/node_modules/uplot/LICENSE $@/uPlot.LICENSE.txt
	@touch $@

.PHONY: run
run: setup ## trace the bundled workload, or CONFIG=file; DURATION=seconds ends by itself
ifdef CONFIG
	$(BIN)/tailtrace run --config $(CONFIG) $(if $(DURATION),--duration $(DURATION))
else
	@$(BIN)/python -m workloads.rl_sampling --antagonist --duration $(or $(DURATION),86400) \
		>build/workload.txt 2>&1 & workload=$$!; \
	trap 'kill $$workload 2>/dev/null; wait $$workload' EXIT; \
	$(BIN)/tailtrace run $(if $(DURATION),--duration $(DURATION))
endif

.PHONY: check
check: setup ## formats, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/ruff check stepmark --config stepmark/pyproject.toml
	$(BIN)/ruff format --check stepmark --config stepmark/pyproject.toml
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/clang-format --dry-run -Werror bpf/*.h bpf/*.c stepmark/stepmark/include/*.h

.PHONY: test
test: check ## the whole test suite, on this kernel and on others in virtual machines
	@$(call debian,$(LAB_PACKAGES))
	KERNEL_TESTS=1 $(BIN)/pytest -m 'not lab or kernels'

.PHONY: bench
bench: setup ## what it costs, beside budgets and peers; writes docs/bench.md
	@$(call debian,$(BENCH_PACKAGES))
	$(BIN)/python -m bench

.PHONY: lab
lab: setup ## everything that is tested in virtual machines; KERNEL=6.12 in one, TEST=... only that
	@$(call debian,$(LAB_PACKAGES))
ifdef TEST
	$(BIN)/python -m lab run $(or $(KERNEL),6.12) -- $(BIN)/pytest -p no:cacheprovider $(TEST)
else
	KERNEL_TESTS=1 $(BIN)/pytest -m lab tests/lab $(if $(KERNEL),-k '[$(KERNEL)] or [$(KERNEL)-')
endif

.PHONY: demo-migration
demo-migration: setup ## record a stalled guest and one that is not, compare; 15 minutes, build/migration/verdict.html
	@$(call debian,$(LAB_PACKAGES))
	rm -rf build/migration
	$(BIN)/python -m lab.migration $(if $(DURATION),--seconds $(DURATION))

.PHONY: kernels
kernels: setup ## boot the kernels of the lab, write docs/kernels.md: what each lets us tell
	@$(call debian,$(LAB_PACKAGES))
	$(BIN)/python -m lab page >build/kernels.md
	mv build/kernels.md docs/kernels.md

.PHONY: wheel
wheel: setup rules dashboards ## dist/: the agent with all that is built for it, and stepmark
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist . ./stepmark

.PHONY: docs
docs: setup ## write what is generated: docs/metrics.md
	$(BIN)/python -m exporters.docs >docs/metrics.md

.PHONY: rules dashboards
rules: setup ## dashboards/built: Prometheus recording rules and alerts
	$(BIN)/python -m dashboards rules $(BUILT)
dashboards: setup ## dashboards/built: Grafana dashboards as JSON
	$(BIN)/python -m dashboards build $(BUILT)

.PHONY: image
image: setup ## build the container image from Debian packages, and run the agent from it
	@$(call debian,$(IMAGE_PACKAGES))
	deploy/build-image.sh
	IMAGE_TESTS=1 $(BIN)/pytest tests/deploy/test_image.py

.PHONY: manifests
manifests: setup ## deploy/monitoring/generated.yaml: rules and dashboards for Kubernetes
	$(BIN)/python deploy/monitoring/generate.py

.PHONY: clean
clean: ## remove what was built
	rm -rf build dist $(OBJECTS) $(BUILT) $(PAGE)/node_modules $(PAGE)/vendor $(VENV)
