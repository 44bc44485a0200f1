"""Reads the conformance vectors and compares outputs with them. Standard library only."""

import array
import base64
import ctypes
import ctypes.util
import json
import math
import os
import shutil
import struct
import subprocess


def files(folder):
    """Paths of all vector files."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        return [os.path.join(folder, entry["path"]) for entry in json.load(file)["files"]]


def cases(path):
    """All cases of a file, with their data as bytes."""
    with open(path, "rb") as file:
        text = decompress(file.read())
    for line in text.splitlines():
        case = json.loads(line)
        for graph in [case["main"], *case["referenced"]]:
            for operand in graph["operands"]:
                if operand["data"] is not None:
                    operand["data"] = base64.b64decode(operand["data"])
        yield case


def decompress(packed):
    """A zstd frame that says its size."""
    library = _zstd()
    if library is None:
        program = shutil.which("zstd")
        if program is None:
            raise SystemExit("neither libzstd.so.1 nor the program zstd is here")
        return subprocess.run([program, "-dc"], input=packed, stdout=-1, check=True).stdout
    size = library.ZSTD_getFrameContentSize(packed, len(packed))
    room = ctypes.create_string_buffer(size)
    written = library.ZSTD_decompress(room, size, packed, len(packed))
    if library.ZSTD_isError(written) or written != size:
        raise ValueError("not a whole zstd frame")
    return room.raw


_ZSTD = []


def _zstd():
    if not _ZSTD:
        try:
            library = ctypes.CDLL("libzstd.so.1")
            library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
            library.ZSTD_getFrameContentSize.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
            library.ZSTD_decompress.restype = ctypes.c_size_t
            library.ZSTD_decompress.argtypes = [
                ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
            library.ZSTD_isError.argtypes = [ctypes.c_size_t]
        except OSError:
            library = None
        _ZSTD.append(library)
    return _ZSTD[0]


ARRAY_CODES = {
    "FLOAT32": "f", "INT32": "i", "UINT32": "I", "QUANT16_ASYMM": "H", "QUANT16_SYMM": "h",
    "QUANT8_ASYMM": "B", "QUANT8_ASYMM_SIGNED": "b", "QUANT8_SYMM": "b",
    "QUANT8_SYMM_PER_CHANNEL": "b",
}


def elements(operand_type, data):
    """The values as they are stored; truth values as 0 or 1."""
    kind = operand_type.removeprefix("TENSOR_")
    if kind == "FLOAT16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    if kind in ("BOOL8", "BOOL"):
        return [int(byte != 0) for byte in data]
    values = array.array(ARRAY_CODES[kind])
    values.frombytes(data)
    return values


def difference(operand_type, expected, found, tolerance):
    """A sentence about the first element beyond tolerance, or None."""
    if expected == found and not operand_type.endswith(("FLOAT32", "FLOAT16")):
        return None
    atol, rtol = tolerance["atol"], tolerance["rtol"]
    pairs = zip(elements(operand_type, expected), elements(operand_type, found))
    for index, (wanted, got) in enumerate(pairs):
        # A NaN is within no distance.
        if not abs(got - wanted) <= atol + rtol * abs(wanted):
            return f"element {index} is {got}, expected {wanted}"
    return None


def distribution(logits, samples, tolerance):
    """A sentence about the first class that is drawn too often or too seldom, or None."""
    total = sum(math.exp(logit) for logit in logits)
    for index, logit in enumerate(logits):
        share = sum(sample == index for sample in samples) / len(samples)
        wanted = math.exp(logit) / total
        if not abs(share - wanted) <= tolerance:
            return f"class {index} has a share of {share}, expected {wanted}"
    outside = [sample for sample in samples if not 0 <= sample < len(logits)]
    return f"class {outside[0]} does not exist" if outside else None


def with_signed_quantization(case):
    """Each TENSOR_QUANT8_ASYMM turned into TENSOR_QUANT8_ASYMM_SIGNED."""
    operands = []
    for operand in case["main"]["operands"]:
        if operand["type"] == "TENSOR_QUANT8_ASYMM":
            operand = dict(operand, type="TENSOR_QUANT8_ASYMM_SIGNED")
            operand["zero_point"] -= 128
            if operand["data"]:
                operand["data"] = bytes(byte ^ 0x80 for byte in operand["data"])
        operands.append(operand)
    return dict(case, main=dict(case["main"], operands=operands))


def with_unknown_output_shapes(case):
    """What the model says of its outputs' dimensions is 0; what is expected stays."""
    main = dict(case["main"], unknown_outputs=True)
    return dict(case, main=main)
