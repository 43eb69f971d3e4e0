#!/usr/bin/env python3
"""What ranks are in is compared as numbers: no code searches the words that are made of them.

Fails for a search (find, starts_with, ends_with, substr, contains, a comparison with a literal) in the words of a collective, of what a
rank does, or in a description. Text is read where it is all there is: in a trace, which comes from a file.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["amp", "dist", "lab"]
# Of JSON from files.
READERS = {"lab/trace_in_words.cpp", "lab/scaler_history.cpp", "lab/reference/table.cpp"}

WORDS = r"(?:\bdescription\b|\bdescribe\([^()]*\)|\bin_words\([^()]*\)|\bactivity\b|\bactivity\.text\b|\btext_of_rank\b" \
        r"|\bhow\b|\bgone\b|\bend\.words\b|\bexit_message\b|\.state\b" \
        r"|\btopic\.purpose\.text\(\)|\bowner\.name\.text\(\)|\bhook\.text\(\)|\bpurpose\.text\(\)|\btitle\(\)|\binfo\.text\b)"
SEARCH = re.compile(
    WORDS + r"\s*\.\s*(?:find|rfind|starts_with|ends_with|substr|contains|compare|find_first_of|find_last_of)\s*\(|"
    + WORDS + r'\s*[=!]=\s*"[^"]|'
    + r'"[^"]+"\s*[=!]=\s*' + WORDS)


def main() -> int:
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh") or name in READERS:
                continue
            text = re.sub(r"//[^\n]*", "", path.read_text())
            for match in SEARCH.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{line}: {match.group(0).strip()}")
    for each in found:
        print(each)
    if found:
        print("Words are for people: compare the numbers (dist/errors/collective_info.h, rank_activity.h).")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
