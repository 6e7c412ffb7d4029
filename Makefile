# SPDX-License-Identifier: BSD-2-Clause
# A thin front over meson and ninja.
#   make          build/iserd, build/iser, build/iserctl
#   make run      the main job on real data, in under a minute after the build
#   make test     everything that is tested; ends with "N passed, N failed"
#   make bench    speed against the floor of this machine and against tgt
#   make lab      the Linux kernel's own iSCSI and iSER as peers, in an emulated guest
#   make soak     models and power cuts for minutes rather than seconds
#   make fuzz     every fuzz target for FUZZ_TIME seconds (600)
BUILD     ?= build
FUZZ_TIME ?= 600
PREFIX    ?= /usr/local

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)
	@ln -sf src/daemon/iserd src/tools/iser src/tools/iserctl $(BUILD)/

$(BUILD)/build.ninja:
	@scripts/packages
	meson setup $(BUILD) --werror --prefix $(PREFIX) -Dbuildtype=release -Db_ndebug=false

packages:
	@scripts/packages

run: packages all
	@scripts/run $(BUILD)

# without the laboratory's packages its smoke job is skipped
test: packages
	-@scripts/packages packages-lab.txt
	@scripts/test

bench: packages all
	@python3 bench/run.py --build $(BUILD)

lab: packages all
	@scripts/packages packages-lab.txt
	@nice python3 tests/lab/run.py --build $(BUILD) --guests 2

soak: packages all
	@scripts/soak $(BUILD)

fuzz: packages
	@scripts/fuzz $(FUZZ_TIME)

install: all
	meson install -C $(BUILD)

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

lint: $(BUILD)/build.ninja
	cppcheck --project=$(BUILD)/compile_commands.json --enable=warning,performance,portability \
	  --suppressions-list=.cppcheck-suppressions --inline-suppr --error-exitcode=1 --quiet -itests
	clang-tidy --quiet -p $(BUILD) $$(git ls-files 'src/*.c')

clean:
	rm -rf build build-clang build-san build-fuzz

.PHONY: all packages run test bench lab soak fuzz install format lint clean
