"""The shortest telling part of what the ranks of a run reported."""
import re

# The first that occurs in a rank's text is shown. Later ones say less.
TELLING = [
    r"Parameters which did not receive grad for rank \d+: [^\n]+",
    r"Parameter indices which did not receive grad for rank \d+: [^\n]+",
    r"Parameter at index \d+ (with name \S+ )?has been marked as ready twice",
    r"Your training graph has changed in this iteration",
    r"Encountered gradient which is undefined, but still allreduced by DDP reducer",
    r"Rank \d+ is running collective: .*",
    r"params\[\d+\] in this process with sizes \[.*?\] appears not to match sizes of the same param in process \d+",
    r"Rank \d+ has \d+ params, while rank \d+ has inconsistent \d+ params",
    r"Ranks? [\d, ]+ failed to pass monitoredBarrier",
    r"Rank \d+ successfully reached monitoredBarrier, but received errors",
    r"Received data size doesn't match expected size",
    r"Timed out waiting \d+ms for \w+ operation",
    r"Connection (closed|reset) by peer",
    r"did not find any unused parameters in the forward pass",
    r"Grad strides do not match bucket view strides",
    r"is not needed when a module doesn't have any parameter that requires a gradient",
]
FINGERPRINT = re.compile(r"(Rank \d+) is running collective: .*?OpType=(\w+)(?:, TensorShape=(\[[\d, ]*\]), TensorDtypes=(\w+))?")


def of_text(text):
    for telling in TELLING:
        match = re.search(telling, text, re.S if "collective" in telling else 0)
        if match and "running collective" in telling:
            sides = sorted(FINGERPRINT.findall(match.group()))
            return "; ".join(" ".join(part for part in side if part) for side in sides)
        if match:
            return re.sub(r" for rank \d+:", ":", re.sub(r"\d+ms", "… ms", match.group()))
    return text.strip().split("\n")[0][:160]


def of_ranks(texts):
    """From {rank: text}: one excerpt if all ranks say the same, else one for each."""
    parts = {rank: of_text(text) for rank, text in sorted(texts.items()) if text.strip()}
    if len(parts) > 1 and len(set(parts.values())) == 1:
        return "“%s”" % next(iter(parts.values()))
    return ", ".join("rank %d “%s”" % part for part in parts.items())


def of_levels(excerpts):
    """From {level: excerpt}: levels with the same excerpt together."""
    together = {}
    for level, excerpt in excerpts.items():
        if excerpt:
            together.setdefault(excerpt, []).append(level)
    if len(together) == 1 and len(next(iter(together.values()))) == len(excerpts):
        return next(iter(together))
    return "; ".join("%s: %s" % (", ".join(levels), excerpt) for excerpt, levels in together.items())
