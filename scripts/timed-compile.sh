#!/usr/bin/env bash
# Runs a compiler's command and appends the CPU seconds that it took, user and system, and the name of what it made to compile-times.log in
# the folder where it was called, which is the build's. In front of the compiler, or behind ccache (CCACHE_PREFIX), so that what the cache
# answers is not counted. Read by scripts/check-compile-times.py.
output=
previous=
for argument in "$@"; do
  [ "$previous" = -o ] && output=$argument
  previous=$argument
done
TIMEFORMAT='%U %S'
{ seconds=$( { time "$@" 2>&3; } 2>&1 >&4); } 3>&2 4>&1
status=$?
[ -z "$output" ] || echo "$seconds $output" >>compile-times.log
exit "$status"
