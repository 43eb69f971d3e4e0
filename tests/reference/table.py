"""The table of cases, read from cases/*.json (README.md says how rows look). lab/reference/table.cpp reads the same files."""
import json
import pathlib
import re
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {"default": ["float64", "float32"], "all": ["float64", "float32", "float16", "bfloat16"], "autocast": ["float16", "bfloat16"]}
ROW_KEYS = {"name", "inputs", "args", "dtypes", "double", "native", "autocast", "bound", "reason"}


@dataclass
class Input:
    """"uniform(-1,1) [2,3] fixed transposed": how it is filled, its sizes, and words about it."""

    fill: str
    arguments: list
    sizes: list
    words: set

    LAYOUTS = {"transposed", "sliced", "expanded"}

    @staticmethod
    def parse(text):
        if text == "none":
            return None
        match = re.fullmatch(r"(\w+)(?:\(([^)]*)\))? \[([\d,]*)\]((?: \w+)*)", text)
        if not match:
            raise ValueError(f"cannot read the input '{text}'; expected for example 'uniform(-1,1) [2,3] fixed transposed'")
        fill, arguments, sizes, words = match.groups()
        words = set(words.split())
        unknown = words - Input.LAYOUTS - {"fixed", "float32", "float64", "lower"}
        if unknown:
            raise ValueError(f"unknown words {unknown} in the input '{text}'")
        return Input(fill, [float(a) for a in arguments.split(",")] if arguments else [],
                     [int(s) for s in sizes.split(",")] if sizes else [], words)


@dataclass
class Case:
    """One row in one dtype."""

    family: str
    op: str
    row: dict
    dtype: str

    @property
    def id(self):
        return f"{self.op}/{self.row['name']}/{self.dtype}"

    def description(self):
        """What the fixture says about itself; `check` compares it with the table."""
        return {"op": self.op, "dtype": self.dtype, **{k: v for k, v in self.row.items() if k != "dtypes"}}


def family_cases(path):
    cases = []
    for group in json.loads(path.read_text()):
        for op in group["ops"]:
            for row in group["rows"]:
                unknown = set(row) - ROW_KEYS
                if unknown:
                    raise ValueError(f"{path.name}: {op}: unknown keys {unknown} in the row '{row.get('name')}'")
                dtypes = row.get("dtypes", "autocast" if "autocast" in row else "default")
                for dtype in DTYPES[dtypes] if isinstance(dtypes, str) else dtypes:
                    cases.append(Case(path.stem, op, row, dtype))
    seen = set()
    for case in cases:
        if case.id in seen:
            raise ValueError(f"{path.name}: {case.id} stands there twice")
        seen.add(case.id)
    return cases


def families():
    return {path.stem: family_cases(path) for path in sorted((HERE / "cases").glob("*.json"))}
