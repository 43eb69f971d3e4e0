#!/usr/bin/env python3
"""The table of kinds in docs/reference/verdicts.md, from the first comment of each dist/diagnosis/kinds/*.cpp and dist/errors/kinds/*.cpp.

    scripts/verdicts-table.py            writes the table
    scripts/verdicts-table.py --check    says what is wrong with it, and changes nothing

A file is named after its kind and opens like this. A line that goes on is indented further. Several kinds that share a row stand in
the first line; then the first gives the file its name. A file of small kinds has such a comment before each of them instead.

    // slow_rank: one rank's gradients come late, several backwards in a row.
    //
    // Severity: warning
    // When: end of backward
    // Causes: `slow`
"""
import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = "docs/reference/verdicts.md"
HEAD = ["| kind | severity | when | causes |", "|---|---|---|---|"]
SEVERITIES = ["error", "warning", "note"]  # in the order of the table
KIND = re.compile(r"[a-z_]+")
FIELD = re.compile(r"(Severity|When|Causes): (.+)")


@dataclasses.dataclass
class Kinds:
    """What one file says of its kinds."""
    path: pathlib.Path
    names: list
    severity: str = ""
    when: str = ""
    causes: str = ""

    def row(self):
        names = ", ".join(f"`{name}`" for name in self.names)
        return f"| {names} | {self.severity} | {self.when} | {self.causes} |"

    def place_in_table(self):
        """By severity, then by the moment, then by name."""
        return SEVERITIES.index(self.severity.split(" ")[0]), self.when.split(",")[0].strip("`"), self.names[0]


def comments_of(text):
    """The comments that describe kinds: the first of the file, or those that begin so."""
    all_comments = [[line[2:].removeprefix(" ") for line in found.splitlines()] for found in re.findall(r"^(?://[^\n]*\n)+", text, re.M)]
    described = [lines for lines in all_comments if re.match(r"[a-z_, ]+: ", lines[0]) and any(FIELD.fullmatch(line) for line in lines)]
    return described or all_comments[:1] or [[""]]


def read(path, causes):
    """Kinds of a file, and what is wrong with its comments; `causes`: the names that are known."""
    comments = comments_of(path.read_text())
    return [read_comment(path, lines, causes, len(comments) > 1) for lines in comments]


def read_comment(path, lines, causes, is_one_of_many):
    where = path.relative_to(ROOT)
    kinds = Kinds(path, [name.strip() for name in lines[0].split(":", 1)[0].split(",")])
    is_named = is_one_of_many or kinds.names[0] == path.stem
    if ":" not in lines[0] or not all(KIND.fullmatch(name) for name in kinds.names) or not is_named:
        return kinds, [f"{where}:1: expected '// {path.stem}: what it says.', got '// {lines[0]}'"]
    field = ""
    for line in lines:
        begins = FIELD.fullmatch(line)
        if begins:
            field = begins.group(1).lower()
            setattr(kinds, field, begins.group(2))
        elif field and line.startswith("  "):
            setattr(kinds, field, f"{getattr(kinds, field)} {line.strip()}")
        else:
            field = ""
    faults = [f"{where}:1: its first comment has no line '// {name.capitalize()}: ...' (see scripts/verdicts-table.py)"
              for name in ("severity", "when", "causes") if not getattr(kinds, name)]
    if kinds.severity and kinds.severity.split(" ")[0] not in SEVERITIES:
        faults.append(f"{where}:1: unknown severity '{kinds.severity}'; write {', '.join(SEVERITIES)}")
    faults += [f"{where}:1: '{cause}' is no cause that dist/errors/verdict.cpp names"
               for cause in re.findall(r"`(\w+)`", kinds.causes) if cause not in causes]
    return kinds, faults


def all_kinds():
    """Every file's kinds, and what is wrong."""
    names = (ROOT / "dist/errors/verdict.cpp").read_text().split("kNames[] = {", 1)[1].split("}", 1)[0]
    causes = set(re.findall(r'"(\w+)"', names))
    files = sorted(ROOT.glob("dist/*/kinds/*.cpp"))
    read_files = [each for path in files for each in read(path, causes)]
    return [kinds for kinds, _ in read_files], [fault for _, faults in read_files for fault in faults]


def with_table(text, kinds):
    """The document with the table of these kinds in place of its own."""
    before, rest = text.split("\n".join(HEAD), 1)
    after = re.sub(r"\A(\n\|.*)*", "", rest)
    rows = [each.row() for each in sorted(kinds, key=Kinds.place_in_table)]
    return before + "\n".join(HEAD + rows) + after


def faults_of_table(text, kinds):
    made = with_table(text, kinds)
    if made == text:
        return []
    has, wants = text.splitlines(), made.splitlines()
    faults = [f"{DOCUMENT}: has no row '{line}'" for line in wants if line not in has]
    faults += [f"{DOCUMENT}: has a row that no file says: '{line}'" for line in has if line not in wants]
    return (faults or [f"{DOCUMENT}: its rows stand in another order"]) + ["run scripts/verdicts-table.py"]


def main() -> int:
    kinds, faults = all_kinds()
    document = ROOT / DOCUMENT
    if not faults:
        text = document.read_text()
        if "--check" in sys.argv[1:]:
            faults = faults_of_table(text, kinds)
        else:
            document.write_text(with_table(text, kinds))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
