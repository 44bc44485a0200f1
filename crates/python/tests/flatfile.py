"""Small .tflite files, made of bytes by hand: a writer of FlatBuffers in forty lines.

Tables are written front to back, so that offsets point forward as the format wants them.
"""

import struct
from array import array

FLOAT32, FLOAT16, INT32, UINT8, INT64, BOOL, INT8, INT4 = 0, 1, 2, 3, 4, 6, 9, 17
ADD, CONV_2D, FULLY_CONNECTED, RELU, RNN, UNPACK = 0, 3, 9, 19, 24, 88


class Table:
    """Fields by number: ("i", 3) and other formats of `struct`; a Table, str, bytes, or list of them."""

    def __init__(self, **fields):
        self.fields = {int(name[1:]): value for name, value in fields.items() if value is not None}


def _pad(out, to, ahead=0):
    while (len(out) + ahead) % to:
        out.append(0)


def _write(out, value):
    """Appends a value, and gives where it begins."""
    if isinstance(value, Table):
        count = max(value.fields, default=-1) + 1
        _pad(out, 2)
        vtable = len(out)
        size = 4 + sum(4 + 4 for _ in value.fields)
        out += struct.pack("<HH", 4 + 2 * count, size) + bytes(2 * count)
        _pad(out, 8, 4)
        table = len(out)
        out += struct.pack("<i", table - vtable)
        holes = []
        for number, field in value.fields.items():
            _pad(out, 4)
            if isinstance(field, tuple):
                _pad(out, struct.calcsize(field[0]))
            struct.pack_into("<H", out, vtable + 4 + 2 * number, len(out) - table)
            if isinstance(field, tuple):
                out += struct.pack("<" + field[0], field[1])
            else:
                holes.append((len(out), field))
                out += bytes(4)
        struct.pack_into("<H", out, vtable + 2, len(out) - table)
        for hole, field in holes:
            struct.pack_into("<I", out, hole, _write(out, field) - hole)
        return table
    if isinstance(value, (str, bytes)):
        data = value.encode() + b"\0" if isinstance(value, str) else value
        _pad(out, 16, 4)
        place = len(out)
        out += struct.pack("<I", len(data) - isinstance(value, str)) + data
        return place
    if isinstance(value, array):
        _pad(out, 8, 4)
        place = len(out)
        out += struct.pack("<I", len(value)) + value.tobytes()
        return place
    _pad(out, 4)
    place = len(out)
    if value and isinstance(value[0], int):
        return _ints(out, place, value)
    out += struct.pack("<I", len(value)) + bytes(4 * len(value))
    for position, item in enumerate(value):
        hole = place + 4 + 4 * position
        struct.pack_into("<I", out, hole, _write(out, item) - hole)
    return place


def _ints(out, place, values):
    out += struct.pack(f"<I{len(values)}i", len(values), *values)
    return place


def file(root):
    out = bytearray(4) + b"TFL3"
    struct.pack_into("<I", out, 0, _write(out, root))
    return bytes(out)


def tensor(name, shape, kind=FLOAT32, buffer=0, signature=None, variable=None, scales=None):
    is_variable = ("B", 1) if variable else None
    kind = ("b", kind) if kind else None
    quantization = Table(_2=array("f", scales), _3=array("q", [0] * len(scales))) if scales else None
    return Table(
        _0=list(shape), _1=kind, _2=("I", buffer), _3=name, _4=quantization, _5=is_variable, _7=signature
    )


def model(codes, tensors, inputs, outputs, operators, buffers=(b"",), signatures=None):
    """Codes are those of the format, or names of custom operators."""
    operator_codes = [
        Table(_0=("b", 32), _1=code, _2=("i", 1), _3=("i", 32))
        if isinstance(code, str)
        else Table(_0=("b", min(code, 127)), _2=("i", 1), _3=("i", code))
        for code in codes
    ]
    operators = [
        Table(_0=("I", code), _1=ins, _2=outs, _3=kind, _4=options)
        for code, ins, outs, kind, options in operators
    ]
    graph = Table(_0=tensors, _1=inputs, _2=outputs, _3=operators, _4="main")
    buffers = [Table(_0=data) if data else Table() for data in buffers]
    return file(
        Table(_0=("I", 3), _1=operator_codes, _2=[graph], _3="by hand", _4=buffers, _7=signatures)
    )


def add(shape, kind=FLOAT32, signature=None):
    """y = a + b, with the signature `add` of x and y to sum."""
    tensors = [tensor(name, shape, kind, signature=signature) for name in ("a", "b", "y")]
    names = lambda pairs: [Table(_0=name, _1=("I", index)) for name, index in pairs]
    signatures = [Table(_0=names([("x", 0), ("y", 1)]), _1=names([("sum", 2)]), _2="add")]
    options = (("B", 11), Table())
    return model([ADD], tensors, [0, 1], [2], [(0, [0, 1], [2], *options)], signatures=signatures)


def _names(pairs):
    return [Table(_0=name, _1=("I", index)) for name, index in pairs]


def sum_and_relu(outputs, inputs=(("x", 0), ("w", 1)), signature=None):
    """y = a + b, r = the greater of y and 0, of float32 [1, 4]: tensors 0 to 3. The graph gives r only; the signature
    `serve` has whatever is named.

    crates/nnhal/tests/data/sum_and_relu.tflite is this with outputs y and r, signature_of_one_input.tflite with x alone as
    input besides."""
    tensors = [tensor(name, [1, 4], signature=signature) for name in ("a", "b", "y", "r")]
    signatures = [Table(_0=_names(inputs), _1=_names(outputs), _2="serve")]
    operators = [(0, [0, 1], [2], ("B", 11), Table()), (1, [2], [3], None, None)]
    return model([ADD, RELU], tensors, [0, 1], [3], operators, signatures=signatures)


def beside():
    """y = x + w of 40 floats: the model, and the file `weights.bin` in which w are the numbers from the eighth on.

    crates/nnhal/tests/data/beside has both."""
    weights = Table(_0=[40], _3="w", _10=("I", 1 << 31))
    external = Table(_0=("I", 1 << 31), _1=("I", 0), _2=("Q", 32), _3=("Q", 160))
    codes = [Table(_0=("b", ADD), _2=("i", 1), _3=("i", ADD))]
    operators = [Table(_0=("I", 0), _1=[0, 1], _2=[2], _3=("B", 11), _4=Table())]
    graph = Table(_0=[tensor("x", [40]), weights, tensor("y", [40])], _1=[0], _2=[2], _3=operators)
    groups = [Table(_0="weights.bin")]
    root = Table(_0=("I", 3), _1=codes, _2=[graph], _4=[Table()], _8=groups, _9=[external])
    return file(root), struct.pack("<48f", *(number / 2 for number in range(48)))


def of_all_types():
    """y = the greater of x and 0, beside an unused tensor of every type but BFLOAT16, and one of that."""
    kinds = [kind for kind in range(23) if kind != 18] + [18]
    tensors = [tensor("x", [2]), tensor("y", [2])]
    tensors += [tensor(f"type {kind}", [2], kind) for kind in kinds]
    return model([RELU], tensors, [0], [1], [(0, [0], [1], None, None)])


def by_block():
    """y = weights times x, of int4 [4, 64] with a scale of float16 for each 32 of them: 1/8 to 8/8."""
    weights = bytes((place % 7) | (((place + 1) % 7) << 4) for place in range(0, 256, 2))
    scales = struct.pack("<8e", *(number / 8 for number in range(1, 9)))
    blocks = Table(_0=("i", 3), _1=("i", -1), _2=("i", 32))
    tensors = [
        tensor("x", [1, 64]),
        Table(_0=[4, 64], _1=("b", INT4), _2=("I", 1), _3="weights", _4=Table(_4=("B", 2), _5=blocks)),
        tensor("y", [1, 4]),
        tensor("scales", [4, 2], FLOAT16, buffer=2),
    ]
    operator = (0, [0, 1, -1], [2], ("B", 8), Table())
    return model([FULLY_CONNECTED], tensors, [0], [2], [operator], buffers=[b"", weights, scales])


def relu(shape):
    """The smallest model: one operation, one input."""
    tensors = [tensor("x", shape), tensor("y", shape)]
    return model([RELU], tensors, [0], [1], [(0, [0], [1], None, None)])


def verified():
    """y = the greater of x and 0, and what the numbers 1 and 2 are more than y, whose type is that of their integers in the
    file, as TensorFlow's converter writes it."""
    tensors = [
        tensor("x", [2]),
        tensor("y", [2]),
        tensor("quantized", [2], INT8, buffer=1, scales=[0.5]),
        tensor("NumericVerify/quantized:2", [2], INT8, scales=[0.5]),
    ]
    operators = [(0, [0], [1], None, None), (1, [2, 1], [3], None, None)]
    return model([RELU, "NumericVerify"], tensors, [0], [1], operators, buffers=[b"", bytes([2, 4])])


def running_sum():
    """y = the sum of all x so far: an RNN whose weights are 1, with its state in a variable tensor."""
    one, zero = struct.pack("<f", 1.0), struct.pack("<f", 0.0)
    tensors = [
        tensor("x", [1, 1]),
        tensor("weights", [1, 1], buffer=1),
        tensor("recurrent", [1, 1], buffer=1),
        tensor("bias", [1], buffer=2),
        tensor("state", [1, 1], variable=True),
        tensor("y", [1, 1]),
    ]
    operator = (0, [0, 1, 2, 3, 4], [5], ("B", 7), Table(_0=("b", 0)))
    return model([RNN], tensors, [0], [5], [operator], buffers=[b"", one, zero])


def dynamic_range_layer():
    """y = 1/2 (a + 2b + 3c), 1/4 (4a + 5b + 6c) with int8 weights beside float32.

    crates/cli/tests/dynamic_range.tflite is this."""
    tensors = [
        tensor("x", [1, 3]),
        tensor("weights", [2, 3], INT8, buffer=1, scales=[0.5, 0.25]),
        tensor("y", [1, 2]),
    ]
    operator = (0, [0, 1, -1], [2], ("B", 8), Table())
    return model([FULLY_CONNECTED], tensors, [0], [2], [operator], buffers=[b"", bytes(range(1, 7))])


def sums_of_four(unpacked=False):
    """y = the sums of four neighbours along an open length, of which the file's example has one, so that nothing fits it.
    With `unpacked` an operator follows that wants every length known.

    crates/cli/tests/sums_of_four.tflite is this, and unpacked_sums_of_four.tflite with `unpacked`."""
    tensors = [
        tensor("x", [1, 1, 1, 1], signature=[1, 1, -1, 1]),
        tensor("filter", [1, 1, 4, 1], buffer=1),
        tensor("bias", [1], buffer=2),
        tensor("y", [1, 1, 1, 1], signature=[1, 1, -1, 1]),
    ]
    options = Table(_0=("b", 1), _1=("i", 1), _2=("i", 1))
    operator = (0, [0, 1, 2], [3], ("B", 1), options)
    ones = struct.pack("<4f", 1, 1, 1, 1)
    buffers = [b"", ones, bytes(4)]
    if not unpacked:
        return model([CONV_2D], tensors, [0], [3], [operator], buffers=buffers)
    tensors.append(tensor("z", [1, 1, 1], signature=[1, -1, 1]))
    further = (1, [3], [4], ("B", 64), Table(_0=("i", 1), _1=("i", 0)))
    return model([CONV_2D, UNPACK], tensors, [0], [4], [operator, further], buffers=buffers)
