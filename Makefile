# make run   builds the release binary and measures this machine, in about a minute
# make demo  compares four preemption models on virtual boards, in some minutes
# make test  installs what the tests need and runs them all

ARCH := $(shell uname -m)
MUSL := $(ARCH)-unknown-linux-musl
GNU := $(ARCH)-unknown-linux-gnu

# Static musl where rustup can have the target, else static glibc.
TARGET := $(shell rustup target add $(MUSL) >/dev/null 2>&1 && echo $(MUSL) || echo $(GNU))
BIN := target/$(TARGET)/release/punctual
GUESTS := $(filter-out $(TARGET),x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
STATIC := $(if $(filter $(GNU),$(TARGET)),RUSTFLAGS="-C target-feature=+crt-static")

.PHONY: run demo qemu build guests test check unit loom e2e deps fuzz clean

# Exit status 1 (a deadline was missed), 3 (inconclusive) and 4 (skipped) are results, not failures of make.
run: build
	@$(BIN) run $(ARGS); status=$$?; case $$status in 0|1|3|4) exit 0;; *) exit $$status;; esac

# The kernels are downloaded once, into a cache (punctual lab fetch).
demo: build qemu
	@$(BIN) lab run --replicates 4 $(ARGS); status=$$?; case $$status in 0|1|3|4) exit 0;; *) exit $$status;; esac

qemu:
	@command -v qemu-system-x86_64 >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-system-x86 >/dev/null; \
	else echo "install QEMU first (on Debian: sudo apt-get install --no-install-recommends qemu-system-x86)"; exit 1; fi

build:
	$(STATIC) cargo build --release --target $(TARGET) -p punctual

# The binaries for virtual boards of other architectures. Where rustup cannot have their
# target, what needs them says so.
guests: build
	rustup target add $(GUESTS) || exit 0; cargo build --release $(GUESTS:%=--target %) -p punctual

test: deps build check unit loom e2e

deps:
	./tests/install-deps

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

unit:
	cargo test --workspace --lib --bins
	cargo test -p punctual-core -p punctual-sys -p punctual-suite -p punctual-report --tests
	cargo test --workspace --doc

# The rings between probe and collector, in every order of their loads and stores.
loom:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p punctual-suite --lib ring::loom_tests

# One after the other: they measure.
e2e: build guests
	PUNCTUAL_RELEASE=$(CURDIR)/$(BIN) cargo test -p punctual --tests -- --test-threads=1 --show-output

# Fuzzes every parser of foreign input for a while (nightly features of the installed compiler).
fuzz:
	./fuzz/run $(SECONDS_EACH)

clean:
	cargo clean
