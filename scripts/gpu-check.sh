#!/usr/bin/env bash
# On a machine with a GPU: builds for exactly this GPU, runs everything that needs one, and writes one file of results.
#
#   scripts/gpu-check.sh [tests|bench|all] [--deps DIR] [--out FILE] [--build DIR] [--compile-only] [-- CMAKE_ARGUMENT...]
#
#   tests  the tests gpu/* (each kernel against the CPU's, memory, streams, graphs), and the kernels' tests again under
#          compute-sanitizer (memcheck, racecheck) where it is installed
#   bench  the programs bench_cuda_*, and steps of DDP over NCCL without it, with it and as one graph (1 and 2 ranks); beside
#          PyTorch where python3 has it and bench/ has a script for it
#   all    both (the default)
#
#   --deps DIR      what scripts/gpu-check-prepare.sh collected, for a machine without packages (default: build/gpu-deps)
#   --out FILE      the results, in Markdown (default: gpu-check.md in the build folder)
#   --build DIR     the build folder (default: build/gpu-check)
#   --compile-only  configures and builds, for GPU_ARCH (default 90), and runs nothing; needs no GPU
#
# Needs nvcc 12 or later, cuDNN and NCCL (beside the toolkit or as Python packages), g++, CMake 3.25, ninja or make; no
# network. Ends within 9 minutes: what does not fit is cut off and said so. Exit status: 0 all is well, 1 something
# failed, 2 no GPU or wrong usage, 3 a tool is missing.
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
logs=$build/logs
cores=$(nproc)
started=$(date +%s)
deadline=$((started + 530))

# --- the machine ---

missing() { echo "gpu-check: $*" >&2; exit 3; }

gpu=$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
if [ -n "$gpu" ]; then
  IFS=, read -r gpu_name capability driver <<<"$gpu"
  capability=${capability//[ .]/}
elif [ -n "$compile_only" ]; then
  gpu_name='none (compiled only)' driver=none
else
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

torch=''
if [ "$what" != tests ] && [ -z "$compile_only" ]; then
  torch=$(timeout 60 python3 -c 'import torch; assert torch.cuda.is_available(); print(torch.__version__)' 2>/dev/null)
fi
commit=$(git -C "$here" rev-parse --short=12 HEAD 2>/dev/null || echo "${COMMIT:-unknown}")

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

mkdir -p "$logs" || exit 3
out=${out:-$build/gpu-check.md}
: >"$out" || { echo "gpu-check: $out cannot be written" >&2; exit 3; }

# --- steps: each with a limit, none beyond the deadline ---

step_names=() step_results=() step_seconds=()
failed=0
time_left() { echo $((deadline - $(date +%s))); }
limit() {  # the smaller of $1 and what is left
  local left
  left=$(time_left)
  echo $(($1 < left ? $1 : left > 1 ? left : 1))
}
record() {  # NAME RESULT SECONDS
  step_names+=("$1") step_results+=("$2") step_seconds+=("$3")
  echo "[$(($(date +%s) - started)) s] $1: $2"
  case "$2" in FAILED*) failed=1 ;; esac
}
# step NAME LIMIT COMMAND...: the output goes to $logs/NAME.log.
step() {
  local name=$1 most begin status result
  most=$(limit "$2")
  shift 2
  begin=$(date +%s)
  timeout -k 5 "$most" "$@" >"$logs/$name.log" 2>&1
  status=$?
  case $status in
    0) result=ok ;;
    77) result=skipped ;;
    124 | 137) result="FAILED: over $most s" ;;
    *) result="FAILED: exit $status" ;;
  esac
  record "$name" "$result" $(($(date +%s) - begin))
  return "$status"
}

write_results() {
  {
    echo "# Checked on a GPU"
    echo
    echo "| | |"
    echo "|---|---|"
    echo "| date | $(date -u +%Y-%m-%d) |"
    echo "| GPU | $gpu_name, compute capability $capability |"
    echo "| driver, CUDA | ${driver# }, $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') |"
    echo "| host | $cores cores, $(g++ --version | head -n 1) |"
    echo "| commit | $commit |"
    echo "| PyTorch | ${torch:-none with CUDA} |"
    echo "| time | $(($(date +%s) - started)) s |"
    echo
    echo "| step | result | seconds |"
    echo "|---|---|---|"
    for i in "${!step_names[@]}"; do
      echo "| ${step_names[i]} | ${step_results[i]} | ${step_seconds[i]} |"
    done
    local file
    for file in "$logs"/*.part; do
      [ -e "$file" ] && { echo; cat "$file"; }
    done
    for i in "${!step_names[@]}"; do
      case "${step_results[i]}" in
        FAILED*)
          file=$logs/${step_names[i]//\//_}.log
          [ -s "$file" ] && { echo; echo "## ${step_names[i]}, the end of its output"; echo; sed 's/^/    /' "$file" | tail -n 40; }
          ;;
      esac
    done
  } >"$out"
}

finish() {
  write_results
  echo
  local bad=0 i
  for i in "${!step_names[@]}"; do
    printf '%-34s %-28s %5s s\n' "${step_names[i]}" "${step_results[i]}" "${step_seconds[i]}"
    case "${step_results[i]}" in FAILED*) bad=$((bad + 1)) ;; esac
  done
  echo "${#step_names[@]} steps, $bad failed, $(($(date +%s) - started)) s; results: $out"
  exit "$failed"
}

# --- build ---

rm -f "$logs"/*.part "$logs"/*.log
architecture=$capability-real
step configure 60 cmake -S "$here" -B "$build" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DBRIGADE_CUDA=ON \
  -DBRIGADE_ONEDNN=OFF -DBRIGADE_GLOO=OFF -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES="$architecture" \
  "${dependencies[@]}" "${cmake_arguments[@]}" || { tail -n 20 "$logs/configure.log"; finish; }

targets=(brigade_program brigade_bench_program)
[ "$what" = bench ] || targets+=(gpu_tests)
[ "$what" = tests ] || targets+=(gpu_benches)
most=300
[ -n "$compile_only" ] && { deadline=$((started + 7200)); most=7000; }
step build $most cmake --build "$build" --parallel "$cores" --target "${targets[@]}" ||
  { grep -E -m 20 'error|FAILED' "$logs/build.log"; finish; }
[ -n "$compile_only" ] && finish

# --- the tests ---

# How many ranks are on the GPUs that there are, or all on one, where they talk over sockets.
share_for() { [ "$(nvidia-smi --list-gpus | wc -l)" -ge "$1" ] || echo BRIGADE_NCCL_SHARE_GPU=1; }

# DDP over NCCL with as many ranks, also where one is alone.
run_ranks() {
  local ranks=$1 share
  share=$(share_for "$ranks")
  step "train-$ranks-ranks" 60 env BRIGADE_NCCL_ONE_RANK=1 $share "$build/bin/brigade" train digits --device cuda --backend nccl --ranks "$ranks" --epochs 2 \
    --quiet --timeout 40 --json "$logs/train-$ranks-ranks.json"
  {
    echo "## brigade train digits, $ranks ranks over NCCL${share:+ that share one GPU}"
    echo
    cat "$logs/train-$ranks-ranks.log"
  } >"$logs/1-train-$ranks-ranks.part"
}

run_tests() {
  step tests 120 ctest --test-dir "$build" -L gpu --timeout 90 --output-on-failure
  local ranks
  for ranks in 1 2 4; do run_ranks "$ranks"; done
  {
    echo "## Tests on the device"
    echo
    echo "| test | result | seconds |"
    echo "|---|---|---|"
    sed -n -E 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) \.+ *\**(.*[^ ]) +([0-9.]+) sec.*/| \1 | \2 | \3 |/p' "$logs/tests.log"
  } >"$logs/1-tests.part"
  grep -q '^| gpu/' "$logs/1-tests.part" || record 'tests found' 'FAILED: none ran' 0
}

# sanitize TOOL FILE UNTIL: one test file; a line of the table to its own file. Called by xargs.
# shellcheck disable=SC2317
sanitize() {
  local tool=$1 name=$2 left=$(($3 - $(date +%s))) log=$logs/$1-$2.log begin status result
  begin=$(date +%s)
  if [ "$left" -lt 5 ]; then
    result='left out: no time'
  else
    [ "$left" -lt 60 ] || left=60
    BRIGADE_CUDA_ALLOC=system timeout -k 5 "$left" compute-sanitizer --tool "$tool" --error-exitcode 9 \
      --report-api-errors no "$program" "--source-file=*/cuda/$name.cpp" >"$log" 2>&1
    status=$?
    case $status in
      0) result=ok ;;
      124 | 137) result="cut off at $left s" ;;
      9) result="FAILED: $(sed -n 's/.*ERROR SUMMARY: //p; s/.*RACECHECK SUMMARY: //p' "$log" | tail -n 1)" ;;
      *) result="FAILED: exit $status" ;;
    esac
    # What it has reported before it was cut off counts; that it cannot watch this device does not.
    if [ "$status" -ne 0 ] && grep -q 'Device not supported' "$log"; then
      result='left out: device not supported'
    elif [ "$status" -eq 124 ] && grep -qE '========= (Invalid|Error: |Race)' "$log"; then
      result='FAILED: errors, then cut off'
    fi
  fi
  echo "| $tool | $name | $result | $(($(date +%s) - begin)) |" >"$logs/$tool-$name.row"
  case "$result" in FAILED*) sed 's/^/    /' "$log" | head -n 60 >"$logs/$tool-$name.found"; return 1 ;; esac
}

run_sanitizer() {
  if ! command -v compute-sanitizer >/dev/null; then
    record compute-sanitizer 'left out: not installed' 0
    return
  fi
  export -f sanitize
  export logs program=$build/bin/test_cuda
  local tool until begin names file
  # Host code has no kernels to watch, and its tests count on the allocator's cache.
  names=''
  for file in "$here"/tests/cuda/*_test.cpp; do
    file=$(basename "$file" .cpp)
    case $file in allocator_test | streams_test | graph_test | graph_memory_test) ;; *) names+=$file$'\n' ;; esac
  done
  rm -f "$logs"/*.row "$logs"/*.found
  for tool in memcheck racecheck; do
    begin=$(date +%s)
    until=$((begin + $(limit 80)))
    if printf '%s' "$names" | xargs -P 4 -I '{}' bash -c 'sanitize "$@"' _ "$tool" '{}' "$until"; then
      record "$tool" ok $(($(date +%s) - begin))
    else
      record "$tool" FAILED $(($(date +%s) - begin))
    fi
  done
  {
    echo "## compute-sanitizer"
    echo
    echo "| tool | tests | result | seconds |"
    echo "|---|---|---|---|"
    cat "$logs"/*.row
    for file in "$logs"/*.found; do
      [ -e "$file" ] && { echo; echo "$(basename "$file" .found):"; echo; cat "$file"; }
    done
  } >"$logs/2-sanitizer.part"
}

# --- the benches ---

# Steps of DDP over NCCL with as many ranks. Several that share one GPU are for the mechanism: NCCL sends through sockets then.
bench_ranks() {
  local ranks=$1 share name=bench-ddp-$1-ranks
  share=$(share_for "$ranks")
  local modes=local,strict,diagnosis_off,graph
  if [ -n "$torch" ]; then
    step "$name" 90 env $share python3 "$here/bench/beside_torch.py" ddp --device cuda --ranks "$ranks" --modes $modes --steps 20 \
      --rounds 7 --program "$build/bin/brigade"
  else
    step "$name" 60 env $share "$build/bin/brigade" bench ddp --device cuda --backend nccl --ranks "$ranks" --modes $modes \
      --rounds 20-50 --seconds 8
  fi
  {
    echo "## Steps of DDP, $ranks ranks over NCCL${share:+ that share one GPU}"
    echo
    cat "$logs/$name.log"
  } >"$logs/3-$name.part"
}

run_benches() {
  local program bench script ranks
  for ranks in 1 2; do bench_ranks "$ranks"; done
  for program in "$build"/bin/bench_cuda_*; do
    bench=${program##*/}
    [ -x "$program" ] || { record bench_cuda 'left out: none is built' 0; break; }
    script=$here/bench/${bench#bench_}_torch.py
    if [ -n "$torch" ] && [ -e "$script" ]; then
      step "$bench" 120 python3 "$script" --beside "$program"
    else
      step "$bench" 90 "$program"
    fi
    {
      echo "## $bench"
      echo
      cat "$logs/$bench.log"
    } >"$logs/3-$bench.part"
  done
}

# Short ones first: a bench is worth more than the last minute of a checker.
[ "$what" = bench ] || run_tests
[ "$what" = tests ] || run_benches
[ "$what" = bench ] || run_sanitizer
finish
