"""LSTM, RNN and SVDF operators in float and with int8 weights.

States are variable tensors that start at zero and go from one run to the next."""

import numpy as np

from . import graph, judge
from .single import draw, random, weights

BATCH, TIME, SIZE, CELLS, OUT = 2, 4, 5, 6, 3
RUNS = 3


class Cell:
    """A model with one recurrent operator; makes its constants as asked for."""

    def __init__(self, name, int8):
        self.name, self.int8 = name, int8
        self.file = graph.File()
        self.main = self.file.graph()
        self.count = 0

    def matrix(self, *shape):
        """Weights, int8 with one scale where asked for."""
        value = weights(f"{self.name} {self._next()}", shape, 0.8)
        if not self.int8:
            return self.main.const(f"weights{self.count}", value)
        quant = graph.Quant.per_tensor(np.abs(value).max() / 127)
        return self.main.const(f"weights{self.count}", quant.quantize(value, "int8"), quant=quant)

    def peephole(self, size):
        """A diagonal, which is typed as the weights are."""
        return self.matrix(size)

    def vector(self, size, low=-0.3, high=0.3):
        return self.main.const(f"vector{self._next()}",
                               draw(random(f"{self.name} v{self.count}"), (size,), low, high))

    def state(self, *shape):
        return self.main.tensor(f"state{self._next()}", shape, variable=True)

    def finish(self, op, inputs, out_shapes, in_shape, **options):
        outputs = [self.main.tensor(f"output{i}", shape) for i, shape in enumerate(out_shapes)]
        self.main.op(op, inputs, outputs, **options)
        self.main.outputs(*outputs)
        rng = random(self.name)
        runs = [judge.Run([draw(rng, in_shape)]) for _ in range(RUNS)]
        return judge.Made(self.file.finish(), runs, "schema", "hybrid" if self.int8 else "float32",
                          keeps_state=True)

    def _next(self):
        self.count += 1
        return self.count


def lstm_inputs(cell, size, cells, out, cifg, peephole, projection, batch, states=True):
    """Inputs 1 to 19 of an LSTM (to 17 without states)."""
    gates = 4
    inputs = [None if cifg and i == 0 else cell.matrix(cells, size) for i in range(gates)]
    inputs += [None if cifg and i == 0 else cell.matrix(cells, out) for i in range(gates)]
    inputs += [cell.peephole(cells) if peephole and not (cifg and i == 0) else None for i in range(3)]
    inputs += [None if cifg and i == 0 else cell.vector(cells) for i in range(gates)]
    inputs += [cell.matrix(out, cells) if projection else None,
               cell.vector(out) if projection == "bias" else None]
    return inputs + ([cell.state(batch, out), cell.state(batch, cells)] if states else [])


def lstm(op, name, int8=False, cifg=False, peephole=False, projection=False, norm=False,
         time_major=False, clip=0.0, projection_clip=0.0, asymmetric=False, act="TANH"):
    def make():
        cell = Cell(name, int8)
        out = OUT if projection else CELLS
        if op == "LSTM":
            shape, result = (BATCH, SIZE), (BATCH, out)
        else:
            lead = (TIME, BATCH) if time_major else (BATCH, TIME)
            shape, result = lead + (SIZE,), lead + (out,)
        x = cell.main.input("input", shape)
        inputs = [x] + lstm_inputs(cell, SIZE, CELLS, out, cifg, peephole, projection, BATCH)
        if norm:
            inputs += [None if cifg and i == 0 else cell.vector(CELLS, 0.5, 1.5) for i in range(4)]
        options = dict(fusedActivationFunction=act, cellClip=clip, projClip=projection_clip,
                       asymmetricQuantizeInputs=asymmetric)
        if op != "LSTM":
            options["timeMajor"] = time_major
        return cell.finish(op, inputs, [result], shape, **options)
    return name, make


def lstms():
    for op, prefix in (("UNIDIRECTIONAL_SEQUENCE_LSTM", "unidirectional_lstm"), ("LSTM", "lstm")):
        yield lstm(op, f"{prefix}_plain")
        yield lstm(op, f"{prefix}_cifg", cifg=True)
        yield lstm(op, f"{prefix}_peephole", peephole=True)
        yield lstm(op, f"{prefix}_cifg_peephole", cifg=True, peephole=True)
        yield lstm(op, f"{prefix}_projection", projection=True)
        yield lstm(op, f"{prefix}_projection_bias", peephole=True, projection="bias")
        yield lstm(op, f"{prefix}_layer_norm", norm=True)
        yield lstm(op, f"{prefix}_everything", peephole=True, projection="bias", norm=True, clip=0.4,
                   projection_clip=0.2)
        yield lstm(op, f"{prefix}_cifg_layer_norm_projection", cifg=True, norm=True, projection=True)
        yield lstm(op, f"{prefix}_cell_clip", clip=0.1)
        yield lstm(op, f"{prefix}_relu", act="RELU")
        yield lstm(op, f"{prefix}_hybrid", int8=True)
        yield lstm(op, f"{prefix}_hybrid_asym", int8=True, asymmetric=True)
        yield lstm(op, f"{prefix}_hybrid_everything", int8=True, peephole=True, projection="bias",
                   norm=True)
    yield lstm("UNIDIRECTIONAL_SEQUENCE_LSTM", "unidirectional_lstm_time_major", time_major=True)
    yield "lstm_basic", lstm_basic
    yield "lstm_basic_uint8", lstm_basic_uint8


def lstm_basic():
    """The five-input kernel of old exports: all gates in one matrix."""
    cell = Cell("lstm_basic", False)
    main = cell.main
    x, activation, state = (main.input(name, shape) for name, shape in (
        ("input", (BATCH, SIZE)), ("activation", (BATCH, CELLS)), ("state", (BATCH, CELLS))))
    outputs = [main.tensor(f"output{i}", (BATCH, size))
               for i, size in enumerate((CELLS, CELLS, SIZE + CELLS, 4 * CELLS))]
    main.op("LSTM", [x, activation, cell.matrix(4 * CELLS, SIZE + CELLS), cell.vector(4 * CELLS), state],
            outputs, kernelType=1, fusedActivationFunction="TANH")
    main.outputs(*outputs[:2])
    main.raw.inputs = [x.index, activation.index, state.index]
    rng = random("lstm_basic")
    values = [draw(rng, (BATCH, size)) for size in (SIZE, CELLS, CELLS)]
    return judge.Made(cell.file.finish(), [judge.Run(values)], "schema")


def lstm_basic_uint8():
    """The same in uint8 with an int16 state, as NN HAL's QUANTIZED_16BIT_LSTM."""
    file = graph.File()
    main = file.graph()
    activations = graph.Quant.per_tensor(1 / 128, 128)
    state_quant = graph.Quant.per_tensor(16 / 32768)
    real = weights("lstm_basic_uint8", (4 * CELLS, SIZE + CELLS))
    matrix = graph.Quant.per_tensor(1 / 128, 128)
    bias_quant = graph.Quant.per_tensor(1 / 128 / 128)
    bias = draw(random("lstm_basic_uint8 bias"), (4 * CELLS,), -0.3, 0.3)
    x = main.input("input", (BATCH, SIZE), "uint8", activations)
    activation = main.input("activation", (BATCH, CELLS), "uint8", activations)
    state = main.input("state", (BATCH, CELLS), "int16", state_quant)
    outputs = [main.tensor("output0", (BATCH, CELLS), "uint8", activations),
               main.tensor("output1", (BATCH, CELLS), "int16", state_quant),
               main.tensor("output2", (BATCH, SIZE + CELLS), "uint8", activations),
               main.tensor("output3", (BATCH, 4 * CELLS), "int16", graph.Quant.per_tensor(8 / 32768))]
    main.op("LSTM", [x, activation, main.const("weights", matrix.quantize(real, "uint8"), quant=matrix),
                     main.const("bias", bias_quant.quantize(bias, "int32"), quant=bias_quant), state],
            outputs, kernelType=1, fusedActivationFunction="TANH")
    main.outputs(*outputs[:2])
    rng = random("lstm_basic_uint8 values")
    values = [activations.quantize(draw(rng, (BATCH, SIZE)), "uint8"),
              activations.quantize(draw(rng, (BATCH, CELLS)), "uint8"),
              state_quant.quantize(draw(rng, (BATCH, CELLS)), "int16")]
    return judge.Made(file.finish(), [judge.Run(values)], "schema", "uint8")


def bidirectional_lstm(name, int8=False, merge=False, time_major=False, **more):
    def make():
        cell = Cell(name, int8)
        settings = dict(cifg=False, peephole=False, projection=False, **more)
        out = OUT if settings["projection"] else CELLS
        lead = (TIME, BATCH) if time_major else (BATCH, TIME)
        inputs = [cell.main.input("input", lead + (SIZE,))]
        for _ in range(2):
            inputs += lstm_inputs(cell, SIZE, CELLS, out, batch=BATCH, states=False, **settings)
        inputs += [cell.state(BATCH, size) for _ in range(2) for size in (out, CELLS)]
        inputs += [None] * 9
        shapes = [lead + (2 * out,)] if merge else [lead + (out,)] * 2
        return cell.finish("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, shapes, lead + (SIZE,),
                           fusedActivationFunction="TANH", mergeOutputs=merge, timeMajor=time_major)
    return name, make


def rnn(op, name, int8=False, time_major=False, act="TANH", asymmetric=False):
    def make():
        cell = Cell(name, int8)
        if op == "RNN":
            lead, options = (BATCH,), {}
        else:
            lead, options = ((TIME, BATCH) if time_major else (BATCH, TIME)), {"timeMajor": time_major}
        x = cell.main.input("input", lead + (SIZE,))
        inputs = [x, cell.matrix(CELLS, SIZE), cell.matrix(CELLS, CELLS), cell.vector(CELLS),
                  cell.state(BATCH, CELLS)]
        return cell.finish(op, inputs, [lead + (CELLS,)], lead + (SIZE,), fusedActivationFunction=act,
                           asymmetricQuantizeInputs=asymmetric, **options)
    return name, make


def bidirectional_rnn(name, int8=False, merge=False, time_major=False):
    def make():
        cell = Cell(name, int8)
        lead = (TIME, BATCH) if time_major else (BATCH, TIME)
        inputs = [cell.main.input("input", lead + (SIZE,))]
        for _ in range(2):
            inputs += [cell.matrix(CELLS, SIZE), cell.matrix(CELLS, CELLS), cell.vector(CELLS),
                       cell.state(BATCH, CELLS)]
        shapes = [lead + (2 * CELLS,)] if merge else [lead + (CELLS,)] * 2
        return cell.finish("BIDIRECTIONAL_SEQUENCE_RNN", inputs + [None] * 3, shapes, lead + (SIZE,),
                           fusedActivationFunction="TANH", mergeOutputs=merge, timeMajor=time_major)
    return name, make


def rnns():
    for op, prefix in (("RNN", "rnn"), ("UNIDIRECTIONAL_SEQUENCE_RNN", "unidirectional_rnn")):
        yield rnn(op, f"{prefix}_tanh")
        yield rnn(op, f"{prefix}_relu", act="RELU")
        yield rnn(op, f"{prefix}_hybrid", int8=True)
        yield rnn(op, f"{prefix}_hybrid_asym", int8=True, asymmetric=True)
    yield rnn("UNIDIRECTIONAL_SEQUENCE_RNN", "unidirectional_rnn_time_major", time_major=True)
    for merge in (False, True):
        for time_major in (False, True):
            suffix = "_merged" * merge + "_time_major" * time_major
            yield bidirectional_rnn(f"bidirectional_rnn{suffix}", merge=merge, time_major=time_major)
            if time_major or not merge:     # else LiteRT 2.3.0 reads memory it has not written
                yield bidirectional_lstm(f"bidirectional_lstm{suffix}", merge=merge,
                                         time_major=time_major)
    yield bidirectional_rnn("bidirectional_rnn_hybrid", int8=True)
    yield bidirectional_lstm("bidirectional_lstm_hybrid", int8=True)


def svdf(name, rank=1, int8=False, act="NONE", with_bias=True, asymmetric=False):
    def make():
        cell = Cell(name, int8)
        units, memory = 4, 7
        filters = units * rank
        x = cell.main.input("input", (BATCH, SIZE))
        inputs = [x, cell.matrix(filters, SIZE), cell.matrix(filters, memory),
                  cell.vector(units) if with_bias else None, cell.state(BATCH, memory * filters)]
        return cell.finish("SVDF", inputs, [(BATCH, units)], (BATCH, SIZE), rank=rank,
                           fusedActivationFunction=act, asymmetricQuantizeInputs=asymmetric)
    return name, make


def svdf_int8():
    """Full int8 with int16 time weights and state."""
    file = graph.File()
    main = file.graph()
    units, rank, memory = 4, 2, 6
    filters = units * rank
    activations = graph.Quant.per_tensor(1 / 64, -3)
    feature, time_quant = graph.Quant.per_tensor(0.8 / 127), graph.Quant.per_tensor(0.8 / 32767)
    state = graph.Quant.per_tensor(4 / 32767)
    bias = graph.Quant.per_tensor(np.float32(state.scale[0]) * np.float32(time_quant.scale[0]))
    out = graph.Quant.per_tensor(4 / 127, 2)
    x = main.input("input", (BATCH, SIZE), "int8", activations)
    inputs = [x, main.const("feature", feature.quantize(
        weights("svdf feature", (filters, SIZE), 0.8), "int8"), quant=feature),
        main.const("time", time_quant.quantize(weights("svdf time", (filters, memory), 0.8), "int16"),
                   quant=time_quant),
        main.const("bias", bias.quantize(draw(random("svdf bias"), (units,)), "int32"), quant=bias),
        main.tensor("state", (BATCH, memory * filters), "int16", state, variable=True)]
    y = main.tensor("output", (BATCH, units), "int8", out)
    main.outputs(*main.op("SVDF", inputs, [y], rank=rank, fusedActivationFunction="RELU"))
    rng = random("svdf int8")
    runs = [judge.Run([activations.quantize(draw(rng, (BATCH, SIZE)), "int8")]) for _ in range(RUNS)]
    return judge.Made(file.finish(), runs, "schema", "int8", keeps_state=True)


def all_cases():
    yield from lstms()
    yield from rnns()
    yield svdf("svdf_rank1")
    yield svdf("svdf_rank2", rank=2)
    yield svdf("svdf_relu", act="RELU")
    yield svdf("svdf_no_bias", with_bias=False)
    yield svdf("svdf_hybrid", int8=True)
    yield svdf("svdf_hybrid_asym", int8=True, asymmetric=True)
    yield "svdf_int8", svdf_int8
