#!/usr/bin/env bash
# Collects what Brigade needs besides a compiler, CMake and CUDA into a folder, to be carried to a machine that has no
# network and no packages: scripts/gpu-check-prepare.sh DIR. Headers of fmt, doctest, CLI11 and nlohmann-json, Highway,
# xxHash, OpenSSL and zlib; about 12 MB. CMake finds them with CMAKE_PREFIX_PATH=DIR; scripts/gpu-check.sh --deps DIR does that.
set -euo pipefail

if [ $# -ne 1 ] || [ "${1#-}" != "$1" ]; then
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [ -n "$(ls -A "$folder")" ] && [ ! -e "$folder/versions.txt" ]; then
  echo "$folder holds other things: name a new or empty folder" >&2
  exit 2
fi
compiler=${CXX:-g++}

# The folder that a header is included from: root_of fmt/core.h
root_of() {
  local found flags
  read -ra flags <<<"${CPPFLAGS:-}"
  found=$(printf '#include <%s>\n' "$1" |
    "$compiler" -std=c++20 -x c++ -M "${flags[@]}" - 2>/dev/null |
    tr ' ' '\n' | grep -m 1 "/$1\$" || true)
  [ -n "$found" ] || { echo "There is no <$1> here: run scripts/install-deps.sh first, or set CPPFLAGS=-I..." >&2; exit 3; }
  realpath "${found%"/$1"}"
}

# The number behind a macro: value_of FMT_VERSION fmt/core.h
value_of() {
  printf '#include <%s>\n%s\n' "$2" "$1" |
    "$compiler" -std=c++20 -x c++ -E -P -I"$folder/include" - 2>/dev/null | tail -n 1 | tr -d ' "'
}

# package NAME VERSION TARGET [DEFINITION]: a package whose target has the folder include/.
package() {
  local to=$folder/lib/cmake/$1
  mkdir -p "$to"
  cat >"$to/$1Config.cmake" <<TEXT
if(NOT TARGET $3)
  get_filename_component(prefix "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library($3 INTERFACE IMPORTED)
  set_target_properties($3 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "\${prefix}/include" INTERFACE_COMPILE_DEFINITIONS "${4:-}")
endif()
TEXT
  cat >"$to/$1ConfigVersion.cmake" <<TEXT
set(PACKAGE_VERSION "$2")
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
TEXT
  printf '%s %s\n' "$1" "$2" >>"$folder/versions.txt"
}

rm -rf "${folder:?}"/{include,lib,versions.txt}
mkdir "$folder"/{include,lib}

headers() { cp -RL "$(root_of "$1")/${2:-${1%%/*}}" "$folder/include/"; }
headers fmt/core.h
headers doctest/doctest.h
headers CLI/CLI.hpp
headers nlohmann/json.hpp
headers hwy/highway.h
headers zlib.h zlib.h
headers zconf.h zconf.h
headers xxhash.h xxhash.h
headers openssl/ssl.h
headers openssl/opensslconf.h # of this architecture, in a folder of its own on Debian
find "$folder/include" -name CMakeLists.txt -delete

fmt=$(value_of FMT_VERSION fmt/core.h)
package fmt "$((fmt / 10000)).$((fmt / 100 % 100)).$((fmt % 100))" fmt::fmt FMT_HEADER_ONLY=1
package doctest "$(value_of DOCTEST_VERSION_STR doctest/doctest.h)" doctest::doctest
package CLI11 "$(value_of CLI11_VERSION CLI/CLI.hpp)" CLI11::CLI11
package nlohmann_json "$(value_of 'NLOHMANN_JSON_VERSION_MAJOR.NLOHMANN_JSON_VERSION_MINOR.NLOHMANN_JSON_VERSION_PATCH' nlohmann/json.hpp)" nlohmann_json::nlohmann_json

# A shared library: programs find it through the path that CMake writes into them.
hwy=$("$compiler" -print-file-name=libhwy.so)
[ -e "$hwy" ] || { echo "There is no libhwy.so here: run scripts/install-deps.sh first" >&2; exit 3; }
cp -L "$hwy" "$folder/lib/libhwy.so.1"
ln -s libhwy.so.1 "$folder/lib/libhwy.so"
version=$(value_of HWY_MAJOR.HWY_MINOR.HWY_PATCH hwy/base.h)
case "$version" in [0-9]*) ;; *) version=1.0.0 ;; esac  # older versions do not tell
package hwy "$version" hwy::hwy
sed -i 's|^endif()|  set_target_properties(hwy::hwy PROPERTIES INTERFACE_LINK_LIBRARIES "${prefix}/lib/libhwy.so")\nendif()|' "$folder/lib/cmake/hwy/hwyConfig.cmake"

# Found by CMake's own FindOpenSSL.
crypto=$("$compiler" -print-file-name=libcrypto.so)
[ -e "$crypto" ] || { echo "There is no libcrypto.so here: run scripts/install-deps.sh first" >&2; exit 3; }
crypto=$(realpath "$crypto")
cp "$crypto" "$folder/lib/"
ln -s "${crypto##*/}" "$folder/lib/libcrypto.so"
printf 'openssl %s\n' "$(value_of OPENSSL_VERSION_STR openssl/opensslv.h)" >>"$folder/versions.txt"

# The static library, found by CMake's own FindZLIB.
zlib=$("$compiler" -print-file-name=libz.a)
[ -e "$zlib" ] || { echo "There is no libz.a here: install zlib with its static library (zlib1g-dev)" >&2; exit 3; }
cp -L "$zlib" "$folder/lib/"
printf 'zlib %s\n' "$(value_of ZLIB_VERSION zlib.h)" >>"$folder/versions.txt"

cat "$folder/versions.txt"
du -sh "$folder" | cut -f 1
