#!/usr/bin/env python3
"""Keeps words out of comments of the libraries that readers stumble over. Write subject, verb, object, and the terms of the field (CONTRIBUTING.md).

    scripts/check-wording.py            names each place; exit code 1"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["core", "kernels", "autograd", "nn", "optim", "amp", "data", "dist"]
# A word, and what to write in its place.
INSTEAD = {
    r"(is|are|was|were|be|been) told": "is reported, knows",
    "anew": "again",
    "beside": "next to, with, compared with",
    "but for": "except",
    "by whose doing": "name the actor",
    "for want of": "because there is no ...",
    "in vain": "without effect, too late",
    "meanwhile": "at the same time",
    "nobody": "no rank, no caller: name it",
    "somebody": "the caller, a peer: name it",
    "stands? against": "differs from",
    "that there is not": "that does not exist",
    "whereabouts": "status",
    "whoever": "name the actor",
}
FOUND = re.compile(r"\b(" + "|".join(INSTEAD) + r")\b", re.IGNORECASE)
COMMENT = re.compile(r"(?:^|[^:\"])//(.*)")


def main():
    wrong = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                comment = COMMENT.search(line)
                # Quoted code stays as it is.
                found = FOUND.search(re.sub(r"`[^`]*`", "", comment.group(1))) if comment else None
                if found:
                    wrong += 1
                    advice = next(instead for word, instead in INSTEAD.items() if re.fullmatch(word, found.group(1), re.IGNORECASE))
                    print(f"{path.relative_to(ROOT)}:{number}: \"{found.group(1)}\": write {advice}")
    print(f"{wrong} comments with words of scripts/check-wording.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
