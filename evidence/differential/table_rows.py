"""The rows of the table of references, as a source of operations and of inputs that fit them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/reference"))
from table import families  # noqa: E402


def table_rows():
    """The rows of the table of references: {operation: rows}, of operations that are no writes."""
    rows = {}
    for family, cases in families().items():
        if family == "inplace":
            continue
        for case in cases:
            of = rows.setdefault(case.op, [])
            if case.row not in of:
                of.append(case.row)
    return rows


ROWS = table_rows()


def plain_unary():
    """Operations of one tensor and of nothing else."""
    unary = []
    for op, rows in ROWS.items():
        if all(len(r["inputs"]) == 1 and not r.get("args") for r in rows) and op not in ("nonzero", "t", "contiguous_of_transposed", "trace", "clone"):
            unary.append(op)
    return unary
UNARY = sorted(set(plain_unary()) | {"softplus", "elu", "celu", "gelu", "leaky_relu", "hardtanh", "hardshrink", "softshrink"})
