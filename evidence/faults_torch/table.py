"""The results as a table and as counts."""
import json
import re

import excerpt
import job

CRITERIA = ["reported", "in the same iteration, before the step", "on every rank that is not at fault", "names the parameter or object",
            "names the rank", "names the cause", "names the line"]
LETTERS = {
    "S": "silent, the ranks differ", "s": "silent, the ranks agree on wrong numbers",
    "P": "right but wasteful (with points: a warning says so)",
    "L": "error after a wrong step", "E": "error in the iteration of the fault", "X": "abort or lost connection",
    "H": "error of a time-out", "W": "warning", "ok": "right, and nothing said", "–": "a rank that said nothing",
    "·": "the rank that raised or died by design",
}


def cell(result):
    """Points only where something was reported."""
    if result["false_report"]:
        return result["outcome"] + " (false)"
    return "%s %d/7" % (result["outcome"], result["score"]) if result["score"] else result["outcome"]


def cells(results, levels):
    found = {id: {level: cell(by_level[level]) for level in levels} for id, by_level in results.items()}
    found.update({id: {level: "not run" for level in levels} for id in job.SKIPPED})
    return dict(sorted(found.items()))


def summary(rows, results, levels):
    """{what is counted: {level: number}}"""
    faults = [row.id for row in rows if not row.legal]
    legal = [row.id for row in rows if row.legal]

    def count(ids, test):
        return {level: sum(bool(test(results[id][level])) for id in ids) for level in levels}

    found = {"faults": {level: len(faults) for level in levels}}
    for index, criterion in enumerate(CRITERIA):
        found[criterion] = count(faults, lambda result: result["points"][index])
    found["reported only by a time-out or a lost connection"] = count(faults, lambda result: result["transport_only"])
    found["silent (S, s, P without a warning)"] = count(faults, lambda result: not result["points"][0] and result["outcome"] != "ok")
    found["just works (ok)"] = count(faults, lambda result: not result["points"][0] and result["outcome"] == "ok")
    found["legal programs"] = {level: len(legal) for level in levels}
    found["legal programs with a wrong result, in silence"] = count(legal, lambda result: result["outcome"] in ("S", "s"))
    found["legal programs refused by an error"] = count(legal, lambda result: result["false_report"] and result["outcome"] != "W")
    found["legal programs with a needless warning"] = count(legal, lambda result: result["outcome"] == "W")
    return found


class Earlier:
    """What the files of an earlier run hold, of other rows."""

    def __init__(self, json_file=None, markdown_file=None):
        self.summary, self.cells, self.lines, self.date, self.crashing = {}, {}, [], None, set()
        if json_file:
            with open(json_file) as file:
                found = json.load(file)
            self.summary, self.cells, self.date = found["summary"], found["rows"], found["date"]
            self.crashing = set(found["levels_that_crash_as_shipped"])
        if markdown_file:
            with open(markdown_file) as file:
                self.lines = [line.rstrip("\n") for line in file if re.match(r"\| [A-Z]+-\d+", line)]

    def date_with(self, date):
        if self.date is None or date in self.date:
            return self.date or date
        later = "; ".join(re.findall(r"[\d-]{10}", self.date)[1:] + [date])
        return "%s (rows added later: %s)" % (self.date.split(" ")[0], later)

    def summary_with(self, counts):
        return {what: {level: number + self.summary.get(what, {}).get(level, 0) for level, number in by_level.items()}
                for what, by_level in counts.items()}

    def cells_with(self, cells):
        return dict(sorted({**self.cells, **cells}.items()))


def markdown(rows, results, levels, meta, earlier=Earlier()):
    lines = [
        "# Planted faults on PyTorch\n",
        "Made by `evidence/faults_torch/run.py`; how it scores stands in `evidence/faults_torch/README.md`.\n",
        "PyTorch %s, DistributedDataParallel, %s, 2 ranks (3 for COL-13), time-out of the group %g s, %s." % (
            meta["build"], meta["backend"], meta["time_out_s"], meta["date"]),
        "The columns are values of TORCH_DISTRIBUTED_DEBUG. Of two collectives that differ only the operation, the shape and the",
        "type are quoted.\n"]
    for level in meta["levels_that_crash_as_shipped"]:
        lines += [
            "At %s this PyTorch often dies of a signal in the constructor of DistributedDataParallel, in a program without a fault" % level,
            "too, when it logs the data of the construction. The column was measured with that logging left out, so it shows what",
            "the checks of the level would say; as shipped, about half of the tries that wrap a module end there.\n"]
    lines += [
        "Letters, one for all ranks or one for each: " + "; ".join("%s %s" % item for item in LETTERS.items()) + ".",
        "Points, of 7: one each for " + "; ".join(CRITERIA) + ".\n",
        "| | " + " | ".join(levels) + " |", "|---|" + "---|" * len(levels)]
    for what, counts in earlier.summary_with(summary(rows, results, levels)).items():
        lines.append("| %s | %s |" % (what, " | ".join(str(counts[level]) for level in levels)))
    lines += ["", "| id | what goes wrong | " + " | ".join(levels) + " | what PyTorch says |", "|---|---|" + "---|" * len(levels) + "---|"]
    told = list(earlier.lines)
    for row in rows:
        by_level = results[row.id]
        said = excerpt.of_levels({level: excerpt.of_ranks(by_level[level]["texts"]) for level in levels})
        title = row.title + (" (legal)" if row.legal else "")
        told.append("| %s | %s | %s | %s |" % (
            row.id, title, " | ".join(cell(by_level[level]) for level in levels), said.replace("|", "\\|")))
    lines += sorted(told)
    if job.SKIPPED:
        lines += ["", "Not run:", ""] + ["- %s: %s" % item for item in sorted(job.SKIPPED.items())]
    return "\n".join(lines) + "\n"
