#!/usr/bin/env bash
# On a machine with a GPU and a compiler: builds for exactly this GPU, and runs the stages of scripts/gpu-stages.sh with it.
#
#   scripts/gpu-check.sh [tests|bench|all] [--deps DIR] [--out DIR] [--build DIR] [--compile-only] [-- CMAKE_ARGUMENT...]
#
#   tests  stages A and C: first contact, the fault catalogue over NCCL, the unit tests; the checkers of memory and of races
#   bench  stage B: kernels, blocks and steps of DDP, beside PyTorch where python3 has it
#   all    all three (the default)
#
#   --deps DIR      what scripts/gpu-check-prepare.sh collected, for a machine without packages (default: build/gpu-deps)
#   --out DIR       the results (default: results in the build folder)
#   --build DIR     the build folder (default: build/gpu-check)
#   --compile-only  configures and builds, for GPU_ARCH (default 90), and runs nothing; needs no GPU
#
# Needs nvcc 12 or later, cuDNN and NCCL (beside the toolkit or as Python packages), g++, CMake 3.25, ninja or make; no
# network. Where the time on the GPU is short or there is no compiler: scripts/gpu-pack.sh, elsewhere. Exit status: 0 all is well,
# 1 something failed, 2 no GPU or wrong usage, 3 a tool is missing or the build failed.
set -uo pipefail

what=all deps='' out='' build='' compile_only=
cmake_arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    tests | bench | all) what=$1 ;;
    --deps | --out | --build)
      [ $# -ge 2 ] || { echo "$1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift
      ;;
    --compile-only) compile_only=yes ;;
    --) shift; cmake_arguments=("$@"); break ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${build:-$here/build/gpu-check}
deps=${deps:-$here/build/gpu-deps}
cores=$(nproc)

# --- the machine ---

missing() { echo "gpu-check: $*" >&2; exit 3; }

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d ' .')
if [ -z "$capability" ] && [ -z "$compile_only" ]; then
  echo "gpu-check: there is no GPU here (nvidia-smi names none); --compile-only builds without one" >&2
  exit 2
fi
[[ ${capability:-} =~ ^[0-9]+$ ]] || capability=${GPU_ARCH:-90}

nvcc=$(command -v nvcc)
for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda*; do
  [ -z "$nvcc" ] && [ -x "$folder/bin/nvcc" ] && nvcc=$folder/bin/nvcc
done
[ -n "$nvcc" ] || missing "there is no nvcc on the PATH, in CUDA_HOME or in /usr/local/cuda"
toolkit=$(dirname "$(dirname "$(realpath "$nvcc")")")
PATH=$toolkit/bin:$PATH
for tool in cmake g++; do
  command -v "$tool" >/dev/null || missing "there is no $tool"
done
generator='Unix Makefiles'
if command -v ninja >/dev/null; then
  generator=Ninja
elif ! command -v make >/dev/null; then
  missing "there is neither ninja nor make"
fi
[ -d "$deps" ] || deps=''

# A library that the compiler does not find may be there as one of NVIDIA's Python packages.
in_python_packages() {
  python3 - "$1" <<'TEXT' 2>/dev/null
import pathlib, site, sys
for folder in [*site.getsitepackages(), site.getusersitepackages(), *sys.path]:
    for found in sorted(pathlib.Path(folder).glob("nvidia/*/" + sys.argv[1])):
        raise SystemExit(print(found))
TEXT
}
# library NAME HEADER CMAKE_LIBRARY CMAKE_FOLDER
library() {
  local found
  if ! printf '#include <%s>\n' "$2" | g++ -x c++ -I"$toolkit/include" -fsyntax-only - 2>/dev/null; then
    found=$(in_python_packages "include/$2") && [ -n "$found" ] && dependencies+=("-D$4=$(dirname "$found")")
  fi
  if ! g++ -shared -o /dev/null -L"$toolkit/lib64" -L"$toolkit/lib" "-l$1" 2>/dev/null; then
    found=$(in_python_packages "lib/lib$1.so*") && [ -n "$found" ] && dependencies+=("-D$3=$found")
  fi
}
dependencies=()
library cudnn cudnn.h CUDNN_LIBRARY CUDNN_INCLUDE_DIR
library cublasLt cublasLt.h CUDA_cublasLt_LIBRARY CUDA_cublasLt_INCLUDE_DIR
# NCCL is loaded by the tests that use it.
if ! ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
  for found in "$toolkit"/lib64/libnccl.so.2 "$toolkit"/lib/libnccl.so.2 "$(in_python_packages 'lib/libnccl.so.2')"; do
    [ -f "$found" ] && export BRIGADE_NCCL_LIBRARY=$found && break
  done
fi
[ -n "$deps" ] && dependencies+=("-DCMAKE_PREFIX_PATH=$deps")
printf 'int main() {}' | g++ -x c++ -fopenmp -o /dev/null - 2>/dev/null || dependencies+=(-DBRIGADE_OPENMP=OFF)

# --- build ---

mkdir -p "$build" || exit 3
if ! cmake -S "$here" -B "$build" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DBRIGADE_CUDA=ON -DBRIGADE_ONEDNN=OFF -DBRIGADE_GLOO=OFF \
  -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES="$capability-real" "${dependencies[@]}" "${cmake_arguments[@]}" >"$build/configure.log" 2>&1; then
  tail -n 20 "$build/configure.log" >&2
  missing 'CMake cannot configure this tree here'
fi
targets=(brigade_program brigade_bench_program)
[ "$what" = bench ] || targets+=(gpu_tests)
[ "$what" = tests ] || targets+=(gpu_benches)
began=$SECONDS
if ! cmake --build "$build" --parallel "$cores" --target "${targets[@]}" >"$build/build.log" 2>&1; then
  grep -E -m 20 'error|FAILED' "$build/build.log" >&2
  missing "the build failed: $build/build.log"
fi
echo "built for sm_$capability in $((SECONDS - began)) s"
[ -n "$compile_only" ] && exit 0

case "$what" in tests) stages=AC ;; bench) stages=B ;; *) stages=ABC ;; esac
exec "$here/scripts/gpu-stages.sh" "$stages" --bin "$build/bin" --out "${out:-$build/results}"
