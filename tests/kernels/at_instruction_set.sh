#!/usr/bin/env bash
# Tests of the kernels, or the comparison with PyTorch's gradients, in one instruction set:
#   at_instruction_set.sh x86-64-v3 test_kernels brigade [OPTION-OF-TEST_KERNELS... | check]
# Exits with 77 where the processor does not have it.
set -euo pipefail
own=$(env -u BRIGADE_CPU "$3" --version)
export BRIGADE_CPU=$1
# oneDNN has a name of its own for each, and a variable that was renamed between its versions 2 and 3.
case "$1" in
  x86-64 | x86-64-v2) isa=SSE41 ;;
  x86-64-v3) isa=AVX2 ;;
  *) isa=AVX512_CORE ;;
esac
export ONEDNN_MAX_CPU_ISA=$isa DNNL_MAX_CPU_ISA=$isa

status=0
chosen=$("$3" --version) || status=$?
if [ "$status" = 2 ]; then
  echo "left out: this processor does not have $1"
  exit 77
fi
case "$chosen" in
  *"instruction set $1") ;;
  *) echo "expected 'instruction set $1' at the end of: $chosen"; exit 1 ;;
esac
if [ "${4:-}" = check ]; then
  "$3" check --all
elif [ "$chosen" = "$own" ]; then
  echo "the processor's own instruction set: the tests kernels/*_test run in it"
else
  "$2" "${@:4}"
fi
