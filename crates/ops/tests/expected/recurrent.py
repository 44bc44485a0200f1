"""Writes recurrent.txt: calls of the recurrent operations with the values that they must give.

Usage: python3 recurrent.py > recurrent.txt     (needs NumPy)

Everything is computed here a second time, from the definitions, on whole batches and in double
precision; the integer operations in integers, to the bit. calls.py says how the file is to be read.
"""

import numpy as np

from calls import Call

random = np.random.default_rng(20261121)
FLOAT = {"TENSOR_FLOAT32": "FLOAT32", "TENSOR_FLOAT16": "FLOAT16"}


def draw(*shape):
    """Numbers that float16 holds exactly and that are short to write."""
    return random.integers(-48, 49, shape) / 64


# Real numbers


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    0: lambda x: x,
    1: lambda x: np.maximum(x, 0),
    2: lambda x: np.clip(x, -1, 1),
    3: lambda x: np.clip(x, 0, 6),
    4: np.tanh,
    6: sigmoid,
}


def clip(x, distance):
    return np.clip(x, -distance, distance) if distance else x


class Lstm:
    """A cell's weights; `None` for what it does not have. Gates: i, f, c, o."""

    def __init__(self, inputs, units, outputs, coupled=False, peephole=False, project=False,
                 projection_bias=False, norm=False, auxiliary=None):
        gates = "fco" if coupled else "ifco"
        has = lambda condition, make: {g: make() if g in gates and condition(g) else None for g in "ifco"}
        always = lambda _: True
        self.sizes = inputs, units, outputs, auxiliary
        self.w = has(always, lambda: draw(units, inputs))
        self.r = has(always, lambda: draw(units, outputs))
        self.b = has(always, lambda: draw(units))
        self.p = has(lambda g: peephole and g != "c", lambda: draw(units))
        self.n = has(lambda _: norm, lambda: draw(units) + 1)
        self.a = has(lambda _: auxiliary is not None, lambda: draw(units, auxiliary))
        self.projection = draw(outputs, units) if project else None
        self.projection_bias = draw(outputs) if projection_bias else None

    def gate(self, g, x, a, h, c):
        v = x @ self.w[g].T + h @ self.r[g].T
        if self.a[g] is not None and a is not None:
            v = v + a @ self.a[g].T
        if self.p[g] is not None:
            v = v + c * self.p[g]
        if self.n[g] is not None:
            mean = v.mean(axis=1, keepdims=True)
            v = (v - mean) / np.sqrt(v.var(axis=1, keepdims=True) + 1e-8) * self.n[g]
        return v + self.b[g]

    def step(self, x, a, h, c, activation, cell_clip, projection_clip):
        g = ACTIVATIONS[activation]
        f = sigmoid(self.gate("f", x, a, h, c))
        i = 1 - f if self.w["i"] is None else sigmoid(self.gate("i", x, a, h, c))
        c = clip(f * c + i * g(self.gate("c", x, a, h, c)), cell_clip)
        h = sigmoid(self.gate("o", x, a, h, c)) * g(c)
        if self.projection is not None:
            h = h @ self.projection.T
            if self.projection_bias is not None:
                h = h + self.projection_bias
            h = clip(h, projection_clip)
        return h, c

    def run(self, x, a, h, c, settings, backward=False):
        """Over steps along axis 0."""
        order = range(len(x))[:: -1 if backward else 1]
        outputs = np.zeros((len(x), len(h), h.shape[1]))
        for t in order:
            h, c = self.step(x[t], None if a is None else a[t], h, c, *settings)
            outputs[t] = h
        return outputs, h, c

    def give_weights(self, call, type_):
        inputs, units, outputs, _ = self.sizes
        for table, shape in ((self.w, (units, inputs)), (self.r, (units, outputs))):
            for g in "ifco":
                call.optional(type_, table[g], shape)
        for g in "ifo":
            call.optional(type_, self.p[g], (units,))
        for g in "ifco":
            call.optional(type_, self.b[g], (units,))
        call.optional(type_, self.projection, (outputs, units))
        call.optional(type_, self.projection_bias, (outputs,))

    def give_each(self, call, type_, table, shape):
        for g in "ifco":
            call.optional(type_, table[g], shape)


def tolerance_of(type_):
    return 1e-3 if type_ == "TENSOR_FLOAT16" else 1e-6


def lstm(about, settings=(4, 0, 0), type_="TENSOR_FLOAT32", short=False, **options):
    call = Call("LSTM", about, tolerance_of(type_))
    batch, inputs, units = 2, 3, 4
    outputs = 3 if options.get("project") else units
    cell = Lstm(inputs, units, outputs, **options)
    x, h, c = draw(batch, inputs), draw(batch, outputs), draw(batch, units)
    call.give(type_, x)
    cell.give_weights(call, type_)
    call.give(type_, h)
    call.give(type_, c)
    call.give("INT32", settings[0])
    call.give(FLOAT[type_], settings[1])
    call.give(FLOAT[type_], settings[2])
    if not short:
        cell.give_each(call, type_, cell.n, (units,))
    h, c = cell.step(x, None, h, c, *settings)
    gates = 3 if options.get("coupled") else 4
    for values in (np.zeros((batch, gates * units)), h, c, h):
        call.expect(type_, values)


def unidirectional_lstm(about, time_major, states, settings=(4, 0, 0), type_="TENSOR_FLOAT32",
                        **options):
    call = Call("UNIDIRECTIONAL_SEQUENCE_LSTM", about, tolerance_of(type_))
    time, batch, inputs, units = 4, 2, 3, 4
    outputs = 2 if options.get("project") else units
    cell = Lstm(inputs, units, outputs, **options)
    x, h, c = draw(time, batch, inputs), draw(batch, outputs), draw(batch, units)
    layout = (lambda it: it) if time_major else (lambda it: it.swapaxes(0, 1))
    call.give(type_, layout(x))
    cell.give_weights(call, type_)
    call.give(type_, h)
    call.give(type_, c)
    call.give("INT32", settings[0])
    call.give(FLOAT[type_], settings[1])
    call.give(FLOAT[type_], settings[2])
    call.give("BOOL", int(time_major))
    cell.give_each(call, type_, cell.n, (units,))
    y, h, c = cell.run(x, None, h, c, settings)
    for values in (layout(y), h, c)[: 3 if states else 1]:
        call.expect(type_, values)


def bidirectional_lstm(about, time_major, merged, states, linking, settings=(4, 0, 0),
                       type_="TENSOR_FLOAT32", **options):
    call = Call("BIDIRECTIONAL_SEQUENCE_LSTM", about, tolerance_of(type_))
    time, batch, inputs, auxiliary = 3, 2, 3, 2
    crossed = auxiliary if linking == "cross" else None
    backward_inputs = auxiliary if linking == "parallel" else inputs
    project = options.get("project")
    fw = Lstm(inputs, 4, 3 if project else 4, auxiliary=crossed, **options)
    bw = Lstm(backward_inputs, 3, 2 if project else 3, auxiliary=crossed, **options)
    x, a = draw(time, batch, inputs), draw(time, batch, auxiliary)
    layout = (lambda it: it) if time_major else (lambda it: it.swapaxes(0, 1))
    call.give(type_, layout(x))
    fw.give_weights(call, type_)
    bw.give_weights(call, type_)
    before = []
    for cell in (fw, bw):
        before.append((draw(batch, cell.sizes[2]), draw(batch, cell.sizes[1])))
        for state in before[-1]:
            call.give(type_, state)
    call.optional(type_, None if linking == "none" else layout(a), (0, 0, 0))
    for cell in (fw, bw):
        cell.give_each(call, type_, cell.a, (cell.sizes[1], 0))
    call.give("INT32", settings[0])
    call.give(FLOAT[type_], settings[1])
    call.give(FLOAT[type_], settings[2])
    call.give("BOOL", int(merged))
    call.give("BOOL", int(time_major))
    for cell in (fw, bw):
        cell.give_each(call, type_, cell.n, (cell.sizes[1],))
    for_both = a if linking == "cross" else None
    for_backward = a if linking == "parallel" else x
    fy, fh, fc = fw.run(x, for_both, *before[0], settings)
    by, bh, bc = bw.run(for_backward, for_both, *before[1], settings, backward=True)
    steps = [np.concatenate((fy, by), axis=2)] if merged else [fy, by]
    for values in [layout(it) for it in steps] + ([fh, fc, bh, bc] if states else []):
        call.expect(type_, values)


class Rnn:
    def __init__(self, inputs, units, auxiliary=None):
        self.w, self.r, self.b = draw(units, inputs), draw(units, units), draw(units)
        self.a = None if auxiliary is None else draw(units, auxiliary)

    def run(self, x, a, h, activation, backward=False):
        if backward:
            y, h = self.run(x[::-1], None if a is None else a[::-1], h, activation)
            return y[::-1], h
        outputs = []
        for t in range(len(x)):
            v = x[t] @ self.w.T + h @ self.r.T + self.b
            if self.a is not None and a is not None:
                v = v + a[t] @ self.a.T
            h = ACTIVATIONS[activation](v)
            outputs.append(h)
        return np.array(outputs), h


def rnn(about, activation, type_="TENSOR_FLOAT32"):
    call = Call("RNN", about, tolerance_of(type_))
    cell, x, h = Rnn(3, 4), draw(1, 2, 3), draw(2, 4)
    for values in (x[0], cell.w, cell.r, cell.b, h):
        call.give(type_, values)
    call.give("INT32", activation)
    _, h = cell.run(x, None, h, activation)
    call.expect(type_, h)
    call.expect(type_, h)


def unidirectional_rnn(about, time_major, states, activation, type_="TENSOR_FLOAT32"):
    call = Call("UNIDIRECTIONAL_SEQUENCE_RNN", about, tolerance_of(type_))
    cell, x, h = Rnn(3, 4), draw(4, 2, 3), draw(2, 4)
    layout = (lambda it: it) if time_major else (lambda it: it.swapaxes(0, 1))
    for values in (layout(x), cell.w, cell.r, cell.b, h):
        call.give(type_, values)
    call.give("INT32", activation)
    call.give("INT32", int(time_major))
    y, h = cell.run(x, None, h, activation)
    call.expect(type_, layout(y))
    if states:
        call.expect(type_, h)


def bidirectional_rnn(about, time_major, merged, states, linking, activation,
                      type_="TENSOR_FLOAT32"):
    call = Call("BIDIRECTIONAL_SEQUENCE_RNN", about, tolerance_of(type_))
    crossed = 2 if linking == "cross" else None
    fw = Rnn(3, 4, crossed)
    bw = Rnn(2 if linking == "parallel" else 3, 3, crossed)
    x, a, fh, bh = draw(4, 2, 3), draw(4, 2, 2), draw(2, 4), draw(2, 3)
    layout = (lambda it: it) if time_major else (lambda it: it.swapaxes(0, 1))
    for values in (layout(x), fw.w, fw.r, fw.b, fh, bw.w, bw.r, bw.b, bh):
        call.give(type_, values)
    call.optional(type_, None if linking == "none" else layout(a), (0,))
    call.optional(type_, fw.a, (0,))
    call.optional(type_, bw.a, (0,))
    call.give("INT32", activation)
    call.give("BOOL", int(time_major))
    call.give("BOOL", int(merged))
    for_both = a if linking == "cross" else None
    fy, fh = fw.run(x, for_both, fh, activation)
    by, bh = bw.run(a if linking == "parallel" else x, for_both, bh, activation, backward=True)
    steps = [np.concatenate((fy, by), axis=2)] if merged else [fy, by]
    for values in [layout(it) for it in steps] + ([fh, bh] if states else []):
        call.expect(type_, values)


def svdf(about, rank, bias, activation=0, type_="TENSOR_FLOAT32"):
    call = Call("SVDF", about, tolerance_of(type_))
    batch, inputs, filters, memory = 2, 3, 4, 5
    x, features, time = draw(batch, inputs), draw(filters, inputs), draw(filters, memory)
    b = draw(filters // rank) if bias else None
    state = draw(batch, filters, memory)
    call.give(type_, x)
    call.give(type_, features)
    call.give(type_, time)
    call.optional(type_, b, (filters // rank,))
    call.give(type_, state.reshape(batch, -1))
    call.give("INT32", rank)
    call.give("INT32", activation)
    memories = np.concatenate((state[:, :, :-1], (x @ features.T)[:, :, None]), axis=2)
    per_filter = (memories * time).sum(axis=2)
    y = per_filter.reshape(batch, filters // rank, rank).sum(axis=2)
    shifted = np.concatenate((memories[:, :, 1:], np.zeros((batch, filters, 1))), axis=2)
    call.expect(type_, shifted.reshape(batch, -1))
    call.expect(type_, ACTIVATIONS[activation](y + (b if bias else 0)))


# Integers: gemmlowp's fixed-point arithmetic, on arrays of Python-sized integers


def divide_rounding(x, bits):
    """By 2^bits; halves away from 0."""
    x = np.asarray(x, dtype=np.int64)
    if bits == 0:
        return x
    return np.sign(x) * ((np.abs(x) + (1 << (bits - 1))) >> bits)


def high_product(a, b, bits):
    """Of numbers with `bits` behind the point; halves up, saturated."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.minimum((product + (1 << (bits - 1))) >> bits, (1 << bits) - 1)


def multiplier(real):
    """Mantissa of 31 bits and exponent."""
    mantissa, exponent = np.frexp(float(real))
    mantissa = int(np.floor(mantissa * 2**31 + 0.5))
    if mantissa == 2**31:
        mantissa, exponent = mantissa // 2, exponent + 1
    return (mantissa, int(exponent)) if exponent >= -31 else (0, 0)


def multiply(x, factor):
    mantissa, exponent = factor
    x = np.asarray(x, np.int64)
    return divide_rounding(high_product(x << max(exponent, 0), mantissa, 31), max(-exponent, 0))


def shift_left(x, bits):
    return np.clip(np.asarray(x, np.int64) << bits, -(2**15), 2**15 - 1)


def in_16_bits(real, integer_bits=0):
    return int(np.floor(real * 2 ** (15 - integer_bits) + 0.5))


def fixed_exp(a, integer_bits):
    """Of numbers not above 0."""
    fraction = 15 - integer_bits
    quarter = 1 << (fraction - 2)
    rest = (a & (quarter - 1)) - quarter
    x = (rest << integer_bits) + in_16_bits(1 / 8)
    x2 = high_product(x, x, 15)
    x3, x4 = high_product(x2, x, 15), high_product(x2, x2, 15)
    third = in_16_bits(1 / 3)
    tail = divide_rounding(high_product(divide_rounding(x4, 2) + x3, third, 15) + x2, 1)
    constant = in_16_bits(np.exp(-1 / 8))
    result = np.minimum(constant + high_product(constant, x + tail, 15), 2**15 - 1)
    remainder = rest - a
    for power in range(-2, 5):
        if integer_bits > power:
            factor = in_16_bits(np.exp(-(2.0**power)))
            is_set = (remainder >> (fraction + power)) & 1
            result = np.where(is_set, high_product(result, factor, 15), result)
    if integer_bits > 5:
        result = np.where(a < -(32 << fraction), 0, result)
    return np.where(a == 0, 2**15 - 1, result)


def newton_reciprocal(half):
    x = in_16_bits(48 / 17, 2) + high_product(half, in_16_bits(-32 / 17, 2), 15)
    for _ in range(3):
        x = x + shift_left(high_product(x, (1 << 13) - high_product(half, x, 15), 15), 2)
    return x


def fixed_logistic(a):
    a = np.asarray(a, np.int64)
    x = newton_reciprocal((fixed_exp(-np.abs(a), 3) + 2**15) // 2)
    positive = shift_left(x, 1)
    return np.where(a == 0, 1 << 14, np.where(a > 0, positive, 2**15 - 1 - positive))


def fixed_tanh(a, integer_bits):
    a = np.asarray(a, np.int64)
    x = newton_reciprocal((fixed_exp(-np.abs(a), integer_bits + 1) + 2**15) // 2)
    return np.sign(a) * shift_left(x - (1 << 13), 2)


def to_16_bits(x):
    return np.clip(x, -(2**15), 2**15 - 1)


def quantized_16bit_lstm(about, batch, inputs, outputs):
    call = Call("QUANTIZED_16BIT_LSTM", about, 0)
    scale, zero = np.float32(0.004), 110
    x = random.integers(0, 256, (batch, inputs))
    w = random.integers(0, 256, (4, outputs, inputs))
    r = random.integers(0, 256, (4, outputs, outputs))
    b = random.integers(-40000, 40000, (4, outputs))
    c = random.integers(-9000, 9000, (batch, outputs))
    h = random.integers(0, 256, (batch, outputs))
    bias_scale = np.float32(scale / np.float32(128))
    call.give("TENSOR_QUANT8_ASYMM", x, 1 / 128, 128)
    for matrices in (w, r):
        for matrix in matrices:
            call.give("TENSOR_QUANT8_ASYMM", matrix, scale, zero)
    for bias in b:
        call.give("TENSOR_INT32", bias, bias_scale)
    call.give("TENSOR_QUANT16_SYMM", c, 2**-11)
    call.give("TENSOR_QUANT8_ASYMM", h, 1 / 128, 128)
    vector = np.concatenate((x, h), axis=1) - 128
    matrix = np.concatenate((r, w), axis=2) - zero
    sums = np.einsum("bk,guk->gbu", vector, matrix) + b[:, None, :]
    i, f, g, o = to_16_bits(multiply(sums, multiplier(4096 * float(bias_scale))))
    entering = high_product(fixed_logistic(i), fixed_tanh(g, 3), 15)
    c = to_16_bits(divide_rounding(entering, 4) + high_product(fixed_logistic(f), c, 15))
    h = high_product(fixed_logistic(o), fixed_tanh(shift_left(c, 1), 3), 15)
    call.expect("TENSOR_QUANT16_SYMM", c, 2**-11)
    h = 128 + np.clip(divide_rounding(h, 8), -128, 127)
    call.expect("TENSOR_QUANT8_ASYMM", h, 1 / 128, 128)


def inverse_square_root(number):
    """A multiplier, by Newton's method with 28 bits behind the point."""
    if number <= 1:
        return 2**31 - 1, 0
    shift = 11
    while number >= 1 << 29:
        number, shift = number // 4, shift + 1
    while number < 1 << 27:
        number, shift = number * 4, shift - 1
    number >>= 1
    half = int(divide_rounding(number, 1))
    product = lambda a, b: int(high_product(a, b, 31))
    x = 1 << 28
    for _ in range(5):
        cube = product(product(x, x), x) << 6
        x = (product((1 << 28) + (1 << 27), x) - product(half, cube)) << 3
    x = product(x, 1518500250)
    return (x << -shift, 0) if shift < 0 else (x, -shift)


def integer_norm(v, weights, bias, scale):
    """Rows of gates of 16 bits."""
    count = v.shape[1]
    factor = multiplier(scale)
    rows = []
    for row in v:
        mean = int(row.sum() * 1024 / count)  # towards 0
        variance = int((int((row * row).sum()) * ((1 << 20) // count) - mean * mean) / (1 << 20))
        normalized = multiply(1024 * row - mean, inverse_square_root(variance))
        weighted = normalized * weights + bias
        weighted = np.fix((weighted + np.where(weighted > 0, 512, -512)) / 1024).astype(np.int64)
        rows.append(to_16_bits(multiply(weighted, (factor[0], factor[1] + 12))))
    return np.array(rows)


def quantized_lstm(about, coupled=False, peephole=False, norm=False, project=False,
                   projection_bias=False, cell_clip=0.0, projection_clip=0.0, hidden_zero=0,
                   cell_exponent=-11):
    call = Call("QUANTIZED_LSTM", about, 0)
    batch, inputs, units = 3, 5, 4
    outputs = 3 if project else units
    f32 = np.float32
    gates = "fco" if coupled else "ifco"
    integers = lambda *shape, most=127: random.integers(-most, most + 1, shape)
    w = {g: integers(units, inputs) for g in gates}
    r = {g: integers(units, outputs) for g in gates}
    p = {g: integers(units, most=32767) for g in gates if peephole and g != "c"}
    n = {g: random.integers(4000, 30000, units) for g in gates if norm}
    # In steps of the first product, or of 2^-10 of the norm's weights.
    b = {g: integers(units, most=8_000_000 if norm else 6000) for g in gates}
    x, x_scale, x_zero = integers(batch, inputs), f32(1 / 64), 5
    h, h_scale, h_zero = integers(batch, outputs), f32(1 / 100), -7
    cell_scale = f32(2.0**cell_exponent)
    c = integers(batch, units, most=9000)
    w_scale = {g: f32(s) for g, s in zip("ifco", (0.0078, 0.0061, 0.0092, 0.0057))}
    r_scale = {g: f32(s) for g, s in zip("ifco", (0.0043, 0.0068, 0.0051, 0.0074))}
    p_scale = {g: f32(s) for g, s in zip("ifo", (3.1e-5, 2.2e-5, 4.0e-5))}
    n_scale = {g: f32(s) for g, s in zip("ifco", (3.05e-5, 2.9e-5, 3.3e-5, 2.7e-5))}
    gate_scale = {g: f32(0.007 if norm else 2**-12) for g in "ifco"}
    hidden_scale = f32(0.0079)
    matrix = integers(outputs, units) if project else None
    matrix_scale = f32(0.0066)
    matrix_bias = integers(outputs, most=4000) if projection_bias else None

    q8 = "TENSOR_QUANT8_SYMM"
    q16 = "TENSOR_QUANT16_SYMM"
    call.give("TENSOR_QUANT8_ASYMM_SIGNED", x, x_scale, x_zero)
    for g in "ifco":
        call.optional(q8, w.get(g), (units, inputs), w_scale[g])
    for g in "ifco":
        call.optional(q8, r.get(g), (units, outputs), r_scale[g])
    for g in "ifo":
        call.optional(q16, p.get(g), (units,), p_scale[g])
    for g in "ifco":
        call.optional("TENSOR_INT32", b.get(g), (units,))
    call.optional(q8, matrix, (outputs, units), matrix_scale)
    call.optional("TENSOR_INT32", matrix_bias, (outputs,))
    call.give("TENSOR_QUANT8_ASYMM_SIGNED", h, h_scale, h_zero)
    call.give(q16, c, cell_scale)
    for g in "ifco":
        call.optional(q16, n.get(g), (units,), n_scale[g])
    for number in (cell_clip, projection_clip, *(gate_scale[g] for g in "ifco")):
        call.line("in", "FLOAT32", float(f32(number)))
    call.give("INT32", hidden_zero)
    call.line("in", "FLOAT32", float(hidden_scale))

    def gate(g, c):
        bias = 0 if norm else b[g]
        of_x = f32(f32(w_scale[g] * x_scale) / gate_scale[g])
        v = to_16_bits(multiply((x - x_zero) @ w[g].T + bias, multiplier(of_x)))
        of_h = f32(f32(r_scale[g] * h_scale) / gate_scale[g])
        v = to_16_bits(v + multiply((h - h_zero) @ r[g].T, multiplier(of_h)))
        if g in p:
            of_c = f32(2.0**cell_exponent * float(p_scale[g]) / float(gate_scale[g]))
            v = to_16_bits(v + multiply(c * p[g], multiplier(of_c)))
        return integer_norm(v, n[g], b[g], n_scale[g]) if norm else v

    f = fixed_logistic(gate("f", c))
    i = 2**15 - 1 - f if coupled else fixed_logistic(gate("i", c))
    entering = i * fixed_tanh(gate("c", c), 3)
    c = to_16_bits(divide_rounding(f * c, 15) + divide_rounding(entering, 30 + cell_exponent))
    if cell_clip:
        c = np.clip(c, -int(f32(cell_clip) / cell_scale), int(f32(cell_clip) / cell_scale))
    out = fixed_logistic(gate("o", c)) * fixed_tanh(c, 15 + cell_exponent)
    hidden = multiply(out, multiplier(f32(2.0**-15 / float(hidden_scale) * 2.0**-15)))
    if project:
        hidden = np.clip(hidden - hidden_zero, -128, 127)
        sums = hidden @ matrix.T + hidden_zero * matrix.sum(axis=1)
        if projection_bias:
            sums = sums + matrix_bias
        scale = f32(f32(matrix_scale * hidden_scale) / h_scale)
        y = np.clip(multiply(sums, multiplier(scale)) + h_zero, -128, 127)
        if projection_clip:
            distance = int(f32(projection_clip) / h_scale)
            y = np.clip(y, -distance, distance)
    else:
        y = np.clip(hidden + hidden_zero, -128, 127)
    call.expect("TENSOR_QUANT8_ASYMM_SIGNED", y, h_scale, h_zero)
    call.expect(q16, c, cell_scale)
    call.expect("TENSOR_QUANT8_ASYMM_SIGNED", y, h_scale, h_zero)


print("# Written by recurrent.py; calls.py says how to read it.")
lstm("without anything optional", short=True)
lstm("the list of 1.2 without layer norm, activation none", settings=(0, 0, 0))
lstm("coupled, RELU", settings=(1, 0, 0), coupled=True)
lstm("peepholes, RELU6", settings=(3, 0, 0), peephole=True)
lstm("coupled, peepholes, sigmoid", settings=(6, 0, 0), coupled=True, peephole=True)
lstm("projection", project=True)
lstm("projection with bias, both clips", settings=(4, 0.25, 0.125), project=True, projection_bias=True)
lstm("layer norm", norm=True)
lstm("everything", settings=(4, 0.5, 0.5), peephole=True, project=True, projection_bias=True, norm=True)
lstm("coupled with everything", coupled=True, peephole=True, project=True, norm=True)
lstm("half precision", type_="TENSOR_FLOAT16", peephole=True, norm=True)
unidirectional_lstm("time-major", True, False)
unidirectional_lstm("batch-major with states", False, True, peephole=True)
unidirectional_lstm("projection, layer norm, clips", True, True, settings=(4, 0.5, 0.25), project=True,
                    projection_bias=True, norm=True)
unidirectional_lstm("coupled, half precision", False, True, type_="TENSOR_FLOAT16", coupled=True)
bidirectional_lstm("one input", True, False, False, "none")
bidirectional_lstm("one input, merged, batch-major", False, True, False, "none", peephole=True)
bidirectional_lstm("auxiliary weights, states", True, False, True, "cross", norm=True)
bidirectional_lstm("auxiliary weights, merged, states, coupled", False, True, True, "cross", coupled=True)
bidirectional_lstm("auxiliary input for the backward cell", True, False, True, "parallel", project=True)
bidirectional_lstm("half precision", False, False, False, "cross", type_="TENSOR_FLOAT16")
rnn("no activation", 0)
rnn("RELU1", 2)
rnn("half precision, RELU", 1, "TENSOR_FLOAT16")
unidirectional_rnn("time-major, RELU6", True, False, 3)
unidirectional_rnn("batch-major, state, RELU1", False, True, 2)
unidirectional_rnn("half precision", True, True, 2, "TENSOR_FLOAT16")
bidirectional_rnn("one input", True, False, False, "none", 2)
bidirectional_rnn("one input, merged, states, batch-major", False, True, True, "none", 2)
bidirectional_rnn("auxiliary weights, states", True, False, True, "cross", 1)
bidirectional_rnn("auxiliary input for the backward cell, merged", False, True, False, "parallel", 2)
bidirectional_rnn("half precision", True, False, False, "cross", 2, "TENSOR_FLOAT16")
svdf("rank 1", 1, False)
svdf("rank 2, bias, RELU", 2, True, 1)
svdf("rank 4, bias, RELU1", 4, True, 2)
svdf("half precision", 1, True, 0, "TENSOR_FLOAT16")
quantized_16bit_lstm("fewer inputs than outputs", 2, 2, 5)
quantized_16bit_lstm("more inputs than outputs", 2, 6, 3)
quantized_lstm("without anything optional")
quantized_lstm("layer norm", norm=True)
quantized_lstm("coupled, peepholes, cell of 2^-15", coupled=True, peephole=True, cell_exponent=-15)
quantized_lstm("peepholes, cell of 2^-9, hidden zero point", peephole=True, cell_exponent=-9, hidden_zero=9)
quantized_lstm("projection without bias, hidden zero point", project=True, hidden_zero=-11)
quantized_lstm("coupled with everything", coupled=True, peephole=True, norm=True, project=True,
               projection_bias=True, hidden_zero=6)
quantized_lstm("everything and both clips", peephole=True, norm=True, project=True, projection_bias=True,
               cell_clip=1.5, projection_clip=0.4, hidden_zero=-3)
quantized_lstm("peepholes and layer norm", peephole=True, norm=True, cell_clip=1.0)
quantized_lstm("projection with bias, layer norm, both clips", project=True, projection_bias=True, norm=True,
               cell_clip=1.5, projection_clip=0.4, hidden_zero=-3)
quantized_lstm("coupled, projection with bias, hidden zero point", coupled=True, project=True,
               projection_bias=True, hidden_zero=20)
