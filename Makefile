# SPDX-License-Identifier: BSD-2-Clause
# Targets for the usual runs of meson and ninja.
#   make          build/iserd, build/iser, build/iserctl
#   make run      iserd and iser on real data, in less than a minute after the build
#   make test     all tests; ends with "N passed, N failed"
#   make bench    the evaluation, in at most 20 minutes; BENCH=full: the whole matrix
#   make lab      tests with the iSCSI and iSER of the Linux kernel, in an emulated guest
#   make cluster  Ceph images and gateways, with a cluster on this machine
#   make soak     models and power cuts, for minutes
#   make fuzz     every fuzz target for FUZZ_TIME seconds (600)
#   make deb      packages for Debian, checked by lintian; deb-test, as root: in a fresh Debian
#   make rpm-test  RPM packages by rpmbuild; container-test, as root: the image by buildah
#   make mutants  how many of N (200) small mistakes the tests find, selected by SEED (1)
BUILD     ?= build
FUZZ_TIME ?= 600
N         ?= 200
SEED      ?= 1
PREFIX    ?= /usr/local

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)
	@ln -sf src/daemon/iserd src/tools/iser src/tools/iserctl $(BUILD)/

# the programs only; make test enables the tests of this build
$(BUILD)/build.ninja:
	@scripts/packages
	meson setup $(BUILD) --werror --prefix $(PREFIX) -Dbuildtype=release -Db_ndebug=false -Dtests=false -Dbench=false

packages:
	@scripts/packages packages.txt packages-run.txt packages-test.txt

# with tests and benchmarks
whole: packages $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dtests=true -Dbench=true
	@$(MAKE) --no-print-directory all

run:
	@scripts/packages packages.txt packages-run.txt
	@$(MAKE) --no-print-directory all
	@scripts/run $(BUILD)

# without the packages of the laboratory its smoke job is skipped, and without those of Ceph its cases
test: packages
	-@scripts/packages packages-lab.txt
	-@scripts/packages packages-ceph.txt
	@scripts/test

bench: whole
	@python3 bench/run.py --build $(BUILD)

# Ceph images on a cluster that the tests start, with libiscsi's suite; each fault of a gateway CLUSTER_FAULTS (50) times
cluster: packages
	@scripts/packages packages-ceph.txt
	@$(MAKE) --no-print-directory whole
	@CLUSTER=long python3 tests/interop/run.py --build $(BUILD) test_rbd test_cluster.
	@if [ $$(id -u) = 0 ]; then CLUSTER=long python3 tests/interop/run.py --build $(BUILD) --io uring test_cluster_nets; fi

lab: packages all
	@scripts/packages packages-lab.txt
	@nice python3 tests/lab/run.py --build $(BUILD) --guests 2

soak: whole
	@scripts/soak $(BUILD)

fuzz: packages
	@scripts/fuzz $(FUZZ_TIME)

mutants: packages
	@scripts/mutants --number $(N) --seed $(SEED)

# packages for Debian in build-deb/; deb-test, as root, installs them in a fresh Debian
deb:
	@scripts/packages packages.txt packages-deb.txt
	@scripts/deb

deb-test: deb
	@scripts/deb-test

rpm-test:
	@scripts/rpm-test

container-test:
	@scripts/container-test

install: all
	meson install -C $(BUILD)

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

lint: $(BUILD)/build.ninja
	scripts/cppcheck $(BUILD)
	clang-tidy --quiet -p $(BUILD) $$(git ls-files 'src/*.c')

clean:
	rm -rf build build-clang build-san build-fuzz build-mutants build-deb build-rpm build-container

.PHONY: all packages whole run test bench cluster lab soak fuzz mutants deb deb-test rpm-test container-test install format lint clean
