#!/usr/bin/env bash
# On a machine with a GPU, in the tree's root: runs what was built before, in the order in which it tells most.
#
#   scripts/gpu-stages.sh [A|B|C|ABC] [--pack FILE | --bin DIR | --emulated DIR] [--out DIR] [--jobs N]
#
#   A  two minutes: the libraries; first contact of kernels, cuBLASLt, cuDNN, attention and graphs; digits on one rank, on two over NCCL
#      and through the host's memory, in 16-mixed; the fault catalogue over NCCL; the unit tests
#   B  five minutes: kernels, blocks and steps of DDP beside PyTorch
#   C  three minutes: racecheck, memcheck and initcheck of the kernels that use shared memory
#
#   --pack FILE     what scripts/gpu-pack.sh made elsewhere (default: .gpu/pre.tar.xz); refused when the sources have changed since
#   --bin DIR       the programs of a build on this machine (scripts/gpu-check.sh makes one)
#   --emulated DIR  the programs of a build without CUDA, on emulated devices: tiny benches, orders of threads instead of checkers
#   --out DIR       the results (default: $OUT, or gpu-results): results.md, at most 8 files of 16 MiB
#   --jobs N        unit tests and checkers at a time (default: 14)
#
# Everything is written as it comes. What has no time left is left out and said so. Exit status: 0 all is well, 1 something failed, 2 no GPU
# (what can be seen without one is done) or wrong usage, 3 the pack is missing or old.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$here" || exit 3

stages='' pack=.gpu/pre.tar.xz bin='' emulated='' out=${OUT:-gpu-results} jobs=14
while [ $# -gt 0 ]; do
  case "$1" in
    --pack | --bin | --emulated | --out | --jobs)
      [ $# -ge 2 ] || { echo "$1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift
      ;;
    [ABC] | AB | AC | BC | ABC) stages+=$1 ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
stages=${stages:-ABC}
mkdir -p "$out" && out=$(cd "$out" && pwd) || { echo "gpu-stages: $out cannot be written" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
began=$(date +%s)
table=$out/results.md log=$out/log.txt failed=$out/failed.txt
: >"$table"; : >"$log"; : >"$failed"
bad=0

seconds() { echo $(($(date +%s) - began)); }
say() { printf '%s\n' "$*" | tee -a "$table"; }
seconds_of() { printf '%d.%d' $(($1 / 1000)) $(($1 % 1000 / 100)); } # milliseconds
row() { # NAME RESULT SECONDS [REMARK]
  case "$2" in FAILED*) bad=$((bad + 1)) ;; esac
  say "| $1 | $2 | $3 | ${4:-} |"
}
head_of_table() { say ''; say "## $1"; say ''; say '| what | result | seconds | |'; say '|---|---|---|---|'; }

# --- the programs ---

if [ -n "$bin" ]; then
  bin=$(cd "$bin" && pwd) && library=$(dirname "$bin")/lib || exit 3
elif [ -n "$emulated" ]; then
  bin=$(cd "$emulated" && pwd) && library='' || exit 3
else
  [ -e "$pack" ] || { echo "gpu-stages: there is no $pack: scripts/gpu-pack.sh makes it on a machine with nvcc" >&2; exit 3; }
  # tar may not know xz there.
  python3 - "$pack" "$work" <<'PYTHON' || exit 3
import sys, tarfile
with tarfile.open(sys.argv[1]) as pack:
    pack.extractall(sys.argv[2], **({"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}))
PYTHON
  if [ "$(cat "$work/digest")" != "$(scripts/gpu-pack.sh --digest)" ]; then
    echo "gpu-stages: $pack was made from other sources (commit $(cat "$work/commit")): make it again with scripts/gpu-pack.sh" >&2
    exit 3
  fi
  bin=$work/bin library=$work/lib
  # Tests read data and tables where they were compiled.
  compiled_at=$(cat "$work/source_path")
  if [ ! -e "$compiled_at" ]; then
    mkdir -p "$(dirname "$compiled_at")" 2>/dev/null && ln -s "$here" "$compiled_at" 2>/dev/null ||
      say "Tests that read files of the tree will fail: $compiled_at cannot be made to point to $here."
  fi
fi
program() { # NAME: its path
  if [ -n "$emulated" ]; then
    case "$1" in bench_cuda_*) echo "$bin/bench_${1#bench_cuda_}_emulated" ;; *) echo "$bin/${1}_emulated" ;; esac
  else
    echo "$bin/$1"
  fi
}
brigade=$(program brigade)

# NVIDIA's libraries: beside a toolkit, or Python packages.
nvidia=$(python3 - <<'PYTHON'
import pathlib, sys
folders = {}
for root in [*map(pathlib.Path, sys.path), pathlib.Path("/usr/local/cuda")]:
    for name in ("libcudart.so.12", "libcudart.so.13", "libcublasLt.so.12", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2"):
        for found in [*root.glob("nvidia/*/lib/" + name), *root.glob("lib*/" + name)]:
            folders.setdefault(name, str(found.parent))
print(":".join(dict.fromkeys(folders.values())))
PYTHON
)
if [ -z "$emulated" ]; then
  export LD_LIBRARY_PATH=$library${nvidia:+:$nvidia}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export BRIGADE_CUDA_LIBRARY=$library/libbrigade_cuda.so
  if [ -z "${BRIGADE_NCCL_LIBRARY:-}" ]; then
    IFS=: read -ra folders <<<"$nvidia"
    for folder in "${folders[@]}"; do
      [ -e "$folder/libnccl.so.2" ] && export BRIGADE_NCCL_LIBRARY=$folder/libnccl.so.2 && break
    done
  fi
fi

# --- the machine ---

gpu=$(nvidia-smi --query-gpu=name,compute_cap,driver_version,compute_mode --format=csv,noheader 2>/dev/null | head -n 1)
gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)
torch=''
[[ $stages == *B* && -n $gpu ]] &&
  torch=$(timeout 60 python3 -c 'import torch; assert torch.cuda.is_available(); print(torch.__version__)' 2>/dev/null)
[ -n "$emulated" ] && gpu='emulated'
say '# Checked on a GPU'
say ''
say "- date: $(date -u +%Y-%m-%d)"
say "- GPU: ${gpu:-none}"
say "- host: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
say "- commit: $(cat "$work/commit" 2>/dev/null || git rev-parse --short=12 HEAD 2>/dev/null || echo "${COMMIT:-unknown}")"
say "- PyTorch: ${torch:-none asked for, or none with CUDA}"
has_gpu() { [ -n "$gpu" ]; }
# Ranks have a GPU each, or all of them one, where NCCL sends through sockets.
share_for() { [ "$gpus" -ge "$1" ] || echo BRIGADE_NCCL_SHARE_GPU=1; }

# --- steps ---

# The emulation computes on the processor what a GPU would.
slower=1
[ -n "$emulated" ] && slower=20
deadline=0
time_left() { echo $((deadline - $(date +%s))); }
stage() { # LETTER SECONDS TITLE
  deadline=$(($(date +%s) + $2 * slower))
  head_of_table "$1: $3"
}
# step NAME MOST COMMAND...: a row, and the output in the log.
step() {
  local name=$1 most=$(($2 * slower)) from status left result
  shift 2
  left=$(time_left)
  has_gpu || { row "$name" 'left out: no GPU' 0; return 1; }
  [ "$left" -ge 3 ] || { row "$name" 'left out: no time' 0; return 1; }
  [ "$most" -le "$left" ] || most=$left
  from=$(date +%s%N)
  echo "=== $name: $*" >>"$log"
  timeout -k 3 "$most" "$@" >"$work/step" 2>&1
  status=$?
  cat "$work/step" >>"$log"
  echo "=== $name: exit $status" >>"$log"
  case $status in
    0) result=ok ;;
    77) result=skipped ;;
    124 | 137) result="FAILED: over $most s" ;;
    *) result="FAILED: exit $status" ;;
  esac
  case "$result" in FAILED*) { echo "=== $name: $result"; cat "$work/step"; } >>"$failed" ;; esac
  row "$name" "$result" "$(seconds_of $((($(date +%s%N) - from) / 1000000)))" "$(grep -aE '^(loss|accuracy|test cases:)' "$work/step" | tail -n 1 | tr -s ' |' ' /' | cut -c 1-80)"
  return "$status"
}
# each NAME FILE-OF-LINES FUNCTION: a line at a time to the function, --jobs at once; those that failed become rows. The function prints
# "ok|skipped|left out|FAILED WORDS<tab>SECONDS<tab>LINE".
each() {
  local name=$1 lines=$2 function=$3 from
  has_gpu || { row "$name" 'left out: no GPU' 0 "$(wc -l <"$lines") of them"; return; }
  from=$(date +%s)
  export deadline bin library work log failed emulated brigade
  export gpus
  export -f "$function" program time_left share_for finish_line keep_failure
  xargs -a "$lines" -d '\n' -P "$jobs" -n 1 bash -c "$function \"\$@\"" _ >"$work/each"
  while IFS=$'\t' read -r result took line; do
    case "$result" in ok) ;; *) row "$line" "$result" "$took" ;; esac
  done <"$work/each"
  sed "s/^/$name\t/" "$work/each" >>"$out/each.tsv"
  row "$name" "$(grep -c '^ok' "$work/each") of $(wc -l <"$lines") ok" $(($(date +%s) - from))
}
# finish_line STATUS MOST FROM LINE LOG [RESULT]: what such a function prints, in one piece since others print too; what failed is kept whole.
finish_line() {
  local result=${6:-}
  [ -n "$result" ] || case $1 in
    0) result=ok ;;
    77) result=skipped ;;
    124 | 137) result="FAILED: over $2 s" ;;
    *) result="FAILED: exit $1" ;;
  esac
  printf '%s\t%s\t%s\n' "$result" $(($(date +%s) - $3)) "$4"
  case "$result" in FAILED*) keep_failure "$4" "$5" ;; esac
}
# keep_failure NAME FILE: whole, one at a time.
keep_failure() { { flock 9; { echo "=== $1"; cat "$2"; } >>"$failed"; } 9>"$work/lock"; }

# --- A ---

list_tests() { # PROGRAM FOLDER
  local file
  for file in "tests/cuda/$2"*_test.cpp; do echo "$1 $(basename "$file" .cpp)"; done
}
# shellcheck disable=SC2317
unit_test() {
  local name file from status file_log most
  read -r name file <<<"$1"
  file_log=$work/$name-$file.log from=$(date +%s) most=$(time_left)
  [ "$most" -ge 3 ] || { printf 'left out: no time\t0\t%s\n' "$1"; return; }
  timeout -k 3 "$most" "$(program "$name")" "--source-file=*/$file.cpp" >"$file_log" 2>&1
  status=$?
  finish_line "$status" "$most" "$from" "$1" "$file_log"
}
# shellcheck disable=SC2317
planted_fault() {
  local from status most fault_log=$work/fault-$1.log
  from=$(date +%s) most=$(time_left)
  [ "$most" -ge 3 ] || { printf 'left out: no time\t0\t%s\n' "$1"; return; }
  env $(share_for 2) timeout -k 3 "$most" "$brigade" diagnose "$1" --device cuda --backend nccl --ranks 2 >"$fault_log" 2>&1
  status=$?
  finish_line "$status" "$most" "$from" "$1" "$fault_log"
}

stage_a() {
  local missing
  stage A 130 'first contact'
  if [ -z "$emulated" ]; then
    missing=$(ldd "$bin"/* "$library"/libbrigade_cuda.so 2>/dev/null | grep 'not found' | sort -u | tr -s '\t\n' '  ')
    if [ -z "$missing" ]; then row libraries ok 0; else row libraries 'FAILED: not found' 0 "$missing"; fi
  fi
  step 'kernels' 40 "$(program bench_cuda_kernels)" --smoke
  step 'cuBLASLt, cuDNN, attention, graphs' 40 "$(program bench_cuda_blocks)" --smoke
  local train=("$brigade" train digits --device cuda --quiet) nccl=nccl host=shm over='over NCCL'
  [ -n "$emulated" ] && nccl=threads host=threads over='as threads'
  step "digits, 1 rank $over" 30 env BRIGADE_NCCL_ONE_RANK=1 "${train[@]}" --backend $nccl --ranks 1 --epochs 2
  step "digits, 2 ranks $over" 45 env $(share_for 2) NCCL_DEBUG=WARN "${train[@]}" --backend $nccl --ranks 2 --epochs 1 --timeout 20
  step 'digits, 2 ranks through memory of the host' 30 "${train[@]}" --backend $host --ranks 2 --epochs 1 --timeout 20
  step 'digits, 2 ranks, 16-mixed' 30 env $(share_for 2) "${train[@]}" --backend $nccl --ranks 2 --epochs 1 --precision 16-mixed --timeout 20
  if [ -n "$emulated" ]; then
    step 'planted faults over the stand-in for NCCL' 60 "$(program test_cuda_faults)" --test-case='2 ranks*'
  else
    "$brigade" diagnose --list 2>>"$log" | grep -oE '^ *[A-Z]+-[0-9]+' | tr -d ' ' >"$work/faults"
    each 'planted faults over NCCL' "$work/faults" planted_fault
  fi
  { list_tests test_cuda ''; list_tests test_cuda_training training/; list_tests test_cuda_bench bench/; } >"$work/tests"
  each 'unit tests' "$work/tests" unit_test
}

# --- B ---

# Of the last step, as it is.
show_output() {
  [ -s "$work/step" ] || return
  { echo; sed 's/^/    /' "$work/step" | tail -n 120; } >>"$table"
  : >"$work/step"
  head_of_table 'B, continued'
}

beside() { # PROGRAM SCRIPT
  if [ -n "$emulated" ]; then
    step "$1" 120 "$(program "$1")" --smoke
  elif [ -n "$torch" ]; then
    step "$1 beside PyTorch" 110 python3 "bench/$2" --beside "$(program "$1")"
  else
    step "$1, without PyTorch" 90 "$(program "$1")"
  fi
  show_output
}
stage_b() {
  local ranks modes=local,strict,diagnosis_off,graph
  stage B 300 'speed'
  beside bench_cuda_kernels cuda_kernels_torch.py
  beside bench_cuda_blocks cuda_blocks_torch.py
  for ranks in 1 2; do
    if [ -n "$emulated" ]; then
      step "unit tests of bench ddp" 120 "$(program test_cuda_bench)"
      break
    elif [ -n "$torch" ]; then
      step "steps of DDP, $ranks ranks, beside PyTorch" 80 env $(share_for "$ranks") python3 bench/beside_torch.py ddp --device cuda \
        --ranks "$ranks" --modes $modes --steps 20 --rounds 5 --program "$brigade"
    else
      step "steps of DDP, $ranks ranks" 60 env $(share_for "$ranks") "$brigade" bench ddp --device cuda --backend nccl --ranks "$ranks" \
        --modes $modes --rounds 20-50 --seconds 8
    fi
    show_output
  done
}

# --- C ---

# shellcheck disable=SC2317
sanitized() {
  local tool file from status most tool_log
  read -r tool file <<<"$1"
  tool_log=$work/$tool-$file.log from=$(date +%s) most=$(time_left)
  [ "$most" -ge 5 ] || { printf 'left out: no time\t0\t%s\n' "$1"; return; }
  if [ -n "$emulated" ]; then
    SIMT_ORDER=$tool timeout -k 3 "$most" "$(program test_cuda)" "--source-file=*/$file.cpp" >"$tool_log" 2>&1
  else
    BRIGADE_CUDA_ALLOC=system timeout -k 3 "$most" compute-sanitizer --tool "$tool" --error-exitcode 9 --report-api-errors no \
      "$(program test_cuda)" "--source-file=*/cuda/$file.cpp" >"$tool_log" 2>&1
  fi
  status=$?
  # What a checker has reported before it was cut off counts; that it cannot watch this device does not.
  local result=''
  if grep -qaE '^========= (Invalid|Error: |Race|Uninitialized)' "$tool_log" || [ "$status" -eq 9 ]; then
    result="FAILED: $(sed -nE 's/.*(ERROR|RACECHECK) SUMMARY: //p' "$tool_log" | tail -n 1)"
  elif [ "$status" -ne 0 ] && grep -qa 'Device not supported' "$tool_log"; then
    result='left out: device not supported'
  elif [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    result="left out: cut off at $most s"
  fi
  finish_line "$status" "$most" "$from" "$1" "$tool_log" "$result"
}
stage_c() {
  local tool file
  stage C 190 'checkers'
  local tools='racecheck memcheck initcheck'
  [ -n "$emulated" ] && tools='warps reverse random'
  if [ -z "$emulated" ] && ! command -v compute-sanitizer >/dev/null; then
    row compute-sanitizer 'left out: not installed' 0
    return
  fi
  for tool in $tools; do
    # Tests of host code have no kernels to watch.
    grep -l -E 'BRIGADE_SHARED' kernels/cuda/*.cu | xargs -n 1 basename -s .cu | while read -r file; do
      [ -e "tests/cuda/${file}_test.cpp" ] && echo "$tool ${file}_test"
    done
  done >"$work/checks"
  each checkers "$work/checks" sanitized
}

[[ $stages == *A* ]] && stage_a
[[ $stages == *B* ]] && stage_b
[[ $stages == *C* ]] && stage_c
say ''
say "$(seconds) s, $bad failed."
# What travels back has its limits; the end says most.
for file in "$log" "$failed"; do
  [ "$(stat -c %s "$file")" -le $((16 << 20)) ] || { tail -c $((15 << 20)) "$file" >"$work/end" && cp "$work/end" "$file"; }
done
gzip -f "$log"
[ -s "$failed" ] || rm -f "$failed"
has_gpu || { echo 'gpu-stages: there is no GPU here (nvidia-smi names none)' >&2; exit 2; }
[ "$bad" -eq 0 ]
