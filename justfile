# Every recipe is one command that also works without just.

# List the recipes.
default:
    @just --list

# Build everything, for debugging.
build:
    cargo build --workspace --locked

# Install what is missing and run every test; arguments go to cargo test.
test *arguments:
    scripts/test {{arguments}}

# The tests of placement by HiGHS, a build feature; compiles C++ for some minutes.
test-highs:
    cargo test --release --locked -p planner --features highs with_highs

# What to run before every commit: format, lints, unit tests.
quick: lint
    cargo test --workspace --locked --lib --bins
    cargo test --locked -p tidy

# Check format and lints.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Format every file.
format:
    cargo fmt --all

# Check the rules of the source tree.
tidy:
    cargo test --locked -p tidy

# Build the documentation of the crates; open it with `just doc --open`.
doc *arguments:
    RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked {{arguments}}

# Run one benchmark: delay, overhead, law, mmap.
bench name *arguments:
    scripts/bench {{name}} {{arguments}}

# Run the long checks that have no fresh verdict; `just claims list` shows what is known.
claims *arguments:
    scripts/claims {{arguments}}

# Run every test again and again beside busy loops, to find those that fail at times.
flaky *arguments:
    scripts/flaky {{arguments}}

# Everything a change must pass, as CI runs it (root).
ci:
    .ci/run

# Redis with a quarter of its memory local, against Redis as it is.
quickstart:
    scripts/quickstart

# Install the Debian packages for building and testing.
deps:
    scripts/install-deps build test bench

# Undo what a run that was killed left on this host.
clean-host:
    cargo run --release --locked -q -p afar -- doctor --repair
