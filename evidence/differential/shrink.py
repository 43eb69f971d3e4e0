"""A shorter program with the same difference."""
import compare
import torch_side


def without(program, i):
    return {"id": program["id"], "lines": program["lines"][:i] + program["lines"][i + 1:]}


def difference_of(program, theirs, ours):
    """With the line where it shows first."""
    found = compare.difference(program, theirs, ours)
    if found is not None:
        found.op = op_of(program, found)
    return found


def op_of(program, found):
    """Of the line that a difference shows at; "" when it shows in the end only."""
    words = found.where.split()
    if words[0] in ("line", "trace"):
        return program["lines"][int(words[1])]["op"]
    return words[0]


def located(program, ours):
    """The difference as it shows line by line."""
    theirs = torch_side.run(program, with_trace=True)
    return difference_of(program, theirs, ours.run([program], with_trace=True)[0])


def shrink(program, found, ours):
    """Takes lines away while a difference of the same kind, at the same operation, stays."""
    while True:
        candidates = [without(program, i) for i in reversed(range(len(program["lines"])))]
        results = ours.run(candidates, with_trace=True)
        for candidate, result in zip(candidates, results):
            still = difference_of(candidate, torch_side.run(candidate, with_trace=True), result) if candidate["lines"] else None
            if still is not None and (still.kind, still.op) == (found.kind, found.op):
                program, found = candidate, still
                break
        else:
            return program, found
