#!/usr/bin/env python3
"""Strangers at the store of a live `brigade run` job: it ends as without them, with the same result.

    tests/chaos/strangers.py --program BUILD/bin/brigade --rank-program BUILD/bin/chaos_rank

What those can do who know the run's name (many values, large ones) is tested in dist/store_strangers_test.
"""
import argparse
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time

MAGIC = b"brigade-store-2\n"  # dist/meeting/store/greeting.h
RANKS = 3


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=1)


def greeting(run: bytes) -> bytes:
    text = str(RANKS).encode() + b"\0" + run + b"\0a stranger"
    return MAGIC + struct.pack("<I", len(text)) + text


def garbage(port, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(numbers.randbytes(numbers.randint(1, 65536)))


def another_run(port, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(greeting(b"another run"))
        stranger.recv(1024)


def another_protocol(port, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stranger.recv(1024)


def huge_greeting(port, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(MAGIC + struct.pack("<I", 0xFFFFFFFF) + b"a" * 65536)


def half_greeting(port, kept, numbers):
    stranger = connect(port)
    kept.append(stranger)
    whole = greeting(b"another run")
    stranger.sendall(whole[:numbers.randrange(1, len(whole))])


def idle(port, kept, numbers):
    kept.append(connect(port))


def slow_reader(port, kept, numbers):
    stranger = connect(port)
    kept.append(stranger)
    stranger.sendall(greeting(b"another run") * 100)


def reset(port, kept, numbers):
    with connect(port) as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stranger.sendall(MAGIC)


CAMPAIGNS = [garbage, another_run, another_protocol, huge_greeting, half_greeting, idle, slow_reader, reset]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def attack(stranger, port: int, over: threading.Event, numbers: random.Random, visits: list) -> None:
    kept = []
    while not over.is_set():
        try:
            stranger(port, kept, numbers)
            visits.append(stranger.__name__)
        except OSError:
            time.sleep(0.01)  # not yet there, or refused
        if len(kept) > 200:
            kept.pop(0).close()
    for connection in kept:
        connection.close()


def job(options, strangers: list, seed: int) -> tuple:
    """(exit status or None for a hang, result lines, visits) of a job with these at its store; its ranks come after a second."""
    port = free_port()
    over, visits = threading.Event(), []
    # The ranks' output has a pipe of its own, so that what the launcher says of strangers does not matter.
    process = subprocess.Popen([options.program, "run", "-n", str(RANKS), "--master-port", str(port), "--no-prefix", "--", "sh", "-c",
                                'sleep 1; exec "$0" shm none 0 0 forward', options.rank_program],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env=dict(os.environ, OMP_NUM_THREADS="1"))
    threads = [threading.Thread(target=attack, args=(stranger, port, over, random.Random(seed + i), visits))
               for i, stranger in enumerate(strangers)]
    for thread in threads:
        thread.start()
    try:
        output = process.communicate(timeout=30)[0]
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.terminate()
        output, status = process.communicate()[0], None
    over.set()
    for thread in threads:
        thread.join()
    return status, output.splitlines(), visits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program brigade")
    parser.add_argument("--rank-program", required=True, help="the program chaos_rank of the tests")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    status, expected, _ = job(options, [], options.seed)
    if status != 0 or len(expected) != 1:
        sys.exit(f"the job without strangers: status {status}, output {expected}")
    failures = 0
    for strangers in [[stranger] for stranger in CAMPAIGNS] + [CAMPAIGNS]:
        status, lines, visits = job(options, strangers, options.seed)
        good = status == 0 and lines == expected and set(visits) == {stranger.__name__ for stranger in strangers}
        failures += not good
        name = strangers[0].__name__ if len(strangers) == 1 else "all at once"
        print(f"{'good:  ' if good else 'FAILED:'} {name}: {len(visits)} visits, status {status}, {lines}, expected {expected}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
