#!/usr/bin/env bash
# Installs what is needed to build and test Brigade, if it is missing: with apt on Debian and Ubuntu (as root, or with sudo); elsewhere it
# lists what to install and exits with status 3.
set -euo pipefail

required=(g++ cmake ninja-build python3 libfmt-dev libhwy-dev libxxhash-dev libssl-dev zlib1g-dev doctest-dev libcli11-dev nlohmann-json3-dev git make)
# Faster builds; oneDNN for GEMM and convolution, whose CMake package demands OpenCL where it is version 2 (libdnnl-dev only recommends it);
# ranks on several hosts; pictures that recipes make; counted instructions; plots of benchmarks.
optional=(ccache libdnnl-dev ocl-icd-opencl-dev libgloo-dev libpng-dev valgrind gnuplot-nox)

list_for_humans() {
  cat >&2 <<'TEXT'
Brigade needs: a C++20 compiler (g++ 12 or later), CMake 3.25 or later, Ninja, Python 3, fmt, Highway, xxHash, OpenSSL, zlib,
doctest, CLI11, nlohmann-json; better with ccache, oneDNN (libdnnl), Gloo and libpng. Install them with your package manager, then run make again.
TEXT
}

installed() { dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  for tool in g++ cmake ninja python3; do
    command -v "$tool" >/dev/null || { list_for_humans; exit 3; }
  done
  exit 0
fi

# A tool that stands on the PATH without its package is as good.
have() {
  installed "$1" && return 0
  case "$1" in
    g++ | cmake | ninja-build | python3 | git | make | ccache) command -v "${1%-build}" >/dev/null ;;
    *) return 1 ;;
  esac
}

missing=()
for package in "${required[@]}"; do have "$package" || missing+=("$package"); done
wanted=()
for package in "${optional[@]}"; do have "$package" || wanted+=("$package"); done
[ ${#missing[@]} -eq 0 ] && [ ${#wanted[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    [ ${#missing[@]} -eq 0 ] && exit 0
    echo "Missing packages: ${missing[*]}; neither root nor sudo. Ask an administrator to run: apt-get install ${missing[*]}" >&2
    exit 3
  fi
  as_root=(sudo)
fi

echo "Installing: ${missing[*]} ${wanted[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${as_root[@]}" apt-get update -qq >"$log" 2>&1 || { cat "$log" >&2; exit 3; }
for package in "${wanted[@]}"; do
  if apt-cache show "$package" >/dev/null 2>&1; then
    missing+=("$package")
  else
    echo "Going on without $package, which this distribution does not offer." >&2
  fi
done
if [ ${#missing[@]} -gt 0 ]; then
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    { cat "$log" >&2; exit 3; }
fi
