"""How a peer answers bench/beside_torch.py: it reads a case's name a line and answers, a line, what it took."""
import json
import sys
import time


def microseconds(calls, f):
    begin = time.perf_counter()
    for _ in range(calls):
        f()
    return (time.perf_counter() - begin) * 1e6 / calls


def repeated(f):
    """A sample of f: the mean of as many calls as make about a millisecond."""
    f()
    calls = min(max(int(1000 / max(microseconds(1, f), 0.01)), 1), 100000)
    return lambda: microseconds(calls, f)


def follow(sample_of, seconds):
    """sample_of(name) returns a function that returns the microseconds of one call of the case."""
    for line in sys.stdin:
        name = line.strip()
        sample = sample_of(name)
        warm_up = time.perf_counter()
        sample()
        while time.perf_counter() - warm_up < seconds / 4:
            sample()
        samples, begin = [], time.perf_counter()
        while len(samples) < 3 or (time.perf_counter() - begin < seconds and len(samples) < 10000):
            samples.append(sample())
        print(json.dumps({"case": name, "us": samples}), flush=True)
