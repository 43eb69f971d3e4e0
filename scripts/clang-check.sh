#!/usr/bin/env bash
# Whether clang 16 takes the sources: it reads all of them, and compiles none to the end.
#
#   scripts/clang-check.sh           all
#   scripts/clang-check.sh sample    of each library and program one part, another one for each commit
#
# Status 3: clang++-16 is not there (Debian 12: apt-get install clang-16).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang++-16 >/dev/null || { echo "clang-check needs clang++-16; on Debian 12: apt-get install clang-16" >&2; exit 3; }
build=build/clang
cmake --preset cpu -B "$build" -DCMAKE_CXX_COMPILER=clang++-16 -DBRIGADE_WERROR=OFF -DBRIGADE_OPENMP=OFF > "$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
python3 - "$build" "${1:-all}" <<'PYTHON'
import collections, concurrent.futures, json, os, pathlib, re, shlex, subprocess, sys, time
build, which = sys.argv[1:]
commit = int(subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout[:8], 16)
parts = collections.defaultdict(list)
for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
    # "CMakeFiles/test_dist.dir/..." is the program test_dist.
    target = re.search(r"CMakeFiles/([^/]+)\.dir/", entry["command"]).group(1)
    parts[target].append(entry)
chosen = [entry for entries in parts.values() for entry in (entries if which == "all" else [entries[commit % len(entries)]])]


def check(entry):
    words = shlex.split(entry["command"])
    words = [word for i, word in enumerate(words) if word not in ("-c", "-o") and words[i - 1] != "-o" and not os.path.basename(word).startswith("ccache")]
    run = subprocess.run([*words, "-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], run.returncode, run.stderr


failed, began = 0, time.monotonic()
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for file, status, errors in pool.map(check, chosen):
        if status != 0:
            failed += 1
            print(f"FAILED: {file}\n{errors[:4000]}")
print(f"{len(chosen)} of {sum(map(len, parts.values()))} compiles read by clang++-16 in {time.monotonic() - began:.0f} s, {failed} failed")
sys.exit(failed > 0)
PYTHON
