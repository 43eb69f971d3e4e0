#!/usr/bin/env bash
# fuzz.sh [SECONDS [READER...]]: builds the fuzz targets with clang (preset fuzz: libFuzzer, address and undefined behaviour sanitizers),
# runs each for SECONDS (60), and prints executions, coverage and crashes. What it finds worth keeping stays in build/fuzz/corpus; inputs that
# crash go to build/fuzz/crashes: add them to tests/fuzz/corpus when they are mended. Exits with 1 when there was a crash.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=(safetensors npy checkpoint digits idx cifar10)

# The newest clang; Debian numbers them.
if [ -z "${FUZZ_CXX:-}" ]; then
  for version in 20 19 18 17 16; do
    command -v "clang++-$version" >/dev/null && { FUZZ_CXX=clang++-$version; break; }
  done
fi
export FUZZ_CXX=${FUZZ_CXX:-clang++}
build=build/fuzz
mkdir -p "$build/crashes"
{ cmake --preset fuzz && cmake --build --preset fuzz --target fuzzers -j "${JOBS:-2}"; } >"$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }

run_one() {
  local reader=$1 corpus=$build/corpus/$1 log=$build/$1.log dictionary=()
  mkdir -p "$corpus"
  case $reader in
    safetensors | checkpoint) dictionary=(-dict=tests/fuzz/safetensors.dict) ;;
    npy) dictionary=(-dict=tests/fuzz/npy.dict) ;;
  esac
  # Files written by other programs are good seeds for the two formats that they have.
  local seeds=("tests/fuzz/corpus/$reader")
  case $reader in safetensors | npy) seeds+=(tests/core/data) ;; esac
  ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 BRIGADE_CPU_ALLOC=system \
    "$build/bin/fuzz_$reader" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 \
    -print_final_stats=1 -artifact_prefix="$build/crashes/$reader-" "${dictionary[@]}" "$corpus" "${seeds[@]}" >"$log" 2>&1
}

failed=0
pids=()
for reader in "${readers[@]}"; do
  run_one "$reader" &
  pids+=($!)
  [ "${FUZZ_TOGETHER:-0}" = 1 ] || wait "$!" || true
done
printf '%-12s %12s %9s %9s %9s %8s  %s\n' reader executions per_s edges features corpus result
for i in "${!readers[@]}"; do
  result=ok
  wait "${pids[$i]}" || { result="CRASH, see build/fuzz/${readers[$i]}.log"; failed=1; }
  log=$build/${readers[$i]}.log
  stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }
  last=$(grep -E '^#[0-9]+.* cov: ' "$log" | tail -1 || true)
  field() { sed -n "s/.* $1: \([0-9]*\).*/\1/p" <<<"$last"; }
  printf '%-12s %12s %9s %9s %9s %8s  %s\n' "${readers[$i]}" "$(stat number_of_executed_units)" "$(stat average_exec_per_sec)" "$(field cov)" \
    "$(field ft)" "$(field corp)" "$result"
done
exit $failed
