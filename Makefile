# rvtrace: `make demo` shows it, `make test` proves it. Both install what is missing first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: help demo examples docs test test-long check setup fuzz bench shell-files screenshots clean
.DEFAULT_GOAL := help

help:
	@echo "make demo                a traced program in gdb, as you would see it"
	@echo "make demo INTERACTIVE=1  the same, and you are left at the gdb prompt"
	@echo "make examples            the programs of docs/tutorials, in build/examples"
	@echo "make test                the tests (ARGS='-k word' for some)"
	@echo "make test-long           all tests, with all of their random cases; then some in the C locale"
	@echo "make check               ruff and mypy, warnings are errors"
	@echo "make fuzz                damaged inputs of every kind (COUNT=200000 SEED=1 KINDS='tandem capture' JOBS=2)"
	@echo "make bench               speed, as figures and ratios within one run"
	@echo "make shell-files         the manual page and the completions in share/"
	@echo "make docs                the documentation as a site, in build/site"
	@echo "make screenshots         the pictures in docs/images, from a real terminal"

# A stamp per set of extras: pip runs again only when pyproject.toml or what setup.py compiles changes.
BUILT := pyproject.toml setup.py $(wildcard decode/kernel/*.[ch] decode/kernel/*/*.[ch])
$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@
$(VENV)/.run: $(BUILT) | $(VENV)/.made
	$(PIP) install --editable '.[console,usb]'
	@touch $@
$(VENV)/.test: $(BUILT) | $(VENV)/.made
	$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/.run
$(VENV)/.check: $(BUILT) | $(VENV)/.made
	$(PIP) install --editable '.[test,check]'
	@touch $@ $(VENV)/.run $(VENV)/.test

$(VENV)/.docs: pyproject.toml | $(VENV)/.made
	$(PIP) install --editable '.[docs]'
	@touch $@

.PHONY: tools-demo tools-test
tools-demo:
	@scripts/setup-tools demo
tools-test:
	@scripts/setup-tools test

setup: tools-demo
	@$(MAKE) --no-print-directory $(VENV)/.run

demo: setup
	@$(BIN)/rvtrace demo -o build/demo $(if $(INTERACTIVE),--interactive)
	@echo
	@echo "  . $(BIN)/activate    # then rvtrace is a command of this shell; rvtrace alone lists what it can do"
	@echo "  make examples            # programs that each have a bug, in build/examples, for the tutorials in docs/README.md"
	@echo "  rvtrace console --elf build/examples/hang.elf --sim     # the first of them: docs/tutorials/it-hangs.md"

# The programs of docs/tutorials.
EXAMPLES := $(patsubst examples/%.c,build/examples/%.elf,$(wildcard examples/*.c)) \
	$(patsubst examples/%.cpp,build/examples/%.elf,$(wildcard examples/*.cpp)) \
	build/examples/rust_tank.elf build/examples/two_harts.elf
EXAMPLE_CC := riscv64-unknown-elf-gcc -march=rv64imac_zicsr -mabi=lp64 -mcmodel=medany -Og -g \
	-specs=picolibc.specs -nostartfiles
EXAMPLE_CXX := -fno-exceptions -fno-rtti
examples: setup $(EXAMPLES)
	@echo "The programs are in build/examples. Type . $(BIN)/activate for the command rvtrace, then for instance"
	@echo "  rvtrace console --elf build/examples/hang.elf --sim     # docs/tutorials/it-hangs.md; docs/README.md lists all"
build/examples/%.elf: examples/%.c examples/start.S examples/link.ld
	@mkdir -p $(@D)
	cd examples && $(EXAMPLE_CC) -T link.ld start.S $*.c -o ../$@
build/examples/%.elf: examples/%.cpp examples/start.S examples/link.ld
	@mkdir -p $(@D)
	cd examples && $(EXAMPLE_CC) $(EXAMPLE_CXX) -T link.ld start.S $*.cpp -o ../$@
build/examples/rust_tank.elf: examples/rust_tank.s examples/start.S examples/link.ld
	@mkdir -p $(@D)
	sed 's,@examples@,$(CURDIR)/examples,' examples/rust_tank.s >build/examples/rust_tank.s
	cd examples && $(EXAMPLE_CC) -T link.ld start.S ../build/examples/rust_tank.s -o ../$@
build/examples/two_harts.elf: $(wildcard examples/two_harts/*) examples/link.ld
	@mkdir -p $(@D)
	cd examples/two_harts && $(EXAMPLE_CC) -T ../link.ld start.S two_harts.c -o ../../$@

PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
test: tools-test
	@$(MAKE) --no-print-directory $(VENV)/.test
	@$(BIN)/python setup.py -q build_ext --inplace # `make check` may have come before the compiler
	@scripts/setup-dap-clients || true
	@scripts/setup-speedscope || true
	$(PYTEST) $(ARGS)

test-long: export RVTRACE_TEST_LONG = 1
test-long: test
	@echo "Once more, in the C locale, what make test tries"
	RVTRACE_TEST_LONG= LC_ALL=C $(PYTEST) $(ARGS)

check: tools-demo
	@$(MAKE) --no-print-directory $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.docs
	$(BIN)/python scripts/site.py

screenshots: tools-test
	@$(MAKE) --no-print-directory $(VENV)/.test
	$(BIN)/python scripts/screenshots.py

shell-files: setup
	$(BIN)/python scripts/shell_files.py

fuzz: tools-test
	@$(MAKE) --no-print-directory $(VENV)/.test
	$(BIN)/python -m tests.fuzz --count $(or $(COUNT),200000) --seed $(or $(SEED),1) --jobs $(or $(JOBS),1) \
		$(if $(KINDS),--kinds $(KINDS))

bench: tools-test
	@$(MAKE) --no-print-directory $(VENV)/.test
	@for file in benchmarks/*/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf build $(VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
