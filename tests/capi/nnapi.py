"""The C API of libneuralnetworks.so for Python, by ctypes: nothing is compiled.

Names and numbers of constants are read from the project's own header, so that whoever runs this also
runs the header.
"""

import ctypes
import mmap
import os
import re
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint16
from ctypes import c_uint32, c_uint64, c_uint8, c_void_p, byref

HEADER = os.path.join(
    os.path.dirname(os.path.abspath(__file__)),
    "../../include/android/NeuralNetworksTypes.h",
)


def constants(header=HEADER):
    """ANEURALNETWORKS_NAME = NUMBER, as a dictionary without the prefix."""
    with open(header, encoding="utf-8") as file:
        text = file.read()
    pairs = re.findall(r"\bANEURALNETWORKS_(\w+)\s*=\s*(\d+)", text)
    return {name: int(number) for name, number in pairs}


class OperandType(ctypes.Structure):
    _fields_ = [
        ("type", c_int32),
        ("dimensionCount", c_uint32),
        ("dimensions", POINTER(c_uint32)),
        ("scale", c_float),
        ("zeroPoint", c_int32),
    ]


class SymmPerChannelQuantParams(ctypes.Structure):
    _fields_ = [("channelDim", c_uint32), ("scaleCount", c_uint32), ("scales", POINTER(c_float))]


Handle = c_void_p
Handles = POINTER(c_void_p)
Numbers = POINTER(c_uint32)

# Every function: what it answers, what it takes.
FUNCTIONS = {
    "ANeuralNetworks_getDefaultLoopTimeout": (c_uint64, []),
    "ANeuralNetworks_getDevice": (c_int, [c_uint32, Handles]),
    "ANeuralNetworks_getDeviceCount": (c_int, [Numbers]),
    "ANeuralNetworks_getMaximumLoopTimeout": (c_uint64, []),
    "ANeuralNetworks_getRuntimeFeatureLevel": (c_int64, []),
    "ANeuralNetworks_getSLDriverImpl": (c_void_p, []),
    "ANeuralNetworksBurst_create": (c_int, [Handle, Handles]),
    "ANeuralNetworksBurst_free": (None, [Handle]),
    "ANeuralNetworksCompilation_addExtensionAttribute": (
        c_int, [Handle, c_char_p, c_uint16, c_void_p, c_size_t]),
    "ANeuralNetworksCompilation_create": (c_int, [Handle, Handles]),
    "ANeuralNetworksCompilation_createForDevices": (c_int, [Handle, Handles, c_uint32, Handles]),
    "ANeuralNetworksCompilation_finish": (c_int, [Handle]),
    "ANeuralNetworksCompilation_free": (None, [Handle]),
    "ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput": (
        c_int, [Handle, c_uint32, Numbers]),
    "ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput": (
        c_int, [Handle, c_uint32, Numbers]),
    "ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput": (
        c_int, [Handle, c_uint32, Numbers]),
    "ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput": (
        c_int, [Handle, c_uint32, Numbers]),
    "ANeuralNetworksCompilation_setCaching": (c_int, [Handle, c_char_p, c_char_p]),
    "ANeuralNetworksCompilation_setPreference": (c_int, [Handle, c_int32]),
    "ANeuralNetworksCompilation_setPriority": (c_int, [Handle, c_int]),
    "ANeuralNetworksCompilation_setTimeout": (c_int, [Handle, c_uint64]),
    "ANeuralNetworksDevice_getExtensionSupport": (c_int, [Handle, c_char_p, POINTER(c_bool)]),
    "ANeuralNetworksDevice_getFeatureLevel": (c_int, [Handle, POINTER(c_int64)]),
    "ANeuralNetworksDevice_getName": (c_int, [Handle, POINTER(c_char_p)]),
    "ANeuralNetworksDevice_getType": (c_int, [Handle, POINTER(c_int32)]),
    "ANeuralNetworksDevice_getVersion": (c_int, [Handle, POINTER(c_char_p)]),
    "ANeuralNetworksDevice_wait": (c_int, [Handle]),
    "ANeuralNetworksEvent_createFromSyncFenceFd": (c_int, [c_int, Handles]),
    "ANeuralNetworksEvent_free": (None, [Handle]),
    "ANeuralNetworksEvent_getSyncFenceFd": (c_int, [Handle, POINTER(c_int)]),
    "ANeuralNetworksEvent_wait": (c_int, [Handle]),
    "ANeuralNetworksExecution_addExtensionAttribute": (
        c_int, [Handle, c_char_p, c_uint16, c_void_p, c_size_t]),
    "ANeuralNetworksExecution_burstCompute": (c_int, [Handle, Handle]),
    "ANeuralNetworksExecution_compute": (c_int, [Handle]),
    "ANeuralNetworksExecution_create": (c_int, [Handle, Handles]),
    "ANeuralNetworksExecution_enableInputAndOutputPadding": (c_int, [Handle, c_bool]),
    "ANeuralNetworksExecution_free": (None, [Handle]),
    "ANeuralNetworksExecution_getDuration": (c_int, [Handle, c_int32, POINTER(c_uint64)]),
    "ANeuralNetworksExecution_getOutputOperandDimensions": (c_int, [Handle, c_int32, Numbers]),
    "ANeuralNetworksExecution_getOutputOperandRank": (c_int, [Handle, c_int32, Numbers]),
    "ANeuralNetworksExecution_setInput": (
        c_int, [Handle, c_int32, POINTER(OperandType), c_void_p, c_size_t]),
    "ANeuralNetworksExecution_setInputFromMemory": (
        c_int, [Handle, c_int32, POINTER(OperandType), Handle, c_size_t, c_size_t]),
    "ANeuralNetworksExecution_setLoopTimeout": (c_int, [Handle, c_uint64]),
    "ANeuralNetworksExecution_setMeasureTiming": (c_int, [Handle, c_bool]),
    "ANeuralNetworksExecution_setOutput": (
        c_int, [Handle, c_int32, POINTER(OperandType), c_void_p, c_size_t]),
    "ANeuralNetworksExecution_setOutputFromMemory": (
        c_int, [Handle, c_int32, POINTER(OperandType), Handle, c_size_t, c_size_t]),
    "ANeuralNetworksExecution_setReusable": (c_int, [Handle, c_bool]),
    "ANeuralNetworksExecution_setTimeout": (c_int, [Handle, c_uint64]),
    "ANeuralNetworksExecution_startCompute": (c_int, [Handle, Handles]),
    "ANeuralNetworksExecution_startComputeWithDependencies": (
        c_int, [Handle, Handles, c_uint32, c_uint64, Handles]),
    "ANeuralNetworksMemory_copy": (c_int, [Handle, Handle]),
    "ANeuralNetworksMemory_createFromAHardwareBuffer": (c_int, [Handle, Handles]),
    "ANeuralNetworksMemory_createFromDesc": (c_int, [Handle, Handles]),
    "ANeuralNetworksMemory_createFromFd": (c_int, [c_size_t, c_int, c_int, c_size_t, Handles]),
    "ANeuralNetworksMemory_free": (None, [Handle]),
    "ANeuralNetworksMemoryDesc_addInputRole": (c_int, [Handle, Handle, c_uint32, c_float]),
    "ANeuralNetworksMemoryDesc_addOutputRole": (c_int, [Handle, Handle, c_uint32, c_float]),
    "ANeuralNetworksMemoryDesc_create": (c_int, [Handles]),
    "ANeuralNetworksMemoryDesc_finish": (c_int, [Handle]),
    "ANeuralNetworksMemoryDesc_free": (None, [Handle]),
    "ANeuralNetworksMemoryDesc_setDimensions": (c_int, [Handle, c_uint32, Numbers]),
    "ANeuralNetworksModel_addOperand": (c_int, [Handle, POINTER(OperandType)]),
    "ANeuralNetworksModel_addOperation": (
        c_int, [Handle, c_int32, c_uint32, Numbers, c_uint32, Numbers]),
    "ANeuralNetworksModel_create": (c_int, [Handles]),
    "ANeuralNetworksModel_finish": (c_int, [Handle]),
    "ANeuralNetworksModel_free": (None, [Handle]),
    "ANeuralNetworksModel_getExtensionOperandType": (
        c_int, [Handle, c_char_p, c_uint16, POINTER(c_int32)]),
    "ANeuralNetworksModel_getExtensionOperationType": (
        c_int, [Handle, c_char_p, c_uint16, POINTER(c_int32)]),
    "ANeuralNetworksModel_getSupportedOperationsForDevices": (
        c_int, [Handle, Handles, c_uint32, POINTER(c_bool)]),
    "ANeuralNetworksModel_identifyInputsAndOutputs": (
        c_int, [Handle, c_uint32, Numbers, c_uint32, Numbers]),
    "ANeuralNetworksModel_relaxComputationFloat32toFloat16": (c_int, [Handle, c_bool]),
    "ANeuralNetworksModel_setOperandExtensionData": (c_int, [Handle, c_int32, c_void_p, c_size_t]),
    "ANeuralNetworksModel_setOperandSymmPerChannelQuantParams": (
        c_int, [Handle, c_int32, POINTER(SymmPerChannelQuantParams)]),
    "ANeuralNetworksModel_setOperandValue": (c_int, [Handle, c_int32, c_void_p, c_size_t]),
    "ANeuralNetworksModel_setOperandValueFromMemory": (
        c_int, [Handle, c_int32, Handle, c_size_t, c_size_t]),
    "ANeuralNetworksModel_setOperandValueFromModel": (c_int, [Handle, c_int32, Handle]),
    "nnhal_lastError": (c_char_p, []),
    "nnhal_resultName": (c_char_p, [c_int]),
}


class Failed(Exception):
    """A function answered something else than ANEURALNETWORKS_NO_ERROR."""

    def __init__(self, function, code, name, reason):
        super().__init__(f"{function}: {name}: {reason}")
        self.function, self.code, self.name = function, code, name


def numbers(values):
    """A C array of uint32_t, never null."""
    return (c_uint32 * max(len(values), 1))(*values)


def operand_type(code, dimensions, scale=0.0, zero_point=0):
    """An ANeuralNetworksOperandType; the dimensions live as long as it does."""
    kept = numbers(dimensions) if dimensions else None
    return OperandType(code, len(dimensions), kept, scale, zero_point)


class Library:
    """The library: each function under its name without `ANeuralNetworks`; failures are raised."""

    def __init__(self, path):
        self.path = path
        self.c = ctypes.CDLL(path)
        self.constants = constants()
        for name, (answer, arguments) in FUNCTIONS.items():
            function = getattr(self.c, name)
            function.restype, function.argtypes = answer, arguments
            short = name.removeprefix("ANeuralNetworks").lstrip("_")
            setattr(self, short, self._raising(name, function) if answer is c_int else function)

    def _raising(self, name, function):
        def call(*arguments):
            code = function(*arguments)
            if code != 0:
                words = self.c.nnhal_lastError().decode(errors="replace")
                result = self.c.nnhal_resultName(code).decode()
                raise Failed(name, code, result, words)

        return call

    def make(self, function, *arguments):
        """The object that a creating function writes into its last argument."""
        handle = c_void_p()
        getattr(self, function)(*arguments, byref(handle))
        return handle

    def devices(self):
        """Name to handle of each device."""
        count, found = c_uint32(), {}
        self.getDeviceCount(byref(count))
        for index in range(count.value):
            device, name = self.make("getDevice", index), c_char_p()
            self.Device_getName(device, byref(name))
            found[name.value.decode()] = device
        return found


class Shared:
    """A memory of the library's, mapped for Python too."""

    def __init__(self, library, size):
        self.library = library
        self.descriptor = os.memfd_create("nnapi")
        os.ftruncate(self.descriptor, size)
        self.map = mmap.mmap(self.descriptor, size)
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        self.handle = library.make(
            "Memory_createFromFd", size, protection, self.descriptor, 0)

    def close(self):
        self.library.Memory_free(self.handle)
        self.map.close()
        os.close(self.descriptor)
