#!/usr/bin/env python3
"""A selection of `brigade bench` in less than ten minutes, and the tables and plots of the docs.

    bench/selection.py --program BUILD/bin/brigade --out FOLDER            measures; FOLDER/results.md is the page (make bench)
    bench/selection.py --program BUILD/bin/brigade --out FOLDER --record   measures, and keeps the results in bench/results, the plots in
                                                                           docs/plots, the tables in docs/results-cpu.md and docs/bucket-size.md
    bench/selection.py --tables                                            writes these tables again from the results that are kept

Where results of an earlier run are kept, each command compares itself with them (--baseline). Every figure stands with its processor, so results of two
machines never mix: --record replaces all or, with --only NAME, those named. Exit status: 1 when a command failed, 2 for a wrong call.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import time

from selection_tables import TABLES

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "bench" / "results"
PLOTS = ROOT / "docs" / "plots"
PAGES = [ROOT / "docs" / "results-cpu.md", ROOT / "docs" / "bucket-size.md"]
CAPS = "0.004,0.016,0.0625,0.25,1,4,16,64"
LINK = ["--backend", "threads", "--link", "100us,1GB/s", "--pin"]
# What takes turns ends after --seconds; all together stay below ten minutes on two cores.
SELECTION = {
    "allreduce": (["allreduce", "--sizes", "4K-64M:x4", "--backends", "shm,gloo", "--plain-loops", "--rounds", "5-40", "--seconds", "7"], {"--plot": "allreduce"}),
    "bucket-terms": (["bucket", "--only-terms", "--sizes", "64K-64M:x4", "--parameters", "1,100,1000", "--pin", "--seconds", "3"], {"--plot": "bucket-terms"}),
    "bucket-overlap": (["bucket", "--only-overlap", "--sizes", "4K-64M:x4", "--total", "45M", "--compute", "100", "--overlap-parameters", "62",
                        "--rounds", "5-20", "--seconds", "25"], {}),
    "bucket-overlap-small": (["bucket", "--only-overlap", "--sizes", "4K-64M:x4", "--total", "3200K", "--compute", "8", "--overlap-parameters", "400",
                              "--rounds", "5-40", "--seconds", "15"], {}),
    "ddp": (["ddp", "--modes", "local,strict,find_unused,unused10,static_graph,copies,diagnosis_off,noop", "--pin", "--seconds", "22"], {}),
    "caps": (["ddp", "--models", "many,resnet18,gpt", "--modes", "local", "--caps", CAPS, *LINK, "--rounds", "5-30", "--seconds", "45"],
             {"--plot": "step-over-cap", "--plot-overlap": "overlap-over-cap"}),
    "diagnosis": (["diagnosis", "--seconds", "25"], {}),
    "half-types": (["amp", "--cases", "4096x1024|cast |copy", "--seconds", "30"], {}),
}


def measure(program: str, name: str, out: pathlib.Path, draws: bool) -> bool:
    command, plots = SELECTION[name]
    call = [program, "bench", *command, "--json", str(out / f"{name}.json")]
    for option, plot in plots.items() if draws else ():
        call += [option, str(out / f"{plot}.svg")]
    if (KEPT / f"{name}.json").exists():
        call += ["--baseline", str(KEPT / f"{name}.json")]
    print(f"=== {name}: brigade bench {' '.join(command)}", flush=True)
    start = time.monotonic()
    try:
        status = subprocess.run(call, timeout=600).returncode
        ended = "" if status == 0 else f", exit status {status}"
    except subprocess.TimeoutExpired:
        ended = ", cut off"
    print(f"--- {time.monotonic() - start:.0f} s{ended}", flush=True)
    return not ended


def without_files(command: list) -> list:
    """The command of a result, without the files that it wrote and read."""
    kept = list(command)
    for option in ("--json", "--plot", "--plot-overlap", "--baseline"):
        if option in kept:
            at = kept.index(option)
            del kept[at:at + 2]
    return kept


def keep(name: str, out: pathlib.Path) -> None:
    result = json.loads((out / f"{name}.json").read_text())
    result["command"] = without_files(result["command"])
    # A line for each row, so that a difference of two runs can be read.
    rows = ",\n".join(json.dumps(row, sort_keys=True) for row in result.pop("results"))
    (KEPT / f"{name}.json").write_text(f'{json.dumps(result, sort_keys=True)[:-1]}, "results": [\n{rows}\n]}}\n')
    for plot in SELECTION[name][1].values():
        (PLOTS / f"{plot}.svg").write_bytes((out / f"{plot}.svg").read_bytes())


def source_of(result: dict) -> str:
    machine = result["machine"]
    text = (f"`{' '.join(without_files(result['command']))}`: {machine['cores']} cores of {machine['cpu']}, {machine['instruction_set']}, "
            f"{machine['compiler']}, commit {result['commit']}.")
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def table(name: str, folder: pathlib.Path) -> str:
    results, draw = TABLES[name]
    result = json.loads((folder / f"{results}.json").read_text())
    return f"{source_of(result)}\n\n{draw(result['results'])}"


def fill(page: pathlib.Path, folder: pathlib.Path) -> None:
    """Between `<!-- table NAME -->` and `<!-- end -->`."""
    def one(found):
        if found[1] not in TABLES:
            sys.exit(f"{page}: there is no table {found[1]}; there are {', '.join(TABLES)}")
        return f"<!-- table {found[1]} -->\n{table(found[1], folder)}\n<!-- end -->"
    page.write_text(re.sub(r"<!-- table ([a-z-]+) -->\n.*?<!-- end -->", one, page.read_text(), flags=re.S))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the program brigade")
    parser.add_argument("--out", type=pathlib.Path, help="for results, plots and the page")
    parser.add_argument("--record", action="store_true", help="keep what is measured")
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    parser.add_argument("--only", action="append", choices=list(SELECTION), help="of the selection, this one (several times)")
    options = parser.parse_args()
    if not options.tables:
        if not options.program or not options.out:
            parser.error("--program and --out are needed, or --tables")
        options.out.mkdir(parents=True, exist_ok=True)
        draws = shutil.which("gnuplot") is not None
        if not draws and options.record:
            parser.error("--record needs gnuplot (package gnuplot-nox)")
        if not draws:
            print("without plots: gnuplot is missing (package gnuplot-nox)")
        names = options.only or list(SELECTION)
        failed = [name for name in names if not measure(options.program, name, options.out, draws)]
        page = "\n\n".join(f"## {name}\n\n{table(name, options.out)}" for name, (results, _) in TABLES.items() if results in names and results not in failed)
        plots = "\n\n".join(f"![{plot.stem}]({plot.name})" for plot in sorted(options.out.glob("*.svg")))
        (options.out / "results.md").write_text(f"# Measured by make bench\n\n{page}\n\n{plots}\n")
        print(f"the page: {options.out / 'results.md'}")
        if failed:
            print(f"failed: {', '.join(failed)}", file=sys.stderr)
            return 1
        if not options.record:
            return 0
        KEPT.mkdir(exist_ok=True)
        PLOTS.mkdir(exist_ok=True)
        for name in names:
            keep(name, options.out)
    for page in PAGES:
        fill(page, KEPT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
