#!/usr/bin/env python3
"""Strangers at the store of a live `brigade run` job: it ends as without them, with the same result.

    tests/chaos/strangers.py --program BUILD/bin/brigade --rank-program BUILD/bin/chaos_rank

The ranks reach the store through a tap, so some strangers know what went over the wire: the run's name, a greeting and its proof. What those can
do who know the secret (many values, large ones) is tested in dist/store_strangers_test.
"""
import argparse
import hmac
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from processes import status_of

MAGIC = b"brigade-store-3\n"  # dist/rendezvous/store/greeting.h
RANKS = 3


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=1)


def string(text: bytes) -> bytes:
    return struct.pack("<I", len(text)) + text


def greeting(run: bytes, nonce: bytes = b"") -> bytes:
    return MAGIC + string(b"\0".join([str(RANKS).encode(), run, b"a stranger", nonce]))


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


def receive_string(connection: socket.socket) -> bytes:
    return receive(connection, struct.unpack("<I", receive(connection, 4))[0])


class Tap:
    """Passes everything on between ranks and the store, and keeps the first greeting and proof."""

    def __init__(self, store_port: int):
        self.store_port = store_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.overheard = None  # (greeting, proof)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                rank = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.connect, args=(rank,), daemon=True).start()

    def connect(self, rank):
        try:
            store = connect(self.store_port)
            store.settimeout(None)
            text = receive(rank, len(MAGIC)) and receive_string(rank)
            store.sendall(MAGIC + string(text))
            rank.sendall(receive(store, len(MAGIC)) + string(receive_string(store)))
            proof = receive_string(rank)
            store.sendall(string(proof))
            self.overheard = self.overheard or (text, proof)
        except OSError:
            rank.close()
            return
        for source, target in ((rank, store), (store, rank)):
            threading.Thread(target=self.copy, args=(source, target), daemon=True).start()

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def wait(self) -> tuple:
        if not self.overheard:
            raise ConnectionError("nothing was overheard yet")
        return self.overheard


class Breach(Exception):
    pass


def be_turned_away(stranger: socket.socket, reason: bytes) -> None:
    answer = receive_string(stranger)
    if not answer.startswith(b"!" + reason):
        raise Breach(answer)


def garbage(port, tap, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(numbers.randbytes(numbers.randint(1, 65536)))


def another_run(port, tap, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(greeting(b"another run"))
        stranger.recv(1024)


def another_protocol(port, tap, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stranger.recv(1024)


def huge_greeting(port, tap, kept, numbers):
    with connect(port) as stranger:
        stranger.sendall(MAGIC + struct.pack("<I", 0xFFFFFFFF) + b"a" * 65536)


def half_greeting(port, tap, kept, numbers):
    stranger = connect(port)
    kept.append(stranger)
    whole = greeting(b"another run")
    stranger.sendall(whole[:numbers.randrange(1, len(whole))])


def idle(port, tap, kept, numbers):
    kept.append(connect(port))


def slow_reader(port, tap, kept, numbers):
    stranger = connect(port)
    kept.append(stranger)
    stranger.sendall(greeting(b"another run") * 100)


def run_of(tap) -> bytes:
    return tap.wait()[0].split(b"\0")[1]


def no_secret(port, tap, kept, numbers):
    run = run_of(tap)
    with connect(port) as stranger:
        stranger.sendall(greeting(run))
        receive(stranger, len(MAGIC))
        be_turned_away(stranger, b"its job has a secret, and this one has brought none")


def wrong_secret(port, tap, kept, numbers):
    hello = greeting(run_of(tap), numbers.randbytes(32).hex().encode())
    with connect(port) as stranger:
        stranger.sendall(hello)
        receive(stranger, len(MAGIC))
        question = receive_string(stranger)
        if not question.startswith(b"?"):
            raise Breach(question)
        proved = MAGIC + b"client " + question[1:] + b" " + hello[len(MAGIC) + 4:]
        stranger.sendall(string(hmac.new(numbers.randbytes(32), proved, "sha256").hexdigest().encode()))
        be_turned_away(stranger, b"its job has another secret")


def replay(port, tap, kept, numbers):
    text, proof = tap.wait()
    with connect(port) as stranger:
        stranger.sendall(MAGIC + string(text) + string(proof))
        receive(stranger, len(MAGIC))
        receive_string(stranger)
        be_turned_away(stranger, b"its job has another secret")


def reset(port, tap, kept, numbers):
    with connect(port) as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stranger.sendall(MAGIC)


CAMPAIGNS = [garbage, another_run, another_protocol, huge_greeting, half_greeting, idle, slow_reader, reset, no_secret, wrong_secret, replay]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def attack(stranger, port: int, tap: Tap, over: threading.Event, numbers: random.Random, visits: list, breaches: list) -> None:
    kept = []
    while not over.is_set():
        try:
            stranger(port, tap, kept, numbers)
            visits.append(stranger.__name__)
        except Breach as breach:
            breaches.append(f"{stranger.__name__} got {breach}")
        except OSError:
            time.sleep(0.01)  # not yet there, or refused
        if len(kept) > 200:
            kept.pop(0).close()
    for connection in kept:
        connection.close()


def job(options, strangers: list, seed: int) -> tuple:
    """(exit status or None for a hang, result lines, visits, breaches, what was said) of a job with these at its store; ranks 1 and 2 come when each
    stranger has been there."""
    port = free_port()
    tap = Tap(port)
    over, visits, breaches = threading.Event(), [], []
    names = {stranger.__name__ for stranger in strangers}
    mark = f"STRANGERS_TEST={os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="strangers-") as folder:
        go = os.path.join(folder, "go")

        def call_ranks() -> None:
            while not over.is_set() and not names <= set(visits):
                time.sleep(0.01)
            open(go, "w", encoding="utf-8").close()

        with open(os.path.join(folder, "output"), "w+", encoding="utf-8") as output, open(os.path.join(folder, "said"), "w+", encoding="utf-8") as said:
            # The ranks' output has a file of its own, so that what the launcher says of strangers does not matter.
            process = subprocess.Popen([options.program, "run", "-n", str(RANKS), "--master-port", str(port), "--no-prefix", "--", "sh", "-c",
                                        'while [ $RANK != 0 ] && [ ! -e "$1" ]; do sleep 0.05; done; '
                                        'MASTER_PORT=$TAP exec "$0" shm none 0 0 forward', options.rank_program, go],
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=said,
                                       env=dict(os.environ, OMP_NUM_THREADS="1", TAP=str(tap.port), STRANGERS_TEST=str(os.getpid())))
            threads = [threading.Thread(target=attack, args=(stranger, port, tap, over, random.Random(seed + i), visits, breaches))
                       for i, stranger in enumerate(strangers)] + [threading.Thread(target=call_ranks)]
            for thread in threads:
                thread.start()
            status = status_of(process, mark)
            over.set()
            for thread in threads:
                thread.join()
            tap.listener.close()
            output.seek(0)
            said.seek(0)
            return status, output.read().splitlines(), visits, breaches, said.read()[-4000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program brigade")
    parser.add_argument("--rank-program", required=True, help="the program chaos_rank of the tests")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    status, expected, _, _, said = job(options, [], options.seed)
    if status != 0 or len(expected) != 1:
        sys.exit(f"the job without strangers: status {status}, output {expected}\n{said}")
    failures = 0
    for strangers in [[stranger] for stranger in CAMPAIGNS] + [CAMPAIGNS]:
        status, lines, visits, breaches, said = job(options, strangers, options.seed)
        good = status == 0 and lines == expected and not breaches and set(visits) == {stranger.__name__ for stranger in strangers}
        failures += not good
        name = strangers[0].__name__ if len(strangers) == 1 else "all at once"
        print(f"{'good:  ' if good else 'FAILED:'} {name}: {len(visits)} visits, status {status}, {lines}, expected {expected}, breaches {breaches[:3]}"
              f"{'' if good else chr(10) + said}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
