#!/usr/bin/env python3
"""Checks docs/reference/cookbook.md: its index, the faults and forms that it names, the phrases of PyTorch that errors keep, and what it prints.

    scripts/check-cookbook.py build/cpu/bin/brigade

A block that begins with `$ brigade ...` is the start of what that command prints, with `...` for what is left out. It is compared with the
command's own output; line breaks, line numbers of files, times and process numbers do not count. What no command prints is compared by
tests/lab/cookbook_test.cpp.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/cookbook.md"
FAULT = re.compile(r"\b(?:UNU|TWI|DIV|SCL|COL|AMP|BUF|PERF|OK)-\d+\b")
FORM = re.compile(r"brigade train ([\w-]+) --form ([\w-]+)")
BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```$", re.M | re.S)
ROW = re.compile(r"^\| (.+?) \| \[.+?\]\(#([\w-]+)\) \|$", re.M)
# The sources that keep PyTorch's words, and how the phrases begin there; the scaler's stand in tests/amp/traces.json.
KEPT = {
    "dist/diagnosis/report.cpp": ["Expected to have finished reduction in the prior iteration before starting a new one",
                                  "Your training graph has changed in this iteration",
                                  "Parameters which did not receive grad for rank",
                                  "Parameter indices which did not receive grad for rank"],
    "dist/checks/model.cpp": ["DDP expects same model across all ranks"],
    "autograd/gathered_graph.cpp": ["Trying to backward through the graph a second time"],
    "autograd/backward.cpp": ["of tensors does not require grad and does not have a grad_fn",
                              "grad can be implicitly created only for scalar outputs"],
    "autograd/node.cpp": ["one of the variables needed for gradient computation has been modified by an inplace operation"],
}


def squeezed(text: str) -> str:
    """One line, without what changes from run to run."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"(\.cpp|\.h):\d+", r"\1:LINE", text)
    text = re.sub(r"\bline \d+", "line LINE", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", r"TIME \2", text)
    return re.sub(r"process \d+", "process N", text)


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def faults_of_index(text: str) -> list[str]:
    body = text[text.index("\n## "):]
    headings = re.findall(r"^## (.+)$", text, re.M)
    rows = ROW.findall(text[:text.index("\n## ")])
    wrong = [f"the index leads to #{to}, which no heading has" for _, to in rows if to not in map(anchor, headings)]
    wrong += [f"no row of the index leads to '{heading}'" for heading in headings if anchor(heading) not in {to for _, to in rows}]
    sections = dict(zip(map(anchor, headings), re.split(r"^## .+$", body, flags=re.M)[1:]))
    for phrase, to in rows:
        phrase = phrase.replace("`", "")
        heading = next((each for each in headings if anchor(each) == to), "")
        entry = re.sub(r"\s+", " ", (heading + " " + sections.get(to, "")).replace("`", ""))
        if phrase not in entry:
            wrong.append(f"'{phrase}' of the index does not stand in its entry")
    return wrong + ([] if len(rows) >= 20 else [f"{len(rows)} rows in the index"])


def faults_of_phrases(text: str) -> list[str]:
    text = re.sub(r"\s+", " ", text.replace("`", ""))
    wrong = []
    for source, phrases in KEPT.items():
        joined = re.sub(r'"\s*"', "", (ROOT / source).read_text())
        wrong += [f"{source} no longer says '{phrase}'" for phrase in phrases if phrase not in joined]
        wrong += [f"'{phrase}', which {source} keeps, is missing" for phrase in phrases if phrase not in text]
    errors = re.findall(r'"error":\s*("(?:[^"\\]|\\.)*")', (ROOT / "tests/amp/traces.json").read_text())
    for error in sorted(set(map(json.loads, errors))):
        if re.sub(r"\s+", " ", error) not in text:
            wrong.append(f"an error of tests/amp/traces.json is missing: {error}")
    return wrong + ([] if errors else ["tests/amp/traces.json has no errors"])


def faults_of_output(block: str, program: str) -> list[str]:
    command, _, excerpt = block.partition("\n")
    ran = subprocess.run([program, *command.split()[2:]], capture_output=True, text=True, timeout=300, check=False)
    printed = squeezed(ran.stdout + ran.stderr)
    at = 0
    for piece in map(str.strip, squeezed(excerpt).split("...")):
        found = printed.find(piece, at)
        if found < 0:
            return [f"`{command[2:]}` does not print: {piece}"]
        at = found + len(piece)
    return []


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    program = sys.argv[1]
    text = PAGE.read_text()
    lists = [subprocess.run([program, *command], capture_output=True, text=True, check=True).stdout
             for command in (["diagnose", "--list"], ["train", "--list"])]
    planted = set(FAULT.findall(lists[0]))
    forms, recipe = set(), ""
    for line in lists[1].splitlines():
        name = line.split()[0] if line.strip() else ""
        if line.startswith("  "):
            forms.add((recipe, name))
        else:
            recipe = name
    wrong = [f"{fault} is no planted fault" for fault in sorted(set(FAULT.findall(text)) - planted)]
    wrong += [f"{recipe} has no form {form}" for recipe, form in sorted(set(FORM.findall(text)) - forms)]
    wrong += faults_of_index(text) + faults_of_phrases(text)
    blocks = [block for block in BLOCK.findall(text) if block.startswith("$ brigade ")]
    for block in blocks:
        wrong += faults_of_output(block, program)
    for each in wrong:
        print(f"docs/reference/cookbook.md: {each}")
    print(f"{len(set(FAULT.findall(text)))} faults, {len(blocks)} outputs, {len(wrong)} wrong")
    return 1 if wrong or len(blocks) < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
