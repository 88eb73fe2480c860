# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The short way in: each target installs the Debian packages that it lacks, configures Meson where that
# is needed, and hands over to it. Everything about what is built, and how, is in the meson.build files.
#
#   make                             the library, the command, the guests (build/)
#   make test                        every test; SAN=address,undefined or SAN=thread: under sanitizers (build-san/)
#   make bench ONLY=NAME             one benchmark, or all of them without ONLY
#   make install PREFIX= DESTDIR=    and make uninstall with the same two

PREFIX  ?= /usr/local
DESTDIR ?=
SAN     ?=
ONLY    ?=
JOBS    ?= $(shell nproc)

BUILD   := $(if $(SAN),build-san,build)
NINJA    = ninja -C $(BUILD) -j$(JOBS)

.DEFAULT_GOAL := all
.PHONY: all configure demo test test-svm bench soak lint clean install uninstall

configure:
	@scripts/packages.sh build
	@scripts/configure.sh $(BUILD) "$(SAN)"

all: configure
	@$(NINJA)

demo: all
	@scripts/packages.sh demo
	@scripts/fetch-data.sh busybox
	@scripts/demo.sh $(BUILD)

test:
	@scripts/packages.sh build test
	@scripts/configure.sh $(BUILD) "$(SAN)" tests
	@$(NINJA)
	@scripts/fetch-data.sh busybox prometheus
	@scripts/fetch-data.sh npm || echo "Tests that need packages of npm are skipped."
	@scripts/run-tests.sh $(BUILD)

test-svm:
	@scripts/packages.sh build test svm
	@scripts/configure.sh build "" tests
	@ninja -C build -j$(JOBS)
	@scripts/fetch-data.sh busybox kernel
	@scripts/test-svm.sh build

bench:
	@scripts/packages.sh build bench
	@scripts/configure.sh $(BUILD) "$(SAN)"
	@$(NINJA)
	@scripts/bench.sh $(BUILD) "$(ONLY)"

soak:
	@scripts/packages.sh build test
	@scripts/configure.sh $(BUILD) "$(SAN)" tests
	@$(NINJA)
	@scripts/fetch-data.sh busybox
	@scripts/run-tests.sh $(BUILD) soak

lint:
	@scripts/packages.sh build test lint
	@scripts/configure.sh build "" tests
	@ninja -C build -j$(JOBS)
	@scripts/lint.sh build

# What was downloaded (build/cache) stays: it is no product of this tree.
clean:
	@rm -rf build-san
	@if [ -d build ]; then find build -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +; fi

install: configure
	@scripts/install.sh build "$(PREFIX)" "$(DESTDIR)"

uninstall:
	@scripts/uninstall.sh "$(PREFIX)" "$(DESTDIR)"
