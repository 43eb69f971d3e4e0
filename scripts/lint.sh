#!/usr/bin/env bash
# clang-tidy over the project's own sources: scripts/lint.sh BUILD_FOLDER [FILE...]. Needs clang-tidy 16 or later, which knows
# std::source_location.
set -euo pipefail
build=$1
shift
tidy=
for candidate in clang-tidy-{22,21,20,19,18,17,16} clang-tidy; do
  if command -v "$candidate" >/dev/null; then
    version=$("$candidate" --version | sed -n 's/.*version \([0-9]*\).*/\1/p' | head -n 1)
    if [ "${version:-0}" -ge 16 ]; then tidy=$candidate; break; fi
  fi
done
if [ -z "$tidy" ]; then
  echo "lint needs clang-tidy 16 or later; on Debian 12: apt-get install clang-tidy-16" >&2
  exit 3
fi
[ $# -gt 0 ] || mapfile -t files < <(git ls-files 'core/*.cpp' 'kernels/*.cpp' 'autograd/*.cpp' 'nn/*.cpp' 'optim/*.cpp' 'dist/*.cpp' 'lab/*.cpp')
[ $# -eq 0 ] || files=("$@")
# Warnings that only GCC knows are in the compile commands, and omp.h may be GCC's alone.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet \
  --extra-arg=-Wno-unknown-warning-option --extra-arg=-idirafter --extra-arg="$(g++ -print-file-name=include)" --warnings-as-errors='*'
