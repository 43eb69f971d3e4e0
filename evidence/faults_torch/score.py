"""Turns what the ranks of a run reported into an outcome letter and a score. The rules are written in README.md."""
import inspect
import math
import os
import re
import sys

from job import ALL

TRANSPORT = re.compile(r"connection closed|connection reset|broken pipe|connection refused|socket closed|connect.*(failed|error)|"
                       r"read error|write error|preamble|gloo::EnforceNotMet|enforce fail", re.I)
TIME_OUT = re.compile(r"timed? ?out|failed to pass monitoredBarrier|monitoredBarrier", re.I)
ABOUT_THE_PROGRAM = re.compile(r"\bparam|mismatch|backward|gradient|shape|dtype|monitoredBarrier|inplace|"
                               r"scale|inf checks|step\(\)|FP16", re.I)

# Fixed texts that list causes which are the same for every fault: a list of everything is no cause.
FIXED_TEXTS = [
    r"This error indicates that your module has parameters that were not used in producing loss\..*?(?=Parameter|$)",
    r"This error is caused by one of the following reasons:.*?(?=Parameter at index|$)",
]
# Printed by every run, whatever the program does.
NOISE = re.compile(r"^\s*$|Rank \d+ is connected to \d+ peer ranks|destroy_process_group|hostname|NumPy|numpy|socket\.cpp|FileStore", re.I)


def without_stack(text):
    """Without the C++ stack that may follow a text."""
    text = re.split(r"\nException raised from|\nC\+\+ CapturedTraceback", text)[0]
    return "\n".join(line for line in text.splitlines() if not re.match(r"\s*(frame )?#\d+", line))


def fault_lines(row):
    """(file name, line) of each line marked '# FAULT id', in the file of the family and in models.py."""
    found = []
    for module in (row.module, "models"):
        path = inspect.getsourcefile(sys.modules[module])
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if re.search(r"# FAULT " + re.escape(row.id) + r"\b", line):
                    found.append((os.path.basename(path), number))
    return found


def name_pattern(name):
    if name.startswith("re:"):
        return re.compile(name[3:], re.I)
    return re.compile(r"(?<![\w.])(module)?\.?" + re.escape(name) + r"(?![\w.])")  # a parameter of the root is called ".w"


def names_rank(text, rank):
    return re.search(r"\b(ranks?|process)\W{0,3}(\d+,\s*)*%d\b|\[%d\]: params" % (rank, rank), text, re.I) is not None


def raising_line(row, rank):
    """(file name, line) of the innermost frame of the program, in the traceback of a rank; None without a traceback."""
    frames = re.findall(r'File "(?:.*/)?([\w.]+)", line (\d+)', rank.get("traceback") or "")
    mine = [(file, int(line)) for file, line in frames if file in (row.module + ".py", "models.py")]
    return mine[-1] if mine else None


def outcome_of_rank(row, rank):
    """The letter of one rank: E, L, X, H, or '' for a rank that reported nothing; '·' for the rank that is the fault itself."""
    if rank["planted"] or (rank["status"] == -9 and not rank["hung"]):
        return "·"
    if rank["hung"]:
        return "H"
    if rank["status"] < 0:
        return "X"
    if rank["error"] is None:
        return ""
    text = without_stack(rank["error"])
    if TIME_OUT.search(text):
        return "H"
    if TRANSPORT.search(text) and not ABOUT_THE_PROGRAM.search(TRANSPORT.sub("", text.split("\n")[0])):
        return "X"
    stepped = not row.step_is_right and any(i >= row.iteration and n for i, n in rank["steps"].items())
    late = rank["iteration"] > row.iteration or stepped
    return "L" if late else "E"


def compare_state(ranks):
    """(equal, largest difference, names that differ) over the ranks that left a state; equal is None with fewer than two."""
    states = [rank["state"] for rank in ranks if rank.get("state")]
    if len(states) < 2:
        return None, 0.0, []
    worst, different = 0.0, []
    for name in states[0]:
        for other in states[1:]:
            mine, theirs = states[0][name], other.get(name)
            if mine is None or theirs is None or len(mine) != len(theirs):
                different.append(name)
                continue
            if repr(mine) == repr(theirs):
                continue
            different.append(name)
            gaps = [abs(a - b) for a, b in zip(mine, theirs)]
            worst = max([worst] + [gap for gap in gaps if math.isfinite(gap)])
    return not different, worst, sorted(set(different))


def warnings_of(rank):
    """What a rank printed that is neither noise nor the abort message."""
    return "\n".join(line for line in rank["stderr"].splitlines() if not NOISE.search(line))


def outcome_of_run(row, letters, equal, wrong):
    if any(letters):
        shown = [letter or "–" for letter in letters]
        return shown[0] if len(set(shown)) == 1 else "/".join(shown)
    if equal is False:
        return "S"
    if wrong:
        return "s"
    return "P" if row.slow_only else "ok"


def reported_texts(row, ranks, errors):
    """{rank: text} of the errors; of the warning that the row waits for, if there was no error."""
    if not errors:
        return {rank["rank"]: warnings_of(rank) for rank in ranks if row.warning and re.search(row.warning, rank["stderr"])}
    texts = {}
    for rank in errors:
        aborted = "\n" + rank["stderr"] if rank["status"] < 0 else ""
        texts[rank["rank"]] = without_stack((rank["error"] or "") + aborted)
    return texts


def in_time(row, ranks, errors):
    if errors:
        stepped = not row.step_is_right and any(i >= row.iteration and n for rank in ranks for i, n in rank["steps"].items())
        return not stepped and all(rank["iteration"] <= row.iteration for rank in errors)
    warned = [rank for rank in ranks if re.search(row.warning, rank["stderr"])]
    return all(re.search(row.warning, rank["stderr_before_step"].get(row.iteration, rank["stderr"])) for rank in warned)


def points_of(row, ranks, letters, errors, texts):
    """The seven points of README.md for a run in which something was reported."""
    everything = "\n".join(texts.values())
    guilty = range(row.world) if row.ranks == ALL else row.ranks
    must_speak = [rank for rank in range(row.world) if len(guilty) == row.world or rank not in guilty]
    each_speaks = row.ranks == ALL and len(texts) == row.world and set(letters) <= {"E", "L", ""}
    specific = everything
    for fixed in FIXED_TEXTS:
        specific = re.sub(fixed, "", specific, flags=re.S)
    raised = [raising_line(row, rank) for rank, letter in zip(ranks, letters) if letter in ("E", "X", "H")]
    return [int(bool(point)) for point in (
        True,
        in_time(row, ranks, errors),
        all(rank in texts for rank in must_speak),
        all(name_pattern(name).search(everything) for name in row.names),
        each_speaks or all(names_rank(everything, rank) for rank in guilty),
        re.search(row.cause, specific, re.I | re.S),
        any(place in raised or "%s:%d" % place in everything for place in fault_lines(row)))]


def score(row, run):
    ranks = run["ranks"]
    letters = [outcome_of_rank(row, rank) for rank in ranks]
    equal, difference, different = compare_state(ranks)
    wrong = sorted({check[0] for rank in ranks for check in rank.get("checks", []) if not check[1]})
    errors = [rank for rank, letter in zip(ranks, letters) if letter in ("E", "L", "X", "H")]
    outcome = outcome_of_run(row, letters, equal, wrong)
    texts = reported_texts(row, ranks, errors)
    false_report = False
    if row.legal:
        warned = {rank["rank"]: warnings_of(rank) for rank in ranks if warnings_of(rank)}
        false_report = bool(errors or warned)
        if outcome == "ok" and warned:
            outcome, texts = "W", warned
    points = points_of(row, ranks, letters, errors, texts) if texts and not row.legal else [0] * 7
    return {
        "outcome": outcome, "points": points, "score": sum(points), "false_report": false_report, "texts": texts,
        "transport_only": bool(errors) and not ABOUT_THE_PROGRAM.search("\n".join(texts.values())),
        "ranks_equal": equal, "difference": difference, "differs": different, "wrong": wrong,
        "invalid": "\n".join(rank["setup_error"] for rank in ranks if rank["setup_error"]) or None,
    }
