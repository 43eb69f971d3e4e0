"""Programs that take turns within one run, and what their times say: used by bench/beside_torch.py.

A program stays alive, reads a case a line and answers a line with the microseconds of its samples. In a round every program
runs the case once; a ratio is taken within a round, so that a machine whose speed drifts does not tilt it.
"""
import json
import math
import os
import statistics
import subprocess


def environment(threads):
    """The same for all, and fair to the peer: one pool of threads, no OPENBLAS_*, memory that glibc keeps."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    env.update({name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
    env.update({"MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_MMAP_THRESHOLD_": "4294967296"})
    return env


class Program:
    def __init__(self, command, env):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def time(self, case):
        return self.ask(case)["us"]

    def ask(self, case):
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{' '.join(self.process.args)} ended at case '{case}'")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def ratios(ours, theirs):
    """Of lists of samples, one list a round: the medians' ratio in each round."""
    return [statistics.median(a) / statistics.median(b) for a, b in zip(ours, theirs)]


def summary(rounds):
    samples = [us for each in rounds for us in each]
    return {"median": statistics.median(samples), "min": min(samples)}


def compare(case, ours, theirs):
    """One row; `ours` and `theirs` as in ratios()."""
    found = ratios(ours, theirs)
    a, b = summary(ours), summary(theirs)
    return {"case": case, "brigade_us": a, "peer_us": b, "ratio": statistics.median(found), "ratio_low": min(found),
            "ratio_high": max(found), "ratio_of_minima": a["min"] / b["min"]}


def print_header(peer, unit, about):
    print(f"{about}; median [minimum] in {unit}; ratio: median over the rounds [least - most]")
    print(f"{'case':<40} {'brigade':>22} {peer.split()[0]:>22} {'ratio':>8} {'[least - most]':>17} {'of minima':>10}")


def digits(ratio):
    return f"{ratio:.3f}" if ratio >= 0.01 else f"{ratio:.2g}"


def print_row(row, factor):
    shown = [f"{factor * x['median']:,.1f} [{factor * x['min']:,.1f}]" for x in (row["brigade_us"], row["peer_us"])]
    spread = f"[{digits(row['ratio_low'])} - {digits(row['ratio_high'])}]"
    print(f"{row['case']:<40} {shown[0]:>22} {shown[1]:>22} {digits(row['ratio']):>8} {spread:>17} "
          f"{digits(row['ratio_of_minima']):>10}", flush=True)


def geometric_mean(rows):
    return math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows))


def processor():
    """The name, and the vector instructions that matter for a comparison."""
    with open("/proc/cpuinfo") as info:
        fields = dict(map(str.strip, line.split(":", 1)) for line in info if ":" in line)
    flags = fields.get("flags", "").split()
    width = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    return f"{fields.get('model name', 'unknown')} (family {fields.get('cpu family')}, model {fields.get('model')}), {width}"
