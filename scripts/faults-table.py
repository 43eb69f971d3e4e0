#!/usr/bin/env python3
"""docs/reference/faults.md from the results of `brigade diagnose --all --json FILE` (one file per backend and number of ranks).

    scripts/faults-table.py RESULT.json... > docs/reference/faults.md
    scripts/faults-table.py --torch evidence/faults_torch/results.json RESULT.json... > docs/reference/faults.md

The section on random programs is copied from docs/reference/faults-random.md, where the figures of dist/fault_fuzz_test are entered by hand.

Scored per fault, as far as a run can tell: 1 detected, 2 in time (the replicas were still equal when the error came, or a
warning came before the step), 3 on every rank that is not at fault, with one text, 4 right parameters, 5 right ranks,
6 right cause, 7 file:line, 8 the advised fix works. The harness (lab/faults/diagnosis.cpp) compares 3 to 8 with the
expectation that stands in the fault's file, and a row passes only if all of them hold. PyTorch's cells are those of
evidence/faults_torch, which scores 1 to 7 alike.
"""
import argparse
import csv
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent.parent
LETTERS = {
    "S": "silent, the ranks differ", "s": "silent, the ranks agree on wrong numbers", "L": "an error after a wrong step",
    "E": "an error in the iteration of the fault", "X": "abort or lost connection", "H": "the time-out", "P": "right but wasteful",
    "W": "a warning", "ok": "right, and nothing said", "–": "a rank that said nothing", "·": "the rank that failed by design",
    "n.m.": "not measured",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--torch")
    parser.add_argument("--random", default=HERE / "docs/reference/faults-random.md", help="what dist/fault_fuzz_test found, for the end")
    given = parser.parse_args()
    runs = [json.load(open(name)) for name in given.results]
    old = dict(csv.reader(open(HERE / "docs/reference/faults-pytorch-1.13.csv")))
    torch = json.load(open(given.torch)) if given.torch else None
    rows = {}
    for run in runs:
        for row in run["results"]:
            rows.setdefault(row["id"], []).append(row)

    faults = [r for r in rows.values() if not r[0]["control"]]
    controls = [r for r in rows.values() if r[0]["control"]]
    good = lambda group: sum(all(row["passed"] or row["skipped"] for row in each) for each in group)
    print("# Planted faults and their verdicts\n")
    print("Made by `scripts/faults-table.py` from `brigade diagnose --all --json`. Each row is a small training step in")
    print("`lab/faults/` that goes wrong in a known way, or a control that must not be reported.\n")
    where = sorted({(row["backend"], row["ranks"]) for each in rows.values() for row in each if row["id"] != "COL-13"})
    print(f"Runs: {', '.join(f'{b} on {n} ranks' for b, n in where)}. ")
    print(f"Faults whose verdict is as expected in every run: {good(faults)} of {len(faults)}; "
          f"controls without a report: {good(controls)} of {len(controls)}.\n")
    print("A fault counts as expected only when every rank that is not at fault reports it, with the right kind, parameters,")
    print("ranks, cause and line of the planted file, and when the same steps with the advised fix run right.\n")
    print("Points, of 8: detected; in time (the replicas were still equal when the error came, or a warning came before the")
    print("step); on every rank that is not at fault; parameters; ranks; cause; line; the fix. Of 7 where *in time* has no meaning:")
    print("the group was gone, or nothing had been computed yet.\n")
    head = ["id", "what goes wrong", "verdict", "cause", "as expected", "points"]
    if torch:
        head += ["PyTorch " + torch["version"] + " OFF", "INFO", "DETAIL"]
        print(f"PyTorch {torch['version']}: `evidence/faults_torch/run.py`, {torch['backend']}, 2 ranks, {torch['date']}; the columns are values "
              "of TORCH_DISTRIBUTED_DEBUG;")
        print("what it said stands in [faults-torch.md](faults-torch.md). Points of 7: the same without the fix. Letters, one for all ranks or one "
              "for each: "
              + "; ".join(f"{k} {v}" for k, v in LETTERS.items()) + ".")
        for level in torch["levels_that_crash_as_shipped"]:
            print(f"At {level} this build of PyTorch dies in the constructor of DistributedDataParallel, without a fault too; the column was "
                  "measured with that call left out.")
        print()
    head.append("PyTorch 1.13")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for key in sorted(rows):
        each = rows[key]
        first = next((row for row in each if row["verdicts"]), each[0])
        if first["control"]:
            verdict, cause, in_time = "(control)", "", ""
        else:
            v = first["verdicts"][0]
            severity = "" if v["severity"] == "error" else f" ({v['severity']})"
            verdict = v["kind"] + severity
            cause = v["cause"]["kind"]
            known = {row["in_time"] for row in each} - {None}
            in_time = "-" if not known else "yes" if known == {True} else "no"
        ran = [row for row in each if not row["skipped"]]
        passed = f"{sum(row['passed'] for row in ran)}/{len(ran)} runs"
        points = ""
        if not first["control"]:
            of = 7 if in_time == "-" else 8
            points = f"{of if in_time != 'no' else of - 1}/{of}" if all(row["passed"] for row in ran) else "-"
        line = [key, first["title"], verdict, cause, passed, points]
        if torch:
            cells = torch["rows"].get(key, {})
            line += [cells.get(level, "") for level in ("OFF", "INFO", "DETAIL")]
        line.append(old.get(key, ""))
        print("| " + " | ".join(line) + " |")
    print("\n" + open(given.random).read(), end="")


if __name__ == "__main__":
    main()
