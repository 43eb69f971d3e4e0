#!/usr/bin/env python3
"""Chaos around `brigade run`: daemons, signals, restarts, a terminal, a full disk, closed pipes, lines without an end.

    tests/chaos/launch.py --program BUILD/bin/brigade

Each case asks for the exit status and that no process of the job lives on. What the jobs start would run for an hour by itself, so a job that ends
was ended; how long that takes is not asked.
"""
import argparse
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time

from processes import MOST_SECONDS, end_what_is_left, processes_with, status_of, wait_until


class Job:
    """`brigade run -n 2` of a shell command, whose processes are known by a mark."""

    def __init__(self, program: str, command: str, *, options: tuple = (), **streams):
        mark = f"chaos-launch-{os.getpid()}-{time.monotonic_ns()}"
        self.variable = f"BRIGADE_CHAOS_RUN={mark}"
        self.output = tempfile.TemporaryFile()
        streams = {"stdin": subprocess.DEVNULL, "stdout": self.output, "stderr": subprocess.STDOUT, **streams}
        self.process = subprocess.Popen([program, "run", "-n", "2", *options, "--", "sh", "-c", command],
                                        env=dict(os.environ, BRIGADE_CHAOS_RUN=mark), **streams)

    def left(self) -> list:
        return processes_with(self.variable)

    def running(self, least: int = 3) -> None:
        """Waits until it has so many processes."""
        assert wait_until(lambda: len(self.left()) >= least, self.variable), f"{len(self.left())} processes, expected {least}"

    def told(self) -> bytes:
        self.output.seek(0)
        return self.output.read()

    def end(self, status) -> bytes:
        """The output, after an end with this status (None: whichever); throws for anything else."""
        found = status_of(self.process, self.variable)
        left = end_what_is_left(self.variable)
        output = self.told()
        assert found is not None, f"still runs, and nothing moves, or it has for {MOST_SECONDS} s: {output[-2000:]}"
        assert not left, f"left over: {len(left)} processes: {output[-2000:]}"
        assert status is None or found == status, f"status {found}, expected {status}: {output[-2000:]}"
        return output


# Each leaves the session of its rank, one of them twice, before the rank goes on.
DAEMON = "(setsid sh -c 'echo up; exec sleep 3600' &) | read up"
TWICE = "(setsid sh -c 'setsid sleep 3600 & echo up' &) | read up"
DEAF = "(setsid sh -c 'trap \"\" TERM INT HUP; echo up; sleep 3600; sleep 3600' &) | read up"


def daemons_end_with_the_job(program: str) -> None:
    for daemon in (DAEMON, TWICE, DEAF):
        with tempfile.TemporaryFile() as output:
            Job(program, f"{daemon}; echo ended", stdout=output, stderr=output).end(0)
            output.seek(0)
            text = output.read()
            assert text.count(b"ended\n") == 2, text
            assert b"brigade run: ended what ranks had left running: " in text and b"process " in text, text


def daemons_end_with_a_job_that_fails_or_is_told_to_end(program: str) -> None:
    Job(program, f"{DAEMON}; exit 7").end(7)
    for number in (signal.SIGINT, signal.SIGTERM):
        job = Job(program, f"{DAEMON}; sleep 3600; true")
        job.running(7)
        job.process.send_signal(number)
        job.end(128 + number)


def daemons_end_with_a_killed_launcher(program: str) -> None:
    for daemon in (DAEMON, TWICE, DEAF):
        job = Job(program, f"{daemon}; sleep 3600; true")
        job.running(7)
        job.process.kill()
        job.end(-signal.SIGKILL)


def daemons_end_with_a_killed_guardian(program: str) -> None:
    Job(program, f"{DAEMON}; if [ $RANK = 0 ]; then kill -9 $PPID; fi; sleep 3600; true").end(1)


def daemons_end_before_a_restart(program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = f"(setsid sh -c 'echo $$; exec sleep 3600' &) | (read daemon; echo $daemon > {folder}/$RANK); exit 1"
        Job(program, f'if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then {first}; fi; ! kill -0 $(cat {folder}/$RANK)',
            options=("--max-restarts", "1")).end(0)


def other_processes_live_on(program: str) -> None:
    # Of the same session, parent and program as the launcher, and of another job.
    other = subprocess.Popen(["sleep", "3600"])
    job = Job(program, "sleep 3600; true")
    try:
        job.running(5)
        Job(program, f"{DAEMON}; exit 3").end(3)
        assert other.poll() is None and len(job.left()) >= 5, (other.poll(), job.left())
    finally:
        other.kill()
        other.wait()
        job.process.terminate()
        job.end(128 + signal.SIGTERM)


def a_signal_ends_a_job_that_tells_nobody_of_its_restart(program: str) -> None:
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        job = Job(program, "exit 5", stdout=subprocess.DEVNULL, stderr=writer, options=("--max-restarts", "3"))
        job.running(1)
        time.sleep(0.5)
        assert job.process.poll() is None
        job.process.send_signal(signal.SIGTERM)
        job.end(128 + signal.SIGTERM)
    finally:
        os.close(reader)
        os.close(writer)


def signals_end_the_job_and_do_not_restart_it(program: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        job = Job(program, "echo started; sleep 3600", options=("--max-restarts", "3"))
        job.running(5)
        job.process.send_signal(number)
        assert job.end(128 + number).count(b"started") <= 2


def a_killed_launcher_leaves_nothing(program: str) -> None:
    job = Job(program, "sleep 3600; true")
    job.running(5)
    job.process.kill()
    job.end(-signal.SIGKILL)


def restarts_end_with_the_first_good_attempt(program: str) -> None:
    output = Job(program, 'echo "attempt $TORCHELASTIC_RESTART_COUNT"; test "$TORCHELASTIC_RESTART_COUNT" = 1',
                 options=("--max-restarts", "3")).end(0)
    assert b"attempt 1" in output and b"attempt 2" not in output, output


def a_rank_that_reads_the_terminal_finds_its_end(program: str) -> None:
    ours, theirs = pty.openpty()
    try:
        Job(program, "cat; echo read", stdin=theirs, start_new_session=True).end(0)
    finally:
        os.close(ours)
        os.close(theirs)


def a_full_disk_is_told(program: str) -> None:
    with open("/dev/full", "wb") as full:
        Job(program, "echo line", stdout=full, stderr=subprocess.DEVNULL).end(3)


def a_closed_pipe_ends_the_job(program: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        Job(program, "echo line; sleep 3600", stdout=writer, stderr=subprocess.DEVNULL).end(-signal.SIGPIPE)
    finally:
        os.close(writer)


def a_signal_ends_a_job_whose_output_nobody_reads(program: str) -> None:
    for options in ((), ("--no-prefix",)):
        reader, writer = os.pipe()
        try:
            job = Job(program, "yes", stdout=writer, stderr=writer, options=options)
            job.running(4)
            time.sleep(0.3)
            job.process.send_signal(signal.SIGTERM)
            job.end(128 + signal.SIGTERM)
        finally:
            os.close(reader)
            os.close(writer)


def a_signal_ends_a_job_that_writes_all_the_time(program: str) -> None:
    with open("/dev/null", "wb") as nothing:
        job = Job(program, "yes", stdout=nothing)
        job.running(4)
        job.process.send_signal(signal.SIGINT)
        job.end(128 + signal.SIGINT)


def a_line_without_an_end_arrives(program: str) -> None:
    output = Job(program, "head -c 20000000 /dev/zero | tr '\\0' a", options=("--no-prefix",)).end(0)
    assert output.count(b"a") >= 40_000_000, output.count(b"a")


CASES = [daemons_end_with_the_job, daemons_end_with_a_job_that_fails_or_is_told_to_end, daemons_end_with_a_killed_launcher,
         daemons_end_with_a_killed_guardian, daemons_end_before_a_restart, other_processes_live_on,
         a_signal_ends_a_job_that_tells_nobody_of_its_restart, signals_end_the_job_and_do_not_restart_it, a_killed_launcher_leaves_nothing,
         restarts_end_with_the_first_good_attempt, a_rank_that_reads_the_terminal_finds_its_end, a_full_disk_is_told,
         a_closed_pipe_ends_the_job, a_signal_ends_a_job_whose_output_nobody_reads, a_signal_ends_a_job_that_writes_all_the_time,
         a_line_without_an_end_arrives]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program brigade")
    options = parser.parse_args()
    failures = 0
    for case in CASES:
        start = time.monotonic()
        try:
            case(options.program)
            print(f"good:   {case.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
        except AssertionError as error:
            failures += 1
            print(f"FAILED: {case.__name__}: {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
