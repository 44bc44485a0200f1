"""`LiteRtRunCompiledModelAsync` of the wheel's C library, which its Python does not have: what a C program gets."""

import ctypes
import pathlib

import ai_edge_litert
import numpy as np

HOST_MEMORY_ALIGNMENT = 64
NPU, CPU = 4, 1
STRING = 8


class Option(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_int), ("kind", ctypes.c_int64), ("text", ctypes.c_char_p)]


class TensorType(ctypes.Structure):
    _fields_ = [("element_type", ctypes.c_int), ("rank", ctypes.c_uint32), ("dimensions", ctypes.c_int32 * 8),
                ("strides", ctypes.c_uint32 * 8)]


class Program:
    """A compiled model with inputs and outputs of 32-bit floats."""

    def __init__(self, folder, model):
        self._library = ctypes.CDLL(str(pathlib.Path(ai_edge_litert.__file__).parent / "libLiteRt.so"))
        folder = str(folder).encode()
        options = (Option * 2)(Option(0, STRING, folder), Option(1, STRING, folder))
        self.environment = self._made("LiteRtCreateEnvironment", 2, options)
        self._bytes = model
        self.model = self._made("LiteRtCreateModelFromBuffer", self.environment, model, ctypes.c_size_t(len(model)))
        settings = self._made("LiteRtCreateOptions")
        self._check(self._library.LiteRtSetOptionsHardwareAccelerators(settings, NPU | CPU))
        self.compiled = self._made("LiteRtCreateCompiledModel", self.environment, self.model, settings)

    def _check(self, status):
        assert status == 0, f"status {status}"

    def _made(self, name, *arguments):
        made = ctypes.c_void_p()
        self._check(getattr(self._library, name)(*arguments, ctypes.byref(made)))
        return made

    def buffer(self, values):
        """A buffer in the memory of an array that is aligned, and that array."""
        room = np.zeros(values.nbytes + HOST_MEMORY_ALIGNMENT, np.uint8)
        at = -room.ctypes.data % HOST_MEMORY_ALIGNMENT
        array = room[at:at + values.nbytes].view(np.float32).reshape(values.shape)
        array[...] = values
        kind = TensorType(1, values.ndim, (ctypes.c_int32 * 8)(*values.shape))
        made = self._made("LiteRtCreateTensorBufferFromHostMemory", ctypes.byref(kind),
                          ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(values.nbytes), None)
        return made, array

    def run_asynchronously(self, taken, given):
        """Whether the run goes on afterwards."""
        one = lambda buffer: (ctypes.c_void_p * 1)(buffer.value)
        later = ctypes.c_bool(True)
        self._check(self._library.LiteRtRunCompiledModelAsync(
            self.compiled, ctypes.c_size_t(0), ctypes.c_size_t(1), one(taken), ctypes.c_size_t(1), one(given),
            ctypes.byref(later)))
        return later.value

    def has_event(self, buffer):
        has = ctypes.c_bool(True)
        self._check(self._library.LiteRtHasTensorBufferEvent(buffer, ctypes.byref(has)))
        return has.value


def check(folder, model, log):
    """Runs relu of four numbers, asynchronously as far as there is such a thing."""
    with log as lines:
        program = Program(folder, model)
        (taken, _), (given, answer) = (program.buffer(np.float32([[1, -1, 2, -2]])),
                                       program.buffer(np.zeros((1, 4), np.float32)))
        later = program.run_asynchronously(taken, given)
        np.testing.assert_array_equal(answer, [[1, 0, 2, 0]])
        assert not later and not program.has_event(given)
    assert lines.runs() == 1 and not lines.errors(), lines.text
