#!/usr/bin/env python3
"""accepted.json takes in what it names and nothing beside it: ctest differential/accepted. Needs no PyTorch: the checks of
accepted_checks.py are replaced by ones that say yes, so what is asked here is what the rest of an entry still refuses."""
import json
import pathlib
import re
import tempfile
import types
import unittest

import accepted

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("refused here", "accepted here", "value", "dtype", "shape", "requires_grad", "presence", "crash", "not repeatable")
CHECKS = {name: lambda *_: True for name in re.findall(r'(?:^@check\ndef |"(?=\w+": (?:variants|recurrences)))(\w+)', (HERE / "accepted_checks.py").read_text(), re.MULTILINE)}


def difference(kind, op, torch_says="", ours_says=""):
    return types.SimpleNamespace(kind=kind, op=op, where="trace 0 a", torch_says=torch_says, ours_says=ours_says)


def read(entries, checks=CHECKS):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(entries, file)
        file.flush()
        return accepted.Accepted(pathlib.Path(file.name), None, checks)


LERP = {"name": "lerp promotes", "kinds": ["accepted here"], "op": "lerp", "torch": "expected dtype", "reason": "-"}
MEAN = {"name": "a mean", "kinds": ["value"], "op": "mean|{gradients}", "has": "mean", "check": "has_nan", "reason": "-"}


class Matching(unittest.TestCase):
    def test_kind_operation_and_message_must_all_fit(self):
        entries = read([LERP])
        said = "RuntimeError: expected dtype float for `end`"
        self.assertEqual(entries.find(difference("accepted here", "lerp", said)), "lerp promotes")
        self.assertIsNone(entries.find(difference("refused here", "lerp", said)))
        self.assertIsNone(entries.find(difference("accepted here", "mul", said)))
        self.assertIsNone(entries.find(difference("accepted here", "lerp", "RuntimeError: a size does not match")))

    def test_what_a_program_must_contain_and_its_check(self):
        entries = read([MEAN])
        program = {"lines": [{"op": "mean"}, {"op": "backward"}]}
        self.assertEqual(entries.find(difference("value", "gradients"), program), "a mean")
        self.assertIsNone(entries.find(difference("value", "gradients"), {"lines": [{"op": "sum"}]}))
        self.assertIsNone(entries.find(difference("value", "gradients")), "a check without a program")
        refusing = read([MEAN], {"has_nan": lambda *_: False})
        self.assertIsNone(refusing.find(difference("value", "gradients"), program))

    def test_entries_that_take_in_too_much_are_refused(self):
        for wrong in ({"torch": None}, {"op": ".*"}, {"op": "*"}, {"check": "no_such_check"}):
            entry = {key: value for key, value in {**LERP, **wrong}.items() if value is not None}
            with self.assertRaises(ValueError, msg=str(wrong)):
                read([entry])


class File(unittest.TestCase):
    def setUp(self):
        self.entries = accepted.Accepted(HERE / "accepted.json", None, CHECKS).entries

    def test_every_entry_has_a_name_of_its_own_a_reason_and_known_kinds(self):
        self.assertEqual(len({entry["name"] for entry in self.entries}), len(self.entries))
        for entry in self.entries:
            self.assertTrue(entry["reason"], entry["name"])
            self.assertLessEqual(set(entry["kinds"]), set(KINDS), entry["name"])

    def test_an_operation_that_nobody_argues_for_fails(self):
        anywhere = {entry["name"] for entry in self.entries if entry["op"] == "*"}
        self.assertEqual(anywhere, {"results are contiguous", "a view that is older than the wish for gradients has none"})
        entries = accepted.Accepted(HERE / "accepted.json", None, {**CHECKS, "lies_otherwise": lambda *_: False,
                                                                   "has_an_older_view": lambda *_: False})
        everything = {"lines": [{"op": op} for entry in self.entries for op in sorted(entry.get("has", ()))]}
        for kind in KINDS:
            for said in ("", "accepts", "RuntimeError: not implemented for 'Half'", "RuntimeError: modified by an inplace operation"):
                self.assertIsNone(entries.find(difference(kind, "no_such_operation", said, said), everything), (kind, said))

    def test_a_message_that_nobody_argues_for_fails(self):
        for entry in self.entries:
            if not {"torch", "ours"} & set(entry):
                continue
            alone = read([{**entry, "op": "|".join(sorted(entry["op"])), "has": "|".join(sorted(entry.get("has", {"a"})))}])
            program = {"lines": [{"op": op} for op in entry.get("has", {"a"})]}
            for kind in entry["kinds"]:
                found = difference(kind, sorted(entry["op"])[0], "RuntimeError: another sentence", "ShapeError: another sentence")
                self.assertIsNone(alone.find(found, program), entry["name"])

    def test_every_check_is_used(self):
        self.assertEqual(set(CHECKS), {entry["check"] for entry in self.entries if "check" in entry})


if __name__ == "__main__":
    unittest.main()
