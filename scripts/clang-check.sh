#!/usr/bin/env bash
# Whether clang 16 takes the sources: it reads all of them, and compiles none to the end.
#
# A source that several programs compile with the same macros is read once. Headers that most sources include are precompiled, which halves the
# time; a source that does not pass with them is read again without, and that counts. An #include that a source lacks goes unnoticed here: it
# fails the build by g++.
#
# Status 3: clang++-16 is not there (Debian 12: apt-get install clang-16).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang++-16 >/dev/null || { echo "clang-check needs clang++-16; on Debian 12: apt-get install clang-16" >&2; exit 3; }
build=build/clang
mkdir -p build
cmake --preset cpu -B "$build" -DCMAKE_CXX_COMPILER=clang++-16 -DBRIGADE_WERROR=OFF -DBRIGADE_OPENMP=OFF > "$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
python3 - "$build" <<'PYTHON'
import concurrent.futures, json, os, pathlib, re, shlex, subprocess, sys, time
build = pathlib.Path(sys.argv[1]).resolve()
# What is precompiled, by folder. All of Brigade is not for those whose own names mean something else once its headers are there.
HEADERS = {"low": ["fmt/format.h", "nlohmann/json.hpp", "brigade/core/tensor.h"], "all": ["fmt/format.h", "nlohmann/json.hpp", "brigade/brigade.h"]}
HEADERS |= {f"{kind}_tests": ["doctest/doctest.h", *headers] for kind, headers in HEADERS.items()}
LOW = {"brigade_kernels", "brigade_dist", "test_kernels", "test_cuda_emulated"}
# Options about code and warnings: without them a precompiled header fits all sources.
WITHOUT = re.compile(r"-O.|-W.*|-c|-fPIC|-f(no-)?(macro-prefix-map|math-errno|trapping-math|sanitize|fp-contract)\b.*|-ffp-contract=.*")


def arguments(entry):
    words = shlex.split(entry["command"])
    words = [word for i, word in enumerate(words) if word != "-o" and words[i - 1] != "-o" and not os.path.basename(word).startswith("ccache")]
    return [word for word in words[1:] if not WITHOUT.fullmatch(word)]


parts, seen, compiles = [], set(), 0
for entry in json.loads((build / "compile_commands.json").read_text()):
    compiles += 1
    words = arguments(entry)
    macros = tuple(sorted(word for word in words if word.startswith("-D") and not word.endswith("_EXPORTS")))
    if (entry["file"], macros) in seen:
        continue
    seen.add((entry["file"], macros))
    # "CMakeFiles/test_dist.dir/..." is the program test_dist.
    target = re.search(r"CMakeFiles/([^/]+)\.dir/", entry["command"]).group(1)
    kind = ("low" if target in LOW else "all") + ("_tests" if target.startswith("test_") else "")
    parts.append((entry["file"], entry["directory"], words, kind))


def precompile(kind):
    header = build / f"{kind}.h"
    header.write_text("".join(f"#include <{name}>\n" for name in HEADERS[kind]))
    subprocess.run(["clang++-16", "-w", "-std=c++20", "-DNDEBUG", f"-I{build}/include", "-fpch-instantiate-templates", "-x", "c++-header", header,
                    "-o", build / f"{kind}.pch"], check=True)


def check(part):
    file, directory, words, kind = part
    for precompiled in (["-include-pch", build / f"{kind}.pch"], []):
        run = subprocess.run(["clang++-16", "-w", *precompiled, *words, "-fsyntax-only"], cwd=directory, capture_output=True, text=True)
        if run.returncode == 0:
            break
    return file, run.returncode, run.stderr, not precompiled


failed, again, began = 0, [], time.monotonic()
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    list(pool.map(precompile, HEADERS))
    for file, status, errors, twice in pool.map(check, parts):
        if twice:
            again.append(os.path.basename(file))
        if status != 0:
            failed += 1
            print(f"FAILED: {file}\n{errors[:4000]}", flush=True)
print(f"{len(parts)} sources ({compiles} compiles) read by clang++-16 in {time.monotonic() - began:.0f} s, {failed} failed"
      + (f"; {len(again)} of them twice: {' '.join(again)}" if again else ""))
sys.exit(failed > 0)
PYTHON
