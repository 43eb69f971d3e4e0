#!/usr/bin/env python3
"""Budgets of size: each figure of BUDGETS stays at or below its limit, and only an edit of that table moves a limit.

    scripts/check-budget.py            what is over its limit; exit code 1
    scripts/check-budget.py --table    every figure beside its limit and its goal

A limit may go down with every change that makes something smaller; `goal` is where it is going."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = (".h", ".cpp", ".cu", ".cuh")
LIBRARY = ["core", "kernels", "autograd", "nn", "optim", "amp", "data", "dist"]
DIAGNOSIS_WORDS = re.compile(r"diagnos|verdict|advi[cs]|missed|habit|blame", re.IGNORECASE)


def files_of(*folders, without=()):
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in CODE]
    return [path for path in found if not any((ROOT / each) in path.parents for each in without)]


def lines_of(paths):
    return sum(len(path.read_text().splitlines()) for path in paths)


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def body_of(text, name):
    """What stands in the braces of `class name` or `struct name`."""
    found = re.search(rf"\b(?:class|struct) {name}(?: final)?(?: : [^{{;]*)?\s*{{", text)
    if not found:
        raise SystemExit(f"check-budget.py: no class {name}")
    depth, start = 1, found.end()
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return text[start:i]
    raise SystemExit(f"check-budget.py: class {name} does not end")


def declarations_of(body):
    """(access, declaration) of a class: the texts between the braces and semicolons of its first level."""
    access, depth, parentheses, current, found = "private", 0, 0, "", []
    for c in body:
        if depth == 0 and parentheses == 0 and c == ":" and current.strip() in ("public", "private", "protected"):
            access, current = current.strip(), ""
            continue
        depth += (c == "{") - (c == "}")
        parentheses += (c == "(") - (c == ")")
        if depth > 0 or c == "}":
            # The body of a function ends it; a class, an enum and an initializer end with a semicolon.
            if c == "}" and depth == 0 and re.search(r"\)[^=]*$", current) and not re.match(r"\s*(class|struct|enum)\b", current):
                found.append((access, current.strip()))
                current = ""
            continue
        if c == ";" and parentheses == 0:
            found.append((access, current.strip()))
            current = ""
        else:
            current += c
    return [(access, " ".join(text.split())) for access, text in found if text.strip()]


def is_function(text):
    declared = text.split(" = ")[0]
    return "(" in declared and not re.search(r"\b\w+_$", declared) and not re.match(r"(class|struct|enum|using|friend|static constexpr|typedef)\b", text)


def is_member(text):
    return not is_function(text) and not re.match(r"(class|struct|enum|using|friend|static|typedef|template)\b", text)


def declarations(path, name):
    return declarations_of(body_of(without_comments((ROOT / path).read_text()), name))


def public_functions(path, name):
    """But for constructors, the destructor and what is deleted."""
    texts = [text for access, text in declarations(path, name) if access == "public" and is_function(text)]
    return sum(1 for text in texts if not re.search(rf"(^|\s|~){name}\(|operator=\(", text) and "= delete" not in text)


def members(path, name):
    return sum(1 for _, text in declarations(path, name) if is_member(text))


def constructor_arguments(path, name):
    texts = [text for _, text in declarations(path, name) if re.match(rf"(explicit )?{name}\(", text) and "delete" not in text]
    inside = [re.sub(r"<[^<>]*>", "", text[text.index("(") + 1:text.rindex(")")]) for text in texts]
    return max(len([part for part in text.split(",") if part.strip()]) for text in inside)


def lines_with_diagnosis():
    return sum(1 for path in files_of("dist/reducer", "dist/buckets") for line in path.read_text().splitlines()
               if DIAGNOSIS_WORDS.search(line))


def reading_set():
    """The files that docs/reading.md lists after its introduction."""
    text = (ROOT / "docs/reading.md").read_text()
    links = re.findall(r"\]\(\.\./([^)]+)\)", text[text.index("\n1. "):])
    if len(links) != len(set(links)) or not links:
        raise SystemExit("check-budget.py: docs/reading.md lists a file twice, or none")
    return [ROOT / link for link in links]


def tiny(paths):
    return sum(1 for path in paths if len(path.read_text().splitlines()) < 40)


REDUCER, ROUND, STEP = "dist/reducer/reducer.h", "dist/reducer/round.h", "dist/checks/step.h"
MAIN_FILES = [ROOT / "dist/reducer" / name for name in ("reducer.cpp", "round.cpp", "outcome.cpp")]
EVERYWHERE = [*LIBRARY, "lab", "bench", "examples", "evidence", "tests"]
# What is counted, how, its limit, its goal.
BUDGETS = [
    ("lines of dist/reducer", lambda: lines_of(files_of("dist/reducer")), 2758, 1500),
    ("lines of dist/reducer and dist/buckets", lambda: lines_of(files_of("dist/reducer", "dist/buckets")), 3333, 1500),
    ("lines of reducer.cpp, round.cpp and outcome.cpp", lambda: lines_of(MAIN_FILES), 783, 800),
    ("lines of both that name diagnosis", lines_with_diagnosis, 0, 0),
    ("lines of autograd/engine.h and engine.cpp", lambda: lines_of([ROOT / "autograd/engine.h", ROOT / "autograd/engine.cpp"]), 392, 450),
    ("public functions of Reducer", lambda: public_functions(REDUCER, "Reducer"), 25, 25),
    ("members of Reducer", lambda: members(REDUCER, "Reducer"), 12, 14),
    ("public functions of Round", lambda: public_functions(ROUND, "Round"), 25, 25),
    ("members of Round", lambda: members(ROUND, "Round"), 13, 14),
    ("arguments of StepCheck's constructor", lambda: constructor_arguments(STEP, "StepCheck"), 4, 4),
    ("lines of the reading set (docs/reading.md)", lambda: lines_of(reading_set()), 5000, 5000),
    ("lines of the library", lambda: lines_of(files_of(*LIBRARY)), 97128, 80000),
    ("lines of tests", lambda: lines_of(files_of("tests")), 69846, 55000),
    ("C++ files", lambda: len(files_of(*EVERYWHERE)), 1600, 1600),
    ("C++ files under 40 lines", lambda: tiny(files_of(*EVERYWHERE)), 135, 150),
]


def main():
    wrong = 0
    for what, count, limit, goal in BUDGETS:
        figure = count()
        if "--table" in sys.argv[1:]:
            print(f"{what:50} {figure:6}  limit {limit:6}  goal {goal:6}")
        if figure > limit:
            wrong += 1
            print(f"{what}: {figure}, over the limit of {limit} (scripts/check-budget.py). Make it smaller: move a new case into a plug-in, "
                  "or merge what belongs together.")
    print(f"{len(BUDGETS)} budgets, {wrong} over their limits")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
