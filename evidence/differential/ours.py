"""Runs programs in Brigade: a batch in one process, started again behind a program that kills it."""
import json
import os
import pathlib
import subprocess
import tempfile

import torch_side


class Ours:
    def __init__(self, program):
        self.program = program
        self.folder = tempfile.TemporaryDirectory()

    def run(self, programs, with_trace=False):
        """A result for each program; {"crash": why} for one that ends the process."""
        results = []
        while len(results) < len(programs):
            results += self.until_crash(programs[len(results):], with_trace)
        return results

    def until_crash(self, programs, with_trace):
        folder = pathlib.Path(self.folder.name)
        (folder / "programs").write_text("".join(json.dumps(p) + "\n" for p in programs))
        command = [self.program, "run", folder / "programs", folder / "results"] + ["--trace"] * with_trace
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 + len(programs), env={**os.environ, "OMP_NUM_THREADS": "1"})
            why = f"exit code {done.returncode}: {done.stderr.strip()}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            why = "does not end"
        # A line that has no end is of the program that did not end.
        lines = (folder / "results").read_text().split("\n")[:-1]
        results = [torch_side.decoded_result(json.loads(line)) for line in lines]
        if len(results) < len(programs):
            results.append({"crash": why or "no result"})
        return results
