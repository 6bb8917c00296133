# fared: make install | demo | test | check | bench | deb. Needs python3 (>= 3.11, with venv) and iproute2.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
WORKERS ?= $(shell echo $$(($$(nproc) * 2)))
# only these files need to be read for the tests that run alone
ALONE   = $(shell grep -rl --include="test_*.py" "mark\.alone" tests)
ENGINE ?= $(shell command -v docker || command -v podman)
# podman's own format has no health check
FORMAT  = $(if $(findstring podman,$(ENGINE)),--format docker)
# Only after tests that failed (1): not if pytest was interrupted or found no tests.
AGAIN  := { [ $$? -eq 1 ] && $(BIN)/pytest --last-failed --last-failed-no-failures none; }

.PHONY: install demo test check bench deb test-deb test-wheel test-netlab test-bgp-peers image image-peers test-containers rules fast-paths fmt clean

# The hook of the wheel writes man pages, and would install all dependencies once more for that.
install: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fared needs Python 3.11 or newer (PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	HATCH_BUILD_NO_HOOKS=true $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q fared
	@touch $@

demo: install
	$(BIN)/fared-lab demo

# Workers with namespaces of their own, of which half waits; what measures time has the machine to itself.
# What failed is run once more: a machine that stood still for a moment is no fault of fared.
test: install
	$(BIN)/pytest --cache-clear -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 10 -m "not alone" || $(AGAIN)
	$(BIN)/pytest --cache-clear --durations 10 -m alone $(ALONE) || $(AGAIN)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install
	$(BIN)/python bench/run.py

# Debian 12 and 13, Ubuntu 24.04: build/deb/fared_VERSION_ARCH.deb and fared-tools_VERSION_ARCH.deb.
# ARCHITECTURE=arm64: for that machine, built on this one.
deb: install
	$(BIN)/python deb/build.py $(if $(ARCHITECTURE),--architecture $(ARCHITECTURE))

# Installs, upgrades and purges them in clean roots with systemd: needs root, mmdebstrap, a network.
# RELEASES=debian-13: only that one; RELEASES=arm64: packages of that machine, by qemu-aarch64-static.
test-deb: install
	$(BIN)/python deb/prepare.py $(RELEASES)
	FARED_TEST_SOAK=1 $(BIN)/pytest -s tests/deb/test_clean_root.py tests/deb/test_arm64.py

# Installs the wheel with pip, pipx and uv, from a package index: outside of the sandbox of the tests.
test-wheel: install
	FARED_TEST_SANDBOX=0 FARED_TEST_SOAK=1 $(BIN)/pytest tests/deb/test_wheel.py

# containerlab/netlab: what netlab renders for fared. netlab gets an environment of its own.
test-netlab: install
	[ -x build/netlab/bin/netlab ] || { $(PYTHON) -m venv build/netlab && build/netlab/bin/pip install --quiet networklab; }
	$(BIN)/pytest tests/netlab

# GoBGP, the package of Debian unpacked, and ExaBGP, as peers of BGP; neither becomes a service.
BGP_PEERS = build/bgp-peers
test-bgp-peers: install
	mkdir -p $(BGP_PEERS)
	[ -x $(BGP_PEERS)/usr/bin/gobgpd ] || { cd $(BGP_PEERS) && apt-get download gobgpd && dpkg -x gobgpd_*.deb .; }
	[ -x $(BGP_PEERS)/exabgp/bin/exabgp ] || { $(PYTHON) -m venv $(BGP_PEERS)/exabgp && $(BGP_PEERS)/exabgp/bin/pip install --quiet exabgp==5.0.15; }
	$(BIN)/pytest tests/peers/test_bgp_others.py

# The images of containerlab/: fared, and with FRR and BIRD fared-peers. Needs docker or podman, a network.
image:
	$(ENGINE) build $(FORMAT) -t fared -f containerlab/Dockerfile .

image-peers: image
	$(ENGINE) build $(FORMAT) -t fared-peers -f containerlab/Dockerfile.peers .

# Containers of both, linked as containerlab does: needs root, podman, runc, mmdebstrap, a network.
test-containers: install
	$(BIN)/python -m tests.containers.prepare
	FARED_TEST_SOAK=1 $(BIN)/pytest -s --durations 10 tests/containers

# docs/rules.md: sections of standards, the code that cites them, their tests.
rules: install
	$(BIN)/python tests/docs/rules.py

# docs/fast-paths.md: fast paths, their plain rules, tests and gains as bench/fast_paths recorded them.
fast-paths: install
	$(BIN)/python -m tests.docs.fast_paths

fmt: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
