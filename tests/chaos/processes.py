"""The processes of a job, known by a variable in their environment, and whether they get on."""
import os
import pathlib
import signal
import subprocess
import time

# A job is judged by what it does, not by how long it takes: a busy machine takes long. It hangs when none of its processes has moved for so long,
# or when it has used up what a test may take.
STALL_SECONDS = 40
MOST_SECONDS = 200


def processes_with(mark: str) -> list:
    """Those whose environment has `mark` now. One that is in exec at this moment has none, and is missing."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark.encode() in (folder / "environ").read_bytes() and " Z " not in (folder / "stat").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def moved(mark: str) -> dict:
    """Of each of these processes, the ticks of processor time that it has had."""
    found = {}
    for process in processes_with(mark):
        try:
            fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            found[process] = int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return found


def wait_until(condition, mark: str) -> bool:
    """Whether `condition` came true before the processes with `mark` came to a standstill."""
    start = last_look = last_move = time.monotonic()
    before = None
    while not condition():
        now = time.monotonic()
        if now - last_look > 1:
            last_look, state = now, moved(mark)
            if state != before:
                before, last_move = state, now
        if now - last_move > STALL_SECONDS or now - start > MOST_SECONDS:
            return condition()
        time.sleep(0.02)
    return True


def status_of(job: subprocess.Popen, mark: str):
    """The exit status of a job, whose output goes to files; None for one that hangs, which is ended."""
    if wait_until(lambda: job.poll() is not None, mark):
        return job.returncode
    job.terminate()
    if not wait_until(lambda: job.poll() is not None, mark):
        job.kill()
        job.wait()
    return None


def end_what_is_left(mark: str) -> list:
    """Those that live on although nothing moves any more, which are killed. Several looks in a row must find none: one alone may meet an exec."""
    looks_at_none = 0

    def all_gone() -> bool:
        nonlocal looks_at_none
        looks_at_none = 0 if processes_with(mark) else looks_at_none + 1
        return looks_at_none >= 3

    if wait_until(all_gone, mark):
        return []
    left = processes_with(mark)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return left
