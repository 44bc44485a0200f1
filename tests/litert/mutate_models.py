"""Writes models that were changed: by structure, which is fields, lists and references of valid files, or by bytes.

    python mutate_models.py FOLDER --count 100000 [--kind both] [--seed 1] |
        cargo run --release -p litert-judge --bin mutants

FOLDER has `.tflite` files, in subfolders too, for example what make_models.py wrote. Each mutant goes to standard
output as its length (4 bytes, little endian), then the file.
"""

import argparse
import copy
import os
import pathlib
import random
import struct
import sys

import flatbuffers
import numpy
from ai_edge_litert import schema_py_generated as schema

# Numbers at which something begins, ends or wraps.
INTEGERS = [
    0, 1, 2, 3, 4, 7, 8, 16, 64, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536, 1 << 20,
    (1 << 24) + 1, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, (1 << 31), (1 << 32) - 1, 1 << 32, (1 << 63) - 1,
]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38, 1e38, float("inf"), float("-inf"), float("nan"), 128.0, 1 / 255]

LARGEST = 300_000
"""Bytes of a file that is changed: of larger ones few would be made."""


def places(value, found, depth=0):
    """All fields below an object, as (object or list, name or index)."""
    if isinstance(value, list):
        for index, element in enumerate(value[:200]):
            found.append((value, index))
            places(element, found, depth + 1)
    elif hasattr(value, "__dict__") and depth < 20:
        for name, field in vars(value).items():
            found.append((value, name))
            places(field, found, depth + 1)


def get(place):
    owner, name = place
    return owner[name] if isinstance(owner, list) else getattr(owner, name)


def put(place, value):
    owner, name = place
    if isinstance(owner, list):
        owner[name] = value
    else:
        setattr(owner, name, value)


def changed_list(generator, values):
    values = list(values)
    kind = generator.randrange(7)
    if kind == 0 or not values:
        return values + [generator.choice(INTEGERS[:20])] if all(isinstance(it, int) for it in values) else values
    at = generator.randrange(len(values))
    if kind == 1:
        del values[at]
    elif kind == 2:
        values.insert(at, copy.copy(values[generator.randrange(len(values))]))
    elif kind == 3:
        other = generator.randrange(len(values))
        values[at], values[other] = values[other], values[at]
    elif kind == 4:
        return values[:at]
    elif kind == 5:
        return []
    else:
        values.reverse()
    return values


def changed_array(generator, array):
    """Numbers of a buffer, shape or scale."""
    array = array.copy()
    kind = generator.randrange(5)
    if array.size == 0 or kind == 0:
        return numpy.concatenate([array, array[: generator.randrange(9)], numpy.zeros(generator.randrange(9), array.dtype)])
    if kind == 1:
        return array[: generator.randrange(array.size)]
    for _ in range(generator.choice([1, 1, 1, 4, 16])):
        at = generator.randrange(array.size)
        if array.dtype.kind == "f":
            array[at] = generator.choice(FLOATS)
        else:
            number = generator.choice(INTEGERS) * generator.choice([1, 1, 1, -1])
            limits = numpy.iinfo(array.dtype)
            array[at] = min(max(number, limits.min), limits.max)
    return array


def change(generator, model, others):
    """Changes a field, somewhere."""
    found = []
    places(model, found)
    # Most fields are those of tensors: a kind of field is drawn first, so that each is changed as often.
    kinds = sorted({name if isinstance(name, str) else type(get((owner, name))).__name__ for owner, name in found})
    kind = generator.choice(kinds)
    of_kind = [
        place
        for place in found
        if kind == (place[1] if isinstance(place[1], str) else type(get(place)).__name__)
    ]
    place = generator.choice(of_kind)
    value = get(place)
    if isinstance(value, bool):
        put(place, not value)
    elif isinstance(value, int):
        near = value + generator.choice([-2, -1, 1, 2])
        far = generator.choice(INTEGERS) * generator.choice([1, 1, -1])
        put(place, generator.choice([near, far, generator.randrange(256)]))
    elif isinstance(value, float):
        put(place, generator.choice([*FLOATS, value * 2, -value]))
    elif isinstance(value, numpy.ndarray):
        put(place, changed_array(generator, value))
    elif isinstance(value, list):
        put(place, changed_list(generator, value))
    elif isinstance(value, bytes):
        put(place, value[: generator.randrange(len(value) + 1)])
    elif value is None:
        # What another object of the kind has here.
        candidates = []
        places(generator.choice(others), candidates)
        same = [it for it in candidates if it[1] == place[1] and type(it[0]) is type(place[0])]
        if same:
            put(place, copy.deepcopy(get(generator.choice(same))))
    else:
        same = [it for it in found if it[1] == place[1] and it[0] is not place[0]] if isinstance(place[1], str) else []
        put(place, copy.deepcopy(get(generator.choice(same))) if same and generator.random() < 0.7 else None)


def changed_by_structure(generator, models):
    """A file of a changed model, or None if what was drawn cannot be written."""
    model = copy.deepcopy(generator.choice(models))
    try:
        for _ in range(generator.choice([1, 1, 1, 2, 3, 5])):
            change(generator, model, models)
        builder = flatbuffers.Builder(4096)
        builder.Finish(model.Pack(builder), b"TFL3")
    except (AttributeError, TypeError, ValueError, OverflowError, struct.error, AssertionError, IndexError,
            flatbuffers.builder.BuilderSizeError):  # fmt: skip
        # The number is out of the field's type, or a list has elements of two kinds.
        return None
    return bytes(builder.Output())


def changed_by_bytes(generator, files):
    """A file of which some bytes are others, missing, twice, or another file's."""
    data = bytearray(generator.choice(files))
    for _ in range(generator.choice([1, 1, 1, 2, 4, 16])):
        if not data:
            break
        at = generator.randrange(len(data))
        # Tables are small and in front of most constants: few changes would meet them otherwise.
        if generator.random() < 0.5:
            at = min(at, generator.randrange(4096))
        length = generator.choice([1, 1, 2, 4, 8, 64, 512])
        kind = generator.randrange(8)
        if kind == 0:
            data[at] ^= 1 << generator.randrange(8)
        elif kind == 1:
            data[at] = generator.randrange(256)
        elif kind in (2, 3):
            width = generator.choice([1, 2, 4, 4, 8])
            at -= at % width
            number = generator.choice(INTEGERS) * generator.choice([1, 1, -1])
            number %= 1 << 8 * width
            if at + width <= len(data):
                if kind == 3:
                    number = int.from_bytes(data[at : at + width], "little") + generator.choice([-4, -1, 1, 4])
                    number %= 1 << 8 * width
                data[at : at + width] = number.to_bytes(width, "little")
        elif kind == 4:
            del data[at : at + length]
        elif kind == 5:
            data[at:at] = data[at : at + length]
        elif kind == 6:
            other = generator.choice(files)
            start = generator.randrange(len(other))
            data[at : at + length] = other[start : start + length]
        elif generator.random() < 0.3:
            del data[at:]
    return bytes(data)


def hand_over(data):
    """Writes all of it. Python's buffered writer loses some where a full pipe's writer is stopped and goes on."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(sys.stdout.fileno(), rest) :]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--kind", choices=["both", "structure", "bytes"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    paths = [it for it in sorted(arguments.folder.rglob("*.tflite")) if it.stat().st_size <= LARGEST]
    if not paths:
        sys.exit(f"{arguments.folder} has no .tflite files of at most {LARGEST} bytes")
    made = 0
    while made < arguments.count:
        files = [path.read_bytes() for path in generator.sample(paths, min(8, len(paths)))]
        models = []
        if arguments.kind != "bytes":
            models = [schema.ModelT.InitFromPackedBuf(file) for file in files]
        for _ in range(min(64, arguments.count - made)):
            kind = arguments.kind if arguments.kind != "both" else ("structure", "bytes")[made % 2]
            if kind == "structure":
                mutant = changed_by_structure(generator, models)
            else:
                mutant = changed_by_bytes(generator, files)
            if mutant is not None:
                hand_over(struct.pack("<I", len(mutant)) + mutant)
                made += 1


main()
