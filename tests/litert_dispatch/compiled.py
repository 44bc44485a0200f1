"""CompiledModel of the wheel ai-edge-litert, with nnhal's libraries and without."""

import os
import re
import tempfile

import numpy as np
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.environment import Environment
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
from ai_edge_litert.interpreter import Interpreter, OpResolverType

FOLDER = os.environ.get("NNHAL_LITERT_LIBRARIES", "")
BOTH = HardwareAccelerator.NPU | HardwareAccelerator.CPU
OURS = HardwareAccelerator.NPU
HOST = "ai-edge-litert, CompiledModel"
_environment = None


def environment():
    """The environment with nnhal's libraries; one for the process."""
    global _environment
    if _environment is None:
        _environment = Environment.create(dispatch_library_path=FOLDER, compiler_plugin_path=FOLDER)
    return _environment


def compiled(model, accelerators=BOTH):
    """A model that nnhal may take a part of; `model` is a path or the bytes of a file."""
    make = CompiledModel.from_buffer if isinstance(model, bytes) else CompiledModel.from_file
    return make(model if isinstance(model, bytes) else str(model), hardware_accel=accelerators,
                environment=environment())


def plain(model):
    """A model that XNNPACK runs."""
    make = CompiledModel.from_buffer if isinstance(model, bytes) else CompiledModel.from_file
    return make(model if isinstance(model, bytes) else str(model),
                hardware_accel=HardwareAccelerator.CPU)


def interpreter(model):
    """LiteRT's interpreter, with its own kernels only."""
    source = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    return Interpreter(**source, num_threads=1,
                       experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def run(model, inputs, outputs, signature=0):
    """Runs a signature. `outputs`: a shape and type for each."""
    key = list(model.get_signature_list())[signature]
    details = model.get_input_tensor_details(key)
    names = model.get_signature_list()[key]["inputs"]
    for at, (name, value) in enumerate(zip(names, inputs)):
        if tuple(details[name]["shape"]) != value.shape:
            model.resize_input_tensor(at, value.shape, signature)
    taken, given = model.create_input_buffers(signature), model.create_output_buffers(signature)
    for buffer, value in zip(taken, inputs):
        buffer.write(value)
    model.run_by_index(signature, taken, given)
    return [buffer.read(int(np.prod(shape)), kind).reshape(shape)
            for buffer, (shape, kind) in zip(given, outputs)]


class Log:
    """What the process writes to standard error meanwhile, LiteRT's lines included."""

    def __enter__(self):
        self._file = tempfile.TemporaryFile()
        self._own = os.dup(2)
        os.dup2(self._file.fileno(), 2)
        return self

    def __exit__(self, *_):
        os.dup2(self._own, 2)
        os.close(self._own)
        self._file.seek(0)
        self.text = self._file.read().decode(errors="replace")
        self._file.close()

    def runs(self):
        """How often a partition ran on nnhal: lines of the option `log:debug`."""
        return len(re.findall(r"partition \d+: run \d+", self.text))

    def operators(self):
        """How many operators nnhal took, and how many there are; lines of `log:info`."""
        pairs = re.findall(r"(\d+) of (\d+) operators are taken", self.text)
        return tuple(sum(int(pair[at]) for pair in pairs) for at in (0, 1))

    def errors(self):
        """nnhal's own sentences about what failed."""
        return [line for line in self.text.splitlines() if line.startswith("nnhal: ")]
