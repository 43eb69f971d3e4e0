# `make demo` and `make test` each do everything from a fresh clone: install what is missing, build, run.
.PHONY: build configure demo test bench asan asan-change tsan faults simulations coverage format format-check lint deps clean
BUILD := build/cpu
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cu' '*.cuh')
JOBS ?= $(shell nproc)
TEST_JOBS ?= 2

build: configure
	@cmake --build --preset cpu -j $(JOBS)

# All that CMake says if it fails; otherwise which libraries it goes on without, and why.
configure: deps
	@mkdir -p $(BUILD)
	@cmake --preset cpu $(CMAKE_FLAGS) > $(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }
	@grep -- '^-- brigade: without' $(BUILD)/configure.log || true

# Builds what it runs, and nothing else: the program without its benchmarks.
demo: configure
	@cmake --build --preset cpu -j $(JOBS) --target brigade_program
	$(BUILD)/bin/brigade demo

# Afterwards the figures that tests print: CUDA kernels covered, operations compared with the CPU, training on the emulated device.
test: build
	ctest --preset cpu -j $(TEST_JOBS)
	@grep -hE '^[0-9]+ kernels, |^[0-9]+ operations in |largest relative difference' $(BUILD)/Testing/Temporary/LastTest.log || true

# A selection of the microbenchmarks in less than ten minutes, tables and plots in build/cpu/bench/results.md. RECORD=1 keeps them as what the docs
# show.
bench: configure
	@cmake --build --preset cpu -j $(JOBS) --target brigade_program brigade_bench_program
	python3 bench/selection.py --program $(BUILD)/bin/brigade --out $(BUILD)/bench $(if $(RECORD),--record)

asan: deps
	cmake --preset asan -DBRIGADE_FEW_INSTRUCTION_SETS=OFF $(CMAKE_FLAGS)
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(TEST_JOBS)

# What every change runs of that: core, kernels, autograd and dist, where memory is handled by hand, and CUDA's kernels in the emulation. The rest
# takes twice as long again (scripts/nightly.sh).
asan-change: deps
	cmake --preset asan -DBRIGADE_FEW_INSTRUCTION_SETS=ON $(CMAKE_FLAGS)
	cmake --build --preset asan -j $(JOBS) --target memory_tests
	ctest --preset asan-change -j $(TEST_JOBS)

# Random programs with random faults, and as many healthy ones; ctest runs 500 on threads.
# make faults COUNT=2000 SEED=7 BACKEND=shm
COUNT ?= 20000
SEED ?= $(shell date +%s)
BACKEND ?= threads
faults: configure
	@cmake --build --preset cpu -j $(JOBS) --target test_dist
	BRIGADE_FAULTS=$(COUNT) BRIGADE_FAULTS_SEED=$(SEED) BRIGADE_FAULTS_BACKEND=$(BACKEND) $(BUILD)/bin/test_dist -tc="random faults*"

# Random programs over a simulated transport, whose order of events is the seed's; ctest runs 100.
# make simulations COUNT=5000 SEED=7
simulations: configure
	@cmake --build --preset cpu -j $(JOBS) --target test_dist
	BRIGADE_SIMULATIONS=$(COUNT) BRIGADE_SIMULATIONS_SEED=$(SEED) $(BUILD)/bin/test_dist -tc="simulated programs*"

# Lines of autograd/ and kernels/ that tests run; fails below 95 percent.
coverage: deps
	cmake --preset coverage
	cmake --build --preset coverage -j $(JOBS) --target test_core test_kernels test_autograd test_nn test_optim test_cuda_emulated test_cuda_training_emulated
	scripts/coverage.py build/coverage

# The tests with the label tsan are in these three.
tsan: deps
	cmake --preset tsan -DBRIGADE_FEW_INSTRUCTION_SETS=ON $(CMAKE_FLAGS)
	cmake --build --preset tsan -j $(JOBS) --target test_data test_dist test_amp
	ctest --preset tsan -j $(TEST_JOBS)

format:
	@clang-format -i $(SOURCES)

format-check:
	@clang-format --dry-run --Werror $(SOURCES)

lint: build
	scripts/lint.sh $(BUILD)

deps:
	@scripts/install-deps.sh

clean:
	rm -rf build
