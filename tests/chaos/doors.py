#!/usr/bin/env python3
"""Strangers where the ranks of a live `brigade run` job meet (Gloo's listeners, the local sockets over which memory is handed over): it ends
as without them, with the same result.

    tests/chaos/doors.py --program BUILD/bin/brigade --rank-program BUILD/bin/chaos_rank

They visit whatever a process of the job listens at, as soon as it does, and say nothing, hang up, or send garbage, with descriptors where these
can be sent. Strangers of another user and those that know the nonces are in dist/shm_strangers_test.
"""
import argparse
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from processes import status_of

RANKS = 3
MOST_JOBS = 8


def mark() -> str:
    """Tells this job's processes from those of others."""
    return f"DOORS_TEST={os.getpid()}"  # in their environment


def ranks_of(program: str) -> list:
    """The processes of the job that run this program."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as environment:
                ours = mark().encode() in environment.read().split(b"\0")
            if ours and os.readlink(f"/proc/{entry}/exe") == program:
                found.append(int(entry))
        except (ValueError, OSError):
            continue  # no process, or none any more
    return found


def sockets_of(processes: list) -> set:
    """Their inodes."""
    found = set()
    for process in processes:
        try:
            for entry in os.listdir(f"/proc/{process}/fd"):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process}/fd/{entry}"))
                found.update(match.groups() if match else ())
        except OSError:
            continue
    return found


def tcp_doors(processes: list) -> list:
    """Where these listen over TCP."""
    with open("/proc/net/tcp", encoding="utf-8") as table:
        rows = [line.split() for line in table if " 0A " in line]
    sockets = sockets_of(processes)
    return [(socket.AF_INET, socket.SOCK_STREAM, (socket.inet_ntoa(struct.pack("=I", int(row[1][:8], 16))), int(row[1][9:], 16)))
            for row in rows if row[9] in sockets]


def local_doors(processes: list) -> list:
    """Their local sockets that listen."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        rows = [line.split() for line in table if "@brigade-" in line]
    sockets = sockets_of(processes)
    return [(socket.AF_UNIX, socket.SOCK_SEQPACKET, "\0" + row[7][1:]) for row in rows if row[6] in sockets]


def visit(door, kept: list, numbers: random.Random) -> None:
    family, kind, address = door
    stranger = socket.socket(family, kind)
    stranger.settimeout(0.05)  # where packets of strangers are dropped
    kept.append(stranger)
    stranger.connect(address)
    words = numbers.randbytes(numbers.randint(1, 4096))
    deed = numbers.randrange(3)
    if deed == 0:
        stranger.close()
    elif deed == 1 and family == socket.AF_UNIX:
        socket.send_fds(stranger, [words], [0] * numbers.randint(1, 9))
    elif deed == 1:
        stranger.sendall(words)


def besiege(doors, options, go: str, over: threading.Event, visits: list) -> None:
    numbers = random.Random(options.seed)
    kept, ranks = [], []
    while not over.is_set():
        if len(ranks) < RANKS:
            ranks = ranks_of(os.path.realpath(options.rank_program))
        for door in doors(ranks):
            try:
                visit(door, kept, numbers)
                visits.append(door)
            except OSError:
                pass  # it is closed by now
        # These doors open when all have come.
        if len(ranks) == RANKS - 1:
            open(go, "w", encoding="utf-8").close()
        for connection in kept[:-200]:
            connection.close()
        del kept[:-200]
    for connection in kept:
        connection.close()


def job(options, backend: str, doors=None) -> tuple:
    """(exit status or None for a hang, result lines, visits, what was said) of a job with strangers at these doors; its last rank comes when the
    others are there."""
    with tempfile.TemporaryDirectory(prefix="doors-") as folder:
        go = os.path.join(folder, "go")
        if not doors:
            open(go, "w", encoding="utf-8").close()
        over, visits = threading.Event(), []
        with open(os.path.join(folder, "output"), "w+", encoding="utf-8") as output, open(os.path.join(folder, "said"), "w+", encoding="utf-8") as said:
            process = subprocess.Popen([options.program, "run", "-n", str(RANKS), "--no-prefix", "--", "sh", "-c",
                                        f'while [ $RANK = {RANKS - 1} ] && [ ! -e "$2" ]; do sleep 0.05; done; exec "$0" "$1" none 0 0 forward',
                                        options.rank_program, backend, go],
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=said,
                                       env={**os.environ, "OMP_NUM_THREADS": "1", "DOORS_TEST": str(os.getpid())})
            siege = threading.Thread(target=besiege, args=(doors, options, go, over, visits)) if doors else None
            if siege:
                siege.start()
            status = status_of(process, mark())
            over.set()
            if siege:
                siege.join()
            output.seek(0)
            said.seek(0)
            return status, output.read().splitlines(), len(visits), said.read()[-4000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program brigade")
    parser.add_argument("--rank-program", required=True, help="the program chaos_rank of the tests")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failures = 0
    for backend, doors in (("gloo", tcp_doors), ("hosts", tcp_doors), ("shm", local_doors), ("hosts", local_doors)):
        expected = job(options, backend)
        if expected[0] != 0 or len(expected[1]) != 1:
            sys.exit(f"the job without strangers: status {expected[0]}, output {expected[1]}\n{expected[3]}")
        # Gloo's ranks listen for milliseconds, once all have come: on a busy machine a stranger misses them each time, and
        # only dist/gloo_strangers_test has visited them then.
        visits = 0
        for _ in range(MOST_JOBS):
            status, lines, more, said = job(options, backend, doors)
            visits += more
            if status != 0 or lines != expected[1] or visits > 0:
                break
        good = status == 0 and lines == expected[1] and (visits > 0 or doors is tcp_doors)
        failures += not good
        print(f"{'good:  ' if good else 'FAILED:'} {doors.__name__} of {backend}: {visits} visits, status {status}, {lines}, "
              f"expected {expected[1]}{'' if good else chr(10) + said}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
