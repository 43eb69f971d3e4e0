#!/usr/bin/env bash
# Here, beforehand: builds what runs on a GPU elsewhere, and packs it into one file that travels with the tree.
#
#   scripts/gpu-pack.sh [--arch 90] [--out .gpu/pre.tar.xz] [--build build/gpu-pack] [-- CMAKE_ARGUMENT...]
#   scripts/gpu-pack.sh --digest       what stands for the sources, and nothing else
#
# On the other side, in the tree's root: scripts/gpu-stages.sh A|B|C. It needs an NVIDIA driver, and the CUDA runtime, cuBLASLt, cuDNN and
# NCCL beside a toolkit or as Python packages; no compiler and no package of a distribution. A pack that is older than the sources is
# refused there.
# Needs nvcc 12 or later and what scripts/install-deps.sh installs; no GPU. Exit status: 0 packed, 1 it would not run there (its size,
# the C++ library), 2 wrong usage, 3 a tool is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$here"

# What the programs are made of, whatever the version control says.
digest() {
  find CMakeLists.txt cmake core autograd kernels nn optim dist amp data lab bench evidence tests -type f \
    \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cmake' -o -name CMakeLists.txt \) -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16
}

architecture=90 out=.gpu/pre.tar.xz build=build/gpu-pack
cmake_arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    --digest) digest; exit 0 ;;
    --arch | --out | --build)
      [ $# -ge 2 ] || { echo "$1 needs a value" >&2; exit 2; }
      case "$1" in --arch) architecture=$2 ;; --out) out=$2 ;; --build) build=$2 ;; esac
      shift
      ;;
    --) shift; cmake_arguments=("$@"); break ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done

# What a machine to be borrowed has: the C and C++ libraries of Ubuntu 24.04; and what travels beside the tree.
most_glibc=2.39 most_glibcxx=3.4.32 most_bytes=$((40 << 20))

PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
for tool in nvcc cmake ninja xz objdump strip ldd; do
  command -v "$tool" >/dev/null || { echo "gpu-pack: there is no $tool" >&2; exit 3; }
done

began=$SECONDS
programs=(brigade brigade-bench test_cuda test_cuda_training test_cuda_faults test_cuda_bench bench_cuda_kernels bench_cuda_blocks)
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBRIGADE_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" \
  -DBRIGADE_ONEDNN=OFF -DBRIGADE_GLOO=OFF -DBRIGADE_PNG=OFF "${cmake_arguments[@]}" >"$build/configure.log" ||
  { tail -n 20 "$build/configure.log" >&2; exit 3; }
cmake --build "$build" --parallel "$(nproc)" --target brigade_program brigade_bench_program gpu_tests gpu_benches
built=$((SECONDS - began))

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage"/{bin,lib}
for program in "${programs[@]}"; do cp "$build/bin/$program" "$stage/bin/"; done
cp "$build"/lib/libbrigade_*.so "$stage/lib/"
# The other machine has its own C library, and NVIDIA's.
LD_LIBRARY_PATH=$build/lib ldd "$stage"/bin/* "$stage"/lib/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux[^/]*|libcuda[^/]*|libcublas[^/]*|libcudnn[^/]*|libnccl[^/]*|libbrigade_[^/]*)\.so' |
  while read -r library; do cp -L "$library" "$stage/lib/"; done
strip -s "$stage"/bin/* "$stage"/lib/*
digest >"$stage/digest"
echo "$here" >"$stage/source_path"
git rev-parse --short=12 HEAD >"$stage/commit" 2>/dev/null || echo unknown >"$stage/commit"
[ -z "$(git status --porcelain 2>/dev/null)" ] || echo "$(cat "$stage/commit") and changes" >"$stage/commit"

mkdir -p "$(dirname "$out")"
tar -C "$stage" -c . | xz -T0 -6 >"$out"
bytes=$(stat -c %s "$out")
objdump -T "$stage"/bin/* "$stage"/lib/* 2>/dev/null | grep -oE 'GLIBC(XX)?_[0-9.]+' | sort -u >"$stage/symbols"
highest() { sed -n "s/^$1_//p" "$stage/symbols" | sort -V | tail -n 1; }
glibc=$(highest GLIBC) glibcxx=$(highest GLIBCXX)
echo "$out: $bytes bytes ($(du -sh "$stage" | cut -f 1) unpacked), sm_$architecture, GLIBC $glibc, GLIBCXX $glibcxx, commit $(cat "$stage/commit"); built in $built s, packed in $((SECONDS - began - built)) s"
status=0
no_later() { # NAME FOUND MOST
  [ "$(printf '%s\n' "$2" "$3" | sort -V | tail -n 1)" = "$3" ] && return
  echo "gpu-pack: the programs need $1 $2, and the machine has $3: build on an older system" >&2
  status=1
}
no_later GLIBC "$glibc" "$most_glibc"
no_later GLIBCXX "$glibcxx" "$most_glibcxx"
[ "$bytes" -le "$most_bytes" ] || { echo "gpu-pack: $bytes bytes do not travel beside the tree: at most $most_bytes" >&2; status=1; }
exit $status
