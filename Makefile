# make run   builds the release binary and measures this machine, in about a minute
# make demo  compares four preemption models on virtual boards, in some minutes
# make history  measures kernels of many releases on virtual boards, in some 20 minutes
# make test  installs what the tests need and runs them all
# make dist  builds static binaries, Debian packages and checksums into target/dist

ARCH := $(shell uname -m)
MUSL := $(ARCH)-unknown-linux-musl
GNU := $(ARCH)-unknown-linux-gnu

# Static musl where rustup can have the target, else static glibc.
TARGET := $(shell rustup target add $(MUSL) >/dev/null 2>&1 && echo $(MUSL) || echo $(GNU))
BIN := target/$(TARGET)/release/punctual
OTHERS := $(filter-out $(TARGET),x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
HAVING_OTHERS = rustup target add $(OTHERS) >/dev/null 2>&1
STATIC := $(if $(filter $(GNU),$(TARGET)),RUSTFLAGS="-C target-feature=+crt-static")

# Test programs of the binary (tests/). Some mind no neighbour, and neither do virtual boards,
# which count instructions. The others measure, or watch what they leave on the machine: they run
# one after the other, beside the boards only.
PROGRAMS := $(shell sed -n '/^\[\[test\]\]/{n;s/^name = "\(.*\)"/\1/p}' crates/punctual/Cargo.toml)
ANYTIME := cli page dist board
ON_BOARDS := lab
IN_TURN := $(filter-out $(ANYTIME) $(ON_BOARDS),$(PROGRAMS))

# The programs of virtual boards, which punctual carries. Where they cannot be built, and none of a
# release are there, punctual is built without: `punctual lab` then says what to do. Whatever
# builds the release binary takes this variable, or it is built anew each time.
CARRIED := $(CURDIR)/target/boards
CARRYING = $$([ -f $(CARRIED)/punctual-board-x86_64 ] && [ -f $(CARRIED)/punctual-board-aarch64 ] && \
	echo PUNCTUAL_BOARDS=$(CARRIED))

# Notes how long it takes; .ci/run prints it.
STAGE := ./tests/stage

.PHONY: boards board-sha256 reproduce long calibrate disturbances names papers worst against-lmbench run demo history qemu tools build guests dist test check msrv unit loom e2e deps faults fuzz clean in-turn $(PROGRAMS:%=test-%)

# Exit status 1 (a deadline was missed), 3 (inconclusive) and 4 (skipped) are results, not failures of make.
run: build
	@$(BIN) run $(ARGS); status=$$?; case $$status in 0|1|3|4) exit 0;; *) exit $$status;; esac

# The kernels are downloaded once, into a cache (punctual lab fetch).
demo: build qemu
	@./packaging/demo $(BIN) $(ARGS); status=$$?; case $$status in 0|1|3|4) exit 0;; *) exit $$status;; esac

# Kept in punctual-history: a second time only what is new is measured.
history: build qemu
	@$(BIN) lab history $(ARGS)

qemu:
	@command -v qemu-system-x86_64 >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-system-x86 >/dev/null; \
	else echo "install QEMU first (on Debian: sudo apt-get install --no-install-recommends qemu-system-x86)"; exit 1; fi

# A C toolchain that links, and Rust that is new enough: else says what to install.
tools:
	@./packaging/check-tools

build: tools boards
	$(STATIC) $(STAGE) release env $(CARRYING) cargo build --release --target $(TARGET) -p punctual

boards: tools
	@rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl >/dev/null 2>&1; \
	$(STAGE) boards ./packaging/build-board; status=$$?; [ $$status = 3 ] || exit $$status

# The same bytes by another user in another folder: some minutes.
reproduce: boards
	cargo test --workspace --test dist -- --ignored --nocapture anyone_builds

# For a commit that changes what boards run; it says why.
board-sha256: tools
	./packaging/build-board --update

# The binaries of this and of the other architecture, which takes as long again.
# If rustup cannot have its target, what needs it says so.
guests: build
	if $(HAVING_OTHERS); then env $(CARRYING) \
	cargo build --release $(OTHERS:%=--target %) -p punctual; fi

dist: guests
	./packaging/dist target/dist

# Two at a time everything is built and tested that minds no neighbour, then the rest in turn.
test:
	rm -f target/stages
	$(MAKE) deps tools
	$(MAKE) --jobs=2 --output-sync=line build check unit loom $(ANYTIME:%=test-%) fuzz
	$(MAKE) --jobs=2 --output-sync=line $(ON_BOARDS:%=test-%) in-turn

in-turn:
	$(MAKE) --jobs=1 $(IN_TURN:%=test-%)

# What METHODOLOGY.md says of how often claims hold, with ten times the replicates of the tests.
calibrate: tools
	cargo test --release -p punctual-core --test calibration -- --ignored --nocapture --test-threads 1
	cargo test --release -p punctual-core --lib drift -- --ignored --nocapture
	cargo test --release -p punctual-core --lib median_ratio -- --ignored --nocapture
	cargo test --release -p punctual-core --lib shifts -- --ignored --nocapture
	cargo test --release -p punctual-core --lib margin -- --ignored --nocapture
	cargo run --release -p punctual-core --example calibrate_extreme

deps:
	$(STAGE) deps ./tests/install-deps

check:
	$(STAGE) format cargo fmt --all --check
	$(STAGE) clippy cargo clippy --workspace --all-targets -- -D warnings
	if $(HAVING_OTHERS); then $(STAGE) clippy-others \
	cargo clippy $(OTHERS:%=--target %) -p punctual -p punctual-board -- -D warnings; fi
	RUSTDOCFLAGS="-D warnings" $(STAGE) doc cargo doc --workspace --no-deps --quiet

# Builds with the oldest Rust that Cargo.toml promises. clippy checks the standard library's
# part of that in `make check`.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	rustup toolchain install $(MSRV) --profile minimal
	CARGO_TARGET_DIR=target/msrv cargo +$(MSRV) check --workspace --all-targets

# The tests of each crate, once. Those of the binary's programs are below (e2e).
# Always the whole workspace: a part of it would have other features, and build all anew.
OF_CRATES := $(notdir $(basename $(wildcard crates/*/tests/*.rs))) \
	$(notdir $(patsubst %/,%,$(dir $(wildcard crates/*/tests/*/main.rs)))) \
	$(shell sed -n 's/^name = "\([a-z]*\)"/\1/p' tests/harness/Cargo.toml)
OF_CRATES := $(filter-out $(PROGRAMS),$(OF_CRATES))
unit:
	$(STAGE) unit-build cargo test --workspace --no-run
	$(STAGE) unit cargo test --workspace --lib --bins $(OF_CRATES:%=--test %) --no-fail-fast

# The rings between probe and collector, in every order of their loads and stores.
loom:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
	$(STAGE) loom cargo test -p punctual-ring --lib

# One after the other.
e2e:
	$(MAKE) --jobs=1 $(PROGRAMS:%=test-%)

# Before a release: the packages of both architectures, and tests of the lab that take a quarter of
# its time on a slow machine, which are releases that are aimed, and boards of QEMU 10.
LONG := aim:: newer::
long: guests
	cargo test --workspace --test dist -- --ignored --show-output both_machines
	PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) cargo test --workspace --test lab -- $(LONG) --show-output

# One of the test programs: make test-cli, make test-lab, ...
test-lab: SKIPPED := $(LONG:%=--skip %)
$(IN_TURN:%=test-%): THREADS := --test-threads=1
$(PROGRAMS:%=test-%): test-%: build
	PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) \
	$(STAGE) $* cargo test --workspace --test $* -- $(THREADS) $(SKIPPED) --show-output

# Faults in every system call of a run, and kills at random moments: many more than in
# `make test`, and for a quarter of an hour. If all is well docs/faults.txt has the results.
RESULTS := $(CURDIR)/target/faults.txt
faults: build
	@printf 'make faults: commit %s\n%s, %s CPUs, %s, %s\n\n' \
	"$$(git describe --always --abbrev=12 --dirty)" "$$(uname -srm)" "$$(nproc)" \
	"$$(strace -V | head -n 1)" "$$(date -u +%F)" > $(RESULTS)
	FAULTS=800 RESULTS=$(RESULTS) PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) \
	cargo test -p punctual --test faults -- --show-output
	KILLS=200 RESULTS=$(RESULTS) PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) \
	cargo test -p punctual --test kills random -- --show-output
	cp $(RESULTS) docs/faults.txt

# Delays of known lengths on virtual boards, and what is measured of them: four boots of each.
FOUND := $(CURDIR)/target/disturbances.txt
disturbances: build
	@printf 'make disturbances: commit %s\n%s, %s\n\n' \
	"$$(git describe --always --abbrev=12 --dirty)" \
	"$$(qemu-system-x86_64 --version | head -n 1)" "$$(date -u +%F)" > $(FOUND)
	DISTURBANCES=4 RESULTS=$(FOUND) PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) \
	cargo test --workspace --test lab known_length -- --show-output
	cp $(FOUND) docs/disturbances.txt

# The plans that follow publications, each on boards of every preemption model: what they measured, and
# the work of their loads.
PLANS := $(CURDIR)/target/papers.txt
papers: build
	@printf 'make papers: commit %s\n%s, %s\n\n' \
	"$$(git describe --always --abbrev=12 --dirty)" \
	"$$(qemu-system-x86_64 --version | head -n 1)" "$$(date -u +%F)" > $(PLANS)
	PAPERS=all RESULTS=$(PLANS) PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) \
	cargo test --workspace --test lab papers -- --show-output
	cp $(PLANS) docs/papers.txt

# The symbols that are read from the images of kernels against those that their guests show.
NAMES := $(CURDIR)/target/names.txt
names: build
	@printf 'make names: commit %s\n%s\n%s, %s\n\n' \
	"$$(git describe --always --abbrev=12 --dirty)" \
	"$$(qemu-system-x86_64 --version | head -n 1)" \
	"$$(qemu-system-aarch64 --version | head -n 1)" "$$(date -u +%F)" > $(NAMES)
	NAMES=all RESULTS=$(NAMES) PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) \
	cargo test --workspace --test lab symbols_of_an_image -- --show-output
	cp $(NAMES) docs/names.txt

# Releases aimed under `worst` and under the loads of the field, on seeds that its search did not
# use. Hours; EACH=1s SEEDS=1 AIMS=1 are some 15 minutes.
EACH ?= 10s
SEEDS ?= 5
AIMS ?= 3
MODELS ?= debian:none,debian:voluntary,debian:full,debian:rt
WORST := $(CURDIR)/target/worst
STRESS := cmd:stress-ng --cpu 1 --vm 1 --fork 1 --timer 1 --switch 1 --sock 1 --mmap 1 --temp-path /tmp
worst: build qemu
	rm -rf $(WORST)
	./tests/guest-folder $(WORST)/root /usr/bin/stress-ng
	$(BIN) lab aim --kernel $(MODELS) wakeup --load worst,paper,dohell,hackbench \
	-D $(EACH) --replicates $(SEEDS) --aim $(AIMS) --out $(WORST)/loads
	$(BIN) lab aim --kernel $(MODELS) --files $(WORST)/root wakeup --load "$(STRESS)" \
	-D $(EACH) --replicates $(SEEDS) --aim $(AIMS) --out $(WORST)/stress-ng

# Times LMbench 3 and the costs in turn. What it prints is not kept: LMbench's licence forbids it.
ROUNDS ?= 5
against-lmbench: build
	./tests/against-lmbench $(BIN) $(ROUNDS)

# Fuzzes every parser of foreign input for a while.
SECONDS_EACH ?= 2
fuzz:
	$(STAGE) fuzz ./fuzz/run $(SECONDS_EACH)

clean:
	cargo clean
