"""Starts the ranks of one row as processes, with a short time-out, and collects what each of them reported.

torch is imported once, here, and each rank is a fork of this process: a run costs milliseconds instead of an import.
Nothing of autograd or of the process group exists before the fork. A rank leaves behind: progressN (iteration and steps,
rewritten at each change, so that it survives an abort), resultN (exception, traceback, final state), stderrN.
"""
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

from job import Job, Planted, Row

TIME_OUT = 5.0  # of the process group, in seconds
LINGER = TIME_OUT + 2  # a rank that has finished stays alive that long for the others
GRACE = 0.5  # a rank that raised needs a moment to die, as any Python process
DEADLINE = 40.0  # a rank still alive after that is killed and counts as hung
CRASHING_LEVELS = set()  # filled by run_all


def write(folder, name, value):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        json.dump(value, file)
    os.replace(path + ".new", path)


def read(folder, name, default):
    try:
        with open(os.path.join(folder, name)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return default


def run_rank(row, level, rank, folder):
    """The body of a rank's process. Returns its exit status."""
    output = os.open(os.path.join(folder, "stderr%d" % rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.alarm(int(DEADLINE) + 5)  # should the parent be gone by then
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
    dist.set_debug_level_from_env()
    leave_out_the_logger(level)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=rank, world_size=row.world,
                            timeout=timedelta(seconds=TIME_OUT))
    dist.barrier()
    job = Job(rank, row.world, folder)
    result = {"error": None, "planted": False}
    try:
        row.function(rank, row.world, job)
    except Planted as error:
        result.update(error=str(error), planted=True, type="Planted")
    except Exception as error:  # what PyTorch reports
        result.update(error=str(error), type=type(error).__name__, traceback=traceback.format_exc())
    sys.stderr.flush()
    try:
        result.update(state=job.state(), checks=job.checks, measures=job.measures)
    except Exception:  # a state that cannot be read must not hide the report
        result["state_error"] = traceback.format_exc()
    write(folder, "result%d" % rank, result)
    if result["error"] is not None:
        time.sleep(GRACE)
        return 1
    end = time.monotonic() + LINGER
    while time.monotonic() < end and not all(os.path.exists(os.path.join(folder, "result%d" % r)) for r in range(row.world)):
        time.sleep(0.02)
    return 0


def crashes_without_fault(level, tries=8):
    """Whether a plain wrapper ends by a signal at this debug level, with no fault in the program.

    PyTorch 2.15 does at DETAIL with gloo, in Logger.set_construction_data_and_log; not every time.
    """
    return any(crashes_once(level) for _ in range(tries))


def crashes_once(level):
    def wrap(rank, world, job):
        job.wrap(torch.nn.Linear(2, 2))

    folder = tempfile.mkdtemp(prefix="faults_torch_")
    try:
        run = Run(Row("plain", wrap, world=1), level, folder + "/run")
        while not run.poll():
            time.sleep(0.01)
        return run.status[0] < 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def leave_out_the_logger(level):
    """Call in a rank: construction data are not logged, so that the other checks of this debug level can work."""
    if level in CRASHING_LEVELS:
        dist.Logger.set_construction_data_and_log = lambda *arguments: None


class Run:
    """One row at one debug level."""

    def __init__(self, row, level, folder):
        self.row, self.level, self.folder = row, level, folder
        os.makedirs(folder)
        self.start = time.monotonic()
        self.pids = {}
        self.status = {}  # rank -> exit status as subprocess gives it: negative for a signal
        self.killed = set()
        for rank in range(row.world):
            pid = os.fork()
            if pid == 0:
                status = 70
                try:
                    status = run_rank(row, level, rank, folder)
                except BaseException:
                    write(folder, "setup%d" % rank, traceback.format_exc())
                finally:
                    os._exit(status)
            self.pids[rank] = pid

    def poll(self):
        """True when every rank has ended."""
        late = time.monotonic() - self.start > DEADLINE
        for rank, pid in list(self.pids.items()):
            if late and rank not in self.killed:
                self.killed.add(rank)
                os.kill(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self.pids[rank]
                self.status[rank] = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return not self.pids

    def kill(self):
        for pid in self.pids.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.pids = {}

    def collect(self):
        ranks = []
        for rank in range(self.row.world):
            progress = read(self.folder, "progress%d" % rank, {"iteration": 0, "steps": {}, "stderr_at_step": {}})
            result = read(self.folder, "result%d" % rank, {"error": None, "planted": False, "missing": True})
            with open(os.path.join(self.folder, "stderr%d" % rank), "rb") as file:
                stderr = file.read()
            at_step = {int(i): stderr[:size].decode(errors="replace") for i, size in progress["stderr_at_step"].items()}
            ranks.append({
                "rank": rank, "status": self.status[rank], "hung": rank in self.killed, "iteration": progress["iteration"],
                "steps": {int(i): n for i, n in progress["steps"].items()}, "stderr": stderr.decode(errors="replace"),
                "stderr_before_step": at_step, "setup_error": read(self.folder, "setup%d" % rank, None), **result})
        return {"id": self.row.id, "level": self.level, "seconds": round(time.monotonic() - self.start, 1), "ranks": ranks}


def run_all(rows, levels, jobs, folder, progress):
    """Runs every row at every level, some at a time; returns the collected runs in order."""
    CRASHING_LEVELS.update(level for level in levels if crashes_without_fault(level))
    waiting = [(row, level) for row in rows for level in levels]
    order = {(row.id, level): index for index, (row, level) in enumerate(waiting)}
    running, collected = [], []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                row, level = waiting.pop(0)
                running.append(Run(row, level, os.path.join(folder, row.id + "-" + level)))
            for run in list(running):
                if run.poll():
                    running.remove(run)
                    collected.append(run.collect())
                    progress(collected[-1], len(collected), len(order))
            time.sleep(0.01)
    finally:
        for run in running:
            run.kill()
    return sorted(collected, key=lambda run: order[run["id"], run["level"]])
