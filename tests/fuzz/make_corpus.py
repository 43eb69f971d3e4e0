#!/usr/bin/env python3
"""Writes the small files that fuzzing starts from (corpus/), besides those in tests/core/data."""
import gzip
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "corpus"


def put(folder, name, data):
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    (HERE / folder / name).write_bytes(data)


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def npy(header, data=b"", version=1):
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


put("safetensors", "empty", safetensors({}))
put("safetensors", "two", safetensors({"__metadata__": {"format": "pt"}, "w": tensor("F32", [2], 0, 8), "b": tensor("BOOL", [2], 8, 10)}, bytes(10)))
put("safetensors", "float8", safetensors({"w": tensor("F8_E4M3", [2, 1], 0, 2), "v": tensor("F4", [2], 2, 3)}, bytes(3)))
put("safetensors", "nine_dimensions", safetensors({"w": tensor("U8", [1] * 9, 0, 1)}, bytes(1)))
put("safetensors", "unaligned", safetensors({"a": tensor("U8", [1], 0, 1), "w": tensor("F64", [1], 1, 9)}, bytes(9)))
put("safetensors", "overflow", safetensors({"w": tensor("F32", [2**32, 2**32], 0, 0)}))
put("safetensors", "overflow_beside_zero", safetensors({"w": tensor("F32", [0, 2**63 - 1, 4], 0, 0)}))
put("safetensors", "overlap", safetensors({"w": tensor("F32", [1], 0, 4), "v": tensor("F32", [1], 2, 6)}, bytes(6)))
put("safetensors", "hole", safetensors({"w": tensor("F32", [1], 4, 8)}, bytes(8)))
put("safetensors", "duplicate", safetensors(b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', bytes(2)))
put("safetensors", "zero_after_header", safetensors(b'{}\0"w"'))
put("safetensors", "nested", safetensors(b'{"w":' + b"[" * 300))
put("safetensors", "length", struct.pack("<Q", 2**64 - 1) + b"{}")
put("safetensors", "bool", safetensors({"w": tensor("BOOL", [1], 0, 1)}, b"\x02"))
put("safetensors", "numbers", safetensors(b'{"w":{"dtype":"U8","shape":[1.5,-1,1e999,18446744073709551616],"data_offsets":[0,1]}}', bytes(1)))

put("npy", "scalar", npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", bytes(4)))
put("npy", "fortran", npy(b'{"shape":(2,1),"fortran_order":True,"descr":">i4"}', bytes(8), 2))
put("npy", "bool", npy(b"{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", b"\0\7", 3))
put("npy", "overflow", npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"))
put("npy", "overflow_beside_zero", npy(b"{'descr': '<f8', 'fortran_order': True, 'shape': (0, 9223372036854775807)}"))
put("npy", "records", npy(b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", bytes(4)))
put("npy", "length", b"\x93NUMPY\2\0\xff\xff\xff\xff{")
put("npy", "nine_dimensions", npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", bytes(1)))

parts = {"brigade/checkpoint": "1", "model": "module Net", "adam": "optimizer AdamW", "adam/group0.lr": "0.01", "adam/0.step": "3",
         "random": "generator", "random/seed": "18446744073709551615", "random/offset": "7", "step": "integer", "step/value": "-5",
         "best": "number", "best/value": "-1.5e-300"}
put("checkpoint", "whole", safetensors({"__metadata__": parts, "model/w": tensor("F32", [2], 0, 8), "adam/0.exp_avg": tensor("F32", [2], 8, 16)}, bytes(16)))
put("checkpoint", "numbers", safetensors({"__metadata__": {"brigade/checkpoint": "1", "a": "number", "a/value": "nan", "b": "integer", "b/value": "9223372036854775808"}}))
put("checkpoint", "no_part", safetensors({"__metadata__": {"brigade/checkpoint": "1"}, "w": tensor("U8", [1], 0, 1)}, bytes(1)))
put("checkpoint", "no_slash", safetensors({"__metadata__": {"brigade/checkpoint": "1", "w": "module"}, "w": tensor("U8", [1], 0, 1)}, bytes(1)))
put("checkpoint", "empty_names", safetensors({"__metadata__": {"brigade/checkpoint": "1", "": " ", "/": "1"}, "/": tensor("U8", [1], 0, 1)}, bytes(1)))
put("checkpoint", "version", safetensors({"__metadata__": {"brigade/checkpoint": "2"}}))

line = b",".join(b"%d" % (i % 17) for i in range(64))
put("digits", "lines", line + b",3\n" + line + b",9\r\n")
put("digits", "packed", gzip.compress(line + b",3\n", mtime=0))
put("digits", "cut", gzip.compress((line + b",3\n") * 50, mtime=0)[:-9])
put("digits", "two_members", gzip.compress(line + b",3\n", mtime=0) + gzip.compress(line + b",4\n", mtime=0))
put("digits", "columns", line + b",3,4\n")
put("digits", "range", b"17," * 64 + b"3\n-1\n")
put("digits", "ends", line + b",")


def idx(sizes, values, kind=8):
    return bytes([0, 0, kind, len(sizes)]) + b"".join(struct.pack(">I", size) for size in sizes) + values


put("idx", "images", idx([2, 3, 2], bytes(range(12))))
put("idx", "labels", idx([3], b"\1\2\3"))
put("idx", "packed", gzip.compress(idx([2, 3, 2], bytes(12)), mtime=0))
put("idx", "packed_and_cut", gzip.compress(idx([2, 30, 20], bytes(i * 7 % 256 for i in range(1200))), mtime=0)[:-9])
put("idx", "empty", idx([0, 28, 28], b""))
put("idx", "overflow", idx([2**32 - 1] * 3, bytes(8)))
put("idx", "overflow_beside_zero", idx([2**32 - 1, 0, 2**32 - 1], b""))
put("idx", "too_long", idx([2], b"\1\2\3"))
put("idx", "floats", idx([1], bytes(4), kind=13))
put("idx", "header_cut", idx([2, 3, 2], b"")[:-2])

record = bytes([9]) + bytes(i % 256 for i in range(3072))
put("cifar10", "two", gzip.compress(record * 2, mtime=0))
put("cifar10", "label", gzip.compress(record + bytes([10]) + bytes(3072), mtime=0))
put("cifar10", "cut", gzip.compress(record[:-1], mtime=0))
put("cifar10", "packed_and_cut", gzip.compress(record, mtime=0)[:-9])
put("cifar10", "plain", record)
