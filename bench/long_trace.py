#!/usr/bin/env python3
"""A trace as long as is asked for, to measure what `brigade explain` takes to read it (docs/trace.md).

    bench/long_trace.py EVENTS > trace.json

Two ranks train a network of 62 parameters in 5 buckets; the number of iterations follows from the number of events.
"""
import json
import sys

PARAMETERS, BUCKETS, RANKS = 62, 5, 2
NAMES = [f"layer{i // 12 + 1}.{i // 6 % 2}.conv{i % 6 // 3 + 1}.{'weight' if i % 2 == 0 else 'bias'}" for i in range(PARAMETERS)]
IN_BUCKET = [list(range(PARAMETERS))[::-1][b::BUCKETS] for b in range(BUCKETS)]


def iteration(rank, number):
    start = number * 9000
    where = f'"iteration": {number}, "backward": "lab/recipes/resnet.cpp:112"'

    def event(phase, name, time, lane, arguments="", more=""):
        return (f'{{"name": "{name}", "ph": "{phase}", "pid": {rank}, "tid": {lane * 100000 + rank}, {more}"ts": {start + time}.{time % 1000:03}'
                + (f', "args": {{{arguments}}}}}' if phase != "E" else "}"))

    def pair(name, begin, end, arguments):
        return [event("B", name, begin, 1, arguments), event("E", name, end, 1)]

    lines = pair("forward", 0, 2000, where) + pair("backward", 2000, 7000, where)
    lines += pair("wait for collectives", 7000, 8000, f'{where}, "overlap": 0.7312, "rebuilt": false')
    for b, parameters in enumerate(IN_BUCKET):
        begin = 3000 + 900 * b
        more = f'"cat": "collective", "id2": {{"local": "{b + 1:#x}"}}, '
        speed = '"bytes": 9437184, "algbw_GBps": 4.71859, "busbw_GBps": 4.71859'
        whole = (f'{where}, "bucket": {b}, "bytes": 9437184, "algorithm": "all_reduce over shm", "arrival_known": true, "on_device": false, '
                 f'"filled_us": {start + begin - 1}.500, "wait_began_us": {start + 7000}.000, "wait_ended_us": {start + 7100}.250, '
                 f'"parameters": {json.dumps([NAMES[p] for p in parameters])}')
        for name, first, last, arguments in (("wait for peers", 0, 20, f'{where}, "bucket": {b}'), ("reduce", 20, 700, f'{where}, "bucket": {b}, {speed}')):
            phases = [event("b", name, begin + first, 1, arguments, more), event("e", name, begin + last, 1, "", more)]
            lines += [event("b", f"bucket {b}", begin, 1, whole, more), *phases] if first == 0 else phases
        lines.append(event("e", f"bucket {b}", begin + 750, 1, "", more))
    lines.append(event("i", "SGD.step()", 8500, 3, f'{where}, "optimizer": "SGD", "step": {number}, "where": "lab/recipes/resnet.cpp:113"', '"s": "t", '))
    return lines + [event("i", name, 2100 + 70 * i, 2, where, '"s": "t", ') for i, name in enumerate(reversed(NAMES))]


def main():
    left = int(sys.argv[1])
    rounds = -(-left // (RANKS * len(iteration(0, 1))))
    facts = {"module": "ResNet", "ranks": RANKS, "backend": "shm", "first_bucket_bytes": 1 << 20, "bucket_cap_bytes": 25 << 20, "rebuilt": True,
             "parameters": [{"name": name, "dtype": "float32", "numel": 36864, "bytes": 147456} for name in NAMES],
             "buckets": [{"dtype": "float32", "parameters": parameters, "numel": 36864 * len(parameters)} for parameters in IN_BUCKET],
             "ready_order": list(range(PARAMETERS))[::-1], "users": [RANKS] * PARAMETERS}
    print('{"traceEvents": [')
    for rank in range(RANKS):
        for number in range(1, rounds + 1):
            lines = iteration(rank, number)
            last = rank == RANKS - 1 and number == rounds
            print("  " + ",\n  ".join(lines) + ("" if last else ","))
    print(f'], "brigade": {json.dumps(facts)}}}')


main()
