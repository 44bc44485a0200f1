"""The functions of `libtensorflowlite_c.so` that the judge calls, by ctypes."""

import ctypes
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_float, c_int, c_int32, c_size_t, c_void_p

import numpy as np


class QuantizationParams(ctypes.Structure):
    _fields_ = [("scale", c_float), ("zero_point", c_int32)]


# Names without `TfLite`: what they return, what they take.
FUNCTIONS = {
    "Version": (c_char_p, []),
    "ModelCreate": (c_void_p, [c_void_p, c_size_t]),
    "ModelCreateFromFile": (c_void_p, [c_char_p]),
    "ModelDelete": (None, [c_void_p]),
    "InterpreterOptionsCreate": (c_void_p, []),
    "InterpreterOptionsDelete": (None, [c_void_p]),
    "InterpreterOptionsSetNumThreads": (None, [c_void_p, c_int32]),
    "InterpreterOptionsEnableCancellation": (c_int, [c_void_p, c_bool]),
    "InterpreterCreate": (c_void_p, [c_void_p, c_void_p]),
    "InterpreterDelete": (None, [c_void_p]),
    "InterpreterGetInputTensorCount": (c_int32, [c_void_p]),
    "InterpreterGetOutputTensorCount": (c_int32, [c_void_p]),
    "InterpreterGetInputTensor": (c_void_p, [c_void_p, c_int32]),
    "InterpreterGetOutputTensor": (c_void_p, [c_void_p, c_int32]),
    "InterpreterResizeInputTensor": (c_int, [c_void_p, c_int32, POINTER(c_int), c_int32]),
    "InterpreterAllocateTensors": (c_int, [c_void_p]),
    "InterpreterInvoke": (c_int, [c_void_p]),
    "InterpreterResetVariableTensors": (c_int, [c_void_p]),
    "InterpreterGetSignatureCount": (c_int32, [c_void_p]),
    "InterpreterGetSignatureKey": (c_char_p, [c_void_p, c_int32]),
    "InterpreterGetSignatureRunner": (c_void_p, [c_void_p, c_char_p]),
    "SignatureRunnerGetInputCount": (c_size_t, [c_void_p]),
    "SignatureRunnerGetInputName": (c_char_p, [c_void_p, c_int32]),
    "SignatureRunnerGetInputTensor": (c_void_p, [c_void_p, c_char_p]),
    "SignatureRunnerResizeInputTensor": (c_int, [c_void_p, c_char_p, POINTER(c_int), c_int32]),
    "SignatureRunnerAllocateTensors": (c_int, [c_void_p]),
    "SignatureRunnerInvoke": (c_int, [c_void_p]),
    "SignatureRunnerGetOutputCount": (c_size_t, [c_void_p]),
    "SignatureRunnerGetOutputName": (c_char_p, [c_void_p, c_int32]),
    "SignatureRunnerGetOutputTensor": (c_void_p, [c_void_p, c_char_p]),
    "SignatureRunnerDelete": (None, [c_void_p]),
    "TensorType": (c_int, [c_void_p]),
    "TensorNumDims": (c_int32, [c_void_p]),
    "TensorDim": (c_int32, [c_void_p, c_int32]),
    "TensorByteSize": (c_size_t, [c_void_p]),
    "TensorData": (c_void_p, [c_void_p]),
    "TensorName": (c_char_p, [c_void_p]),
    "TensorQuantizationParams": (QuantizationParams, [c_void_p]),
    "TensorCopyFromBuffer": (c_int, [c_void_p, c_void_p, c_size_t]),
    "TensorCopyToBuffer": (c_int, [c_void_p, c_void_p, c_size_t]),
}
TYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16, 9: np.int8, 10: np.float16,
         11: np.float64, 13: np.uint64, 16: np.uint32, 17: np.uint16}


def load(path):
    """The library, with its functions as attributes without `TfLite`."""
    library = ctypes.CDLL(os.path.abspath(path))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, "TfLite" + name)
        function.restype, function.argtypes = result, arguments
        setattr(library, name, function)
    return library


class Refused(Exception):
    """A call did not answer kTfLiteOk."""


def check(what, status):
    if status:
        raise Refused(f"{what}: status {status}")


def shape(library, tensor):
    return tuple(library.TensorDim(tensor, axis) for axis in range(library.TensorNumDims(tensor)))


def facts(library, tensor):
    """What a program can ask of a tensor."""
    params = library.TensorQuantizationParams(tensor)
    return (library.TensorType(tensor), shape(library, tensor), library.TensorByteSize(tensor),
            library.TensorName(tensor), params.scale, params.zero_point)


def give(library, tensor, value):
    value = np.ascontiguousarray(value)
    check("CopyFromBuffer",
          library.TensorCopyFromBuffer(tensor, value.ctypes.data_as(c_void_p), value.nbytes))


def take(library, tensor):
    value = np.empty(shape(library, tensor), TYPES[library.TensorType(tensor)])
    check("CopyToBuffer",
          library.TensorCopyToBuffer(tensor, value.ctypes.data_as(c_void_p), value.nbytes))
    return value


def lengths(value):
    return (c_int * max(len(value.shape), 1))(*value.shape), len(value.shape)
