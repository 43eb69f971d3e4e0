#!/usr/bin/env bash
# What is too long for every change: all tests under the address and undefined behaviour sanitizers, all_reduce of every dtype between processes,
# all tests on a bare Debian 13 with its compiler and libraries, random programs with random faults on every
# transport, and simulated ones.
#
#   scripts/nightly.sh          seeds from the date, so that every night runs other programs
#   scripts/nightly.sh SEED     one that is given
#
# Ends with 1 if any run failed; each prints its seed, its table, and the
# smallest program of each flaw.
set -uo pipefail
cd "$(dirname "$0")/.."
seed=${1:-$(date +%Y%m%d)00000}
status=0
printf '\n=== address and undefined behaviour sanitizers\n'
make --no-print-directory asan < /dev/null || status=1
printf '\n=== all_reduce between processes, of every dtype and size\n'
make --no-print-directory build < /dev/null &&
  BRIGADE_ALL_DTYPES=1 ctest --preset cpu -R '^dist/collectives_cases_processes$' < /dev/null || status=1
printf '\n=== a bare Debian 13\n'
scripts/bare-machine.sh test --suite trixie < /dev/null || status=1
while read -r backend count; do
  printf '\n=== random faults: %s programs on %s, seed %s\n' "$count" "$backend" "$seed"
  make --no-print-directory faults COUNT="$count" SEED="$seed" BACKEND="$backend" < /dev/null || status=1
done <<'RUNS'
threads 20000
shm 2000
gloo 2000
RUNS
printf '\n=== simulated programs: 5000, seed %s\n' "$seed"
make --no-print-directory simulations COUNT=5000 SEED="$seed" < /dev/null || status=1
printf '\n=== what ranks decide by, among 2 to 1024, and 32 and 64 of them as threads\n'
BRIGADE_ALL_WORLDS=1 BRIGADE_MANY_RANKS=1 build/cpu/bin/test_dist --source-file='*/payload_worlds_test.cpp,*/many_ranks_test.cpp' || status=1
exit "$status"
