#!/usr/bin/env python3
"""Runs the conformance vectors through the C API, in every way of executing that it has.

    tests/capi/judge.py [--library libneuralnetworks.so] [--vectors ../shared/conformance]

Each vector is run synchronously, and in one more of the modes below, so that over the vectors all
modes come up; `--all-modes` runs every vector in every mode. Nothing but Python's standard library
is needed.
"""

import argparse
import collections
import ctypes
import os
import shutil
import sys
import tempfile
import time
import traceback
import zlib
from concurrent.futures import ProcessPoolExecutor
from ctypes import byref, c_uint32, c_void_p

import nnapi
import vectors

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")

# Name of a mode: how the execution is started, whether one execution runs twice, where arguments
# are, whether the compilation is cached.
Mode = collections.namedtuple("Mode", "start reusable arguments caching")
MODES = {
    "synchronous": Mode("sync", False, "pointers", False),
    "synchronous reusable": Mode("sync", True, "pointers", False),
    "asynchronous": Mode("async", False, "pointers", False),
    "asynchronous reusable": Mode("async", True, "pointers", False),
    "burst": Mode("burst", False, "pointers", False),
    "burst reusable": Mode("burst", True, "pointers", False),
    "fenced": Mode("fenced", False, "pointers", False),
    "fenced reusable": Mode("fenced", True, "pointers", False),
    "shared memory": Mode("sync", False, "shared", False),
    "shared memory burst reusable": Mode("burst", True, "shared", False),
    "device memory": Mode("sync", False, "device", False),
    "device memory fenced": Mode("fenced", False, "device", False),
    "cached synchronous": Mode("sync", False, "pointers", True),
    "cached burst": Mode("burst", False, "pointers", True),
}
ALWAYS = "synchronous"
LENGTHS_AT_ONCE = ("CAST", "FULLY_CONNECTED", "MIRROR_PAD", "REVERSE")
LOOP_LIMIT = 1_000_000  # 1 ms, for loops that never end


class Wrong(Exception):
    """What a vector demands did not come."""


class Model:
    """A vector's model, built and finished."""

    def __init__(self, library, case):
        self.library = library
        self.kept = []  # what the library may read until the compilation is finished
        self.handles = []
        self.memories = []
        try:
            self.handle = self._graph(case, case["main"], {})
        except BaseException:
            self.close()
            raise

    def _graph(self, case, graph, above):
        """Builds a graph, and before it the graphs that it refers to."""
        library, code = self.library, self.library.constants
        model = library.make("Model_create")
        self.handles.append(model)
        references = graph["operands"]
        outputs = set(graph["outputs"]) if graph.get("unknown_outputs") else ()
        for index, operand in enumerate(graph["operands"]):
            kind = operand["type"]
            dimensions = operand["dimensions"]
            if index in outputs:
                dimensions = [0] * len(dimensions)
            number = code["MODEL" if kind == "SUBGRAPH" else kind]
            library.Model_addOperand(model, byref(nnapi.operand_type(
                number, dimensions, operand["scale"], operand["zero_point"])))
            quant = operand["channel_quant"]
            if quant:
                scales = (ctypes.c_float * len(quant["scales"]))(*quant["scales"])
                library.Model_setOperandSymmPerChannelQuantParams(
                    model, index,
                    byref(nnapi.SymmPerChannelQuantParams(
                        quant["channel_dim"], len(scales), scales)))
        for index, operand in enumerate(references):
            lifetime, data = operand["lifetime"], operand["data"]
            if lifetime == "CONSTANT_COPY":
                self.kept.append(data)
                library.Model_setOperandValue(model, index, data, len(data))
            elif lifetime == "CONSTANT_REFERENCE":
                # Not at the beginning, so that an offset that is lost is noticed.
                shared = nnapi.Shared(library, len(data) + 64)
                self.memories.append(shared)
                shared.map[64:] = data
                library.Model_setOperandValueFromMemory(
                    model, index, shared.handle, 64, len(data))
            elif lifetime == "NO_VALUE":
                library.Model_setOperandValue(model, index, None, 0)
            elif lifetime == "SUBGRAPH":
                which = int.from_bytes(data, "little")
                if which not in above:
                    above[which] = self._graph(case, case["referenced"][which], above)
                library.Model_setOperandValueFromModel(model, index, above[which])
        for operation in graph["operations"]:
            inputs, results = operation["inputs"], operation["outputs"]
            library.Model_addOperation(
                model, code[operation["type"]],
                len(inputs), nnapi.numbers(inputs), len(results), nnapi.numbers(results))
        library.Model_identifyInputsAndOutputs(
            model, len(graph["inputs"]), nnapi.numbers(graph["inputs"]),
            len(graph["outputs"]), nnapi.numbers(graph["outputs"]))
        library.Model_relaxComputationFloat32toFloat16(model, case["is_relaxed"])
        library.Model_finish(model)
        return model

    def close(self):
        for model in self.handles:
            self.library.Model_free(model)
        for memory in self.memories:
            memory.close()


class Compilation:
    """A model compiled for one device, or for all; with a folder and a token, cached there."""

    def __init__(self, library, device, model, cache=None):
        self.library = library
        if device is None:
            self.handle = library.make("Compilation_create", model.handle)
        else:
            devices = (c_void_p * 1)(device)
            self.handle = library.make("Compilation_createForDevices", model.handle, devices, 1)
        try:
            if cache:
                folder, token = cache
                library.Compilation_setCaching(self.handle, folder.encode(), token)
            library.Compilation_finish(self.handle)
        except BaseException:
            self.close()
            raise

    def close(self):
        self.library.Compilation_free(self.handle)


class Arguments:
    """Buffers for one execution's inputs and outputs: of Python, shared, or of the device."""

    def __init__(self, library, case, compilation, kind, shortened=None):
        self.library, self.kind = library, kind
        self.operands = case["main"]["operands"]
        self.inputs = [self.operands[index] for index in case["main"]["inputs"]]
        self.outputs = [self.operands[index] for index in case["main"]["outputs"]]
        self.unknown = case["main"].get("unknown_outputs", False)
        self.sizes = [max(len(operand["data"]), 1) for operand in self.outputs]
        if shortened is not None:
            self.sizes[shortened] -= 1
        self.buffers = [ctypes.create_string_buffer(size) for size in self.sizes]
        self.shared, self.device = [], []
        if kind == "shared":
            self._share()
        elif kind == "device":
            self._allocate(compilation)

    def _share(self):
        """Inputs and outputs in one memory each, one after the other."""
        for sizes in ([len(operand["data"]) for operand in self.inputs], self.sizes):
            self.shared.append(nnapi.Shared(self.library, sum(-(-it // 8) * 8 for it in sizes) + 8))
        offset = 8
        for operand in self.inputs:
            data = operand["data"]
            self.shared[0].map[offset:offset + len(data)] = data
            offset += -(-len(data) // 8) * 8

    def _allocate(self, compilation):
        """A memory of the device for each input that is there and each output."""
        library = self.library
        for role, operands in (("Input", self.inputs), ("Output", self.outputs)):
            memories = []
            self.device.append(memories)
            for index, operand in enumerate(operands):
                if role == "Input" and not operand["data"]:
                    memories.append(None)
                    continue
                description = library.make("MemoryDesc_create")
                try:
                    add = getattr(library, f"MemoryDesc_add{role}Role")
                    add(description, compilation.handle, index, 1.0)
                    dimensions = operand["dimensions"]
                    if dimensions:
                        library.MemoryDesc_setDimensions(
                            description, len(dimensions), nnapi.numbers(dimensions))
                    library.MemoryDesc_finish(description)
                    memory = library.make("Memory_createFromDesc", description)
                finally:
                    library.MemoryDesc_free(description)
                memories.append(memory)
                if role == "Input":
                    shared = nnapi.Shared(library, len(operand["data"]))
                    shared.map[:] = operand["data"]
                    library.Memory_copy(shared.handle, memory)
                    shared.close()

    def set(self, execution, fenced):
        """Hands all arguments to an execution."""
        library = self.library
        offset = 8
        for index, operand in enumerate(self.inputs):
            data = operand["data"]
            if not data:
                library.Execution_setInput(execution, index, None, None, 0)
            elif self.kind == "pointers":
                library.Execution_setInput(execution, index, None, data, len(data))
            elif self.kind == "shared":
                library.Execution_setInputFromMemory(
                    execution, index, None, self.shared[0].handle, offset, len(data))
            else:
                memory = self.device[0][index]
                library.Execution_setInputFromMemory(execution, index, None, memory, 0, 0)
            offset += -(-len(data) // 8) * 8
        offset = 0
        for index, size in enumerate(self.sizes):
            # Behind fences an output's dimensions must be known beforehand.
            known = None
            if fenced and self.outputs[index]["dimensions"]:
                known = byref(self._known(self.outputs[index]))
            if self.kind == "pointers":
                library.Execution_setOutput(execution, index, known, self.buffers[index], size)
            elif self.kind == "shared":
                library.Execution_setOutputFromMemory(
                    execution, index, known, self.shared[1].handle, offset, size)
            else:
                library.Execution_setOutputFromMemory(
                    execution, index, known, self.device[1][index], 0, 0)
            offset += -(-size // 8) * 8

    def _known(self, operand):
        code = self.library.constants[operand["type"]]
        return nnapi.operand_type(
            code, operand["dimensions"], operand["scale"], operand["zero_point"])

    def clear(self):
        """Wipes the outputs, so that a second computation cannot live on the first."""
        for buffer in self.buffers:
            ctypes.memset(buffer, 0xA5, len(buffer))
        for shared in self.shared[1:]:
            shared.map[:] = b"\xA5" * len(shared.map)

    def found(self):
        """The bytes of each output."""
        if self.kind == "pointers":
            return [buffer.raw for buffer in self.buffers]
        if self.kind == "shared":
            found, offset = [], 0
            for size in self.sizes:
                found.append(self.shared[1].map[offset:offset + size])
                offset += -(-size // 8) * 8
            return found
        found = []
        for memory, operand in zip(self.device[1], self.outputs):
            shared = nnapi.Shared(self.library, len(operand["data"]))
            self.library.Memory_copy(memory, shared.handle)
            found.append(shared.map[:])
            shared.close()
        return found

    def close(self):
        for shared in self.shared:
            shared.close()
        for memory in sum(self.device, []):
            if memory is not None:
                self.library.Memory_free(memory)


class Runner:
    """Runs vectors on one device of one library."""

    def __init__(self, path, device, cache):
        self.library = nnapi.Library(path)
        found = self.library.devices()
        if device == "all":
            self.device = None
        elif device is None:
            self.device = next(iter(found.values()))
        elif device in found:
            self.device = found[device]
        else:
            raise SystemExit(f"there is no device {device}, only {', '.join(found)}")
        self.cache = cache

    def verdict(self, case, suite, mode):
        """None, or what went wrong in words."""
        try:
            if suite == "quantization_coupling":
                case = vectors.with_signed_quantization(case)
            elif suite in ("dynamic_output_shape", "short_output"):
                case = vectors.with_unknown_output_shapes(case)
            if suite in ("validation", "timeout"):
                self._must_fail(case, suite)
            elif suite == "short_output":
                self._short(case)
            else:
                self._run(case, MODES[mode])
        except (Wrong, nnapi.Failed) as wrong:
            return str(wrong)
        except Exception:
            return traceback.format_exc()
        return None

    def _run(self, case, mode):
        library = self.library
        model = Model(library, case)
        compilation = arguments = burst = None
        try:
            if mode.caching:
                token = zlib.crc32(case["name"].encode()).to_bytes(4, "big") * 8
                # Once to fill the cache, once to use it.
                Compilation(library, self.device, model, (self.cache, token)).close()
                if not os.listdir(self.cache):
                    raise Wrong("nothing was written to the cache")
                compilation = Compilation(library, self.device, model, (self.cache, token))
                self._forget()
            else:
                compilation = Compilation(library, self.device, model)
            arguments = Arguments(library, case, compilation, mode.arguments)
            if mode.start == "burst":
                burst = library.make("Burst_create", compilation.handle)
            execution = None
            for round_ in ("first", "second"):
                if execution is None:
                    execution = library.make("Execution_create", compilation.handle)
                    library.Execution_setReusable(execution, mode.reusable)
                    arguments.set(execution, mode.start == "fenced")
                arguments.clear()
                try:
                    self._compute(mode.start, execution, burst)
                    if mode.start != "fenced":
                        self._compare_shapes(case, execution)
                    self._compare(case, arguments)
                except (Wrong, nnapi.Failed) as wrong:
                    library.Execution_free(execution)
                    raise Wrong(f"{round_} execution: {wrong}") from wrong
                if not mode.reusable or round_ == "second":
                    library.Execution_free(execution)
                    execution = None
        finally:
            if burst:
                library.Burst_free(burst)
            if arguments:
                arguments.close()
            if compilation:
                compilation.close()
            model.close()

    def _forget(self):
        for entry in os.scandir(self.cache):
            os.unlink(entry.path)

    def _compute(self, start, execution, burst):
        library = self.library
        if start == "sync":
            library.Execution_compute(execution)
        elif start == "burst":
            library.Execution_burstCompute(execution, burst)
        elif start == "async":
            event = library.make("Execution_startCompute", execution)
            self._await(event)
        else:
            event = library.make(
                "Execution_startComputeWithDependencies", execution, None, 0, 0)
            self._await(event)

    def _await(self, event):
        try:
            self.library.Event_wait(event)
        finally:
            self.library.Event_free(event)

    def _compare_shapes(self, case, execution):
        for index, operand in enumerate(outputs(case)):
            if operand["ignored"] or not operand["type"].startswith("TENSOR_"):
                continue
            found = self._shape(execution, index, 0)
            if found != operand["dimensions"]:
                raise Wrong(f"output {index} ({operand['name']}): shape {found}, "
                            f"expected {operand['dimensions']}")

    def _shape(self, execution, index, expected_code):
        c, rank = self.library.c, c_uint32()
        code = c.ANeuralNetworksExecution_getOutputOperandRank(execution, index, byref(rank))
        if code != expected_code:
            raise Wrong(f"getOutputOperandRank({index}) answers {code}, expected {expected_code}")
        found = (c_uint32 * max(rank.value, 1))()
        code = c.ANeuralNetworksExecution_getOutputOperandDimensions(execution, index, found)
        if code != expected_code:
            raise Wrong(f"getOutputOperandDimensions({index}) answers {code}, "
                        f"expected {expected_code}")
        return list(found)[:rank.value]

    def _compare(self, case, arguments):
        for index, (operand, found) in enumerate(zip(outputs(case), arguments.found())):
            expected = operand["data"]
            found = found[:len(expected)]
            wrong = None
            if case["multinomial_tolerance"] is not None:
                logits = case["main"]["operands"][case["main"]["inputs"][0]]
                wrong = vectors.distribution(
                    vectors.elements(logits["type"], logits["data"]),
                    vectors.elements(operand["type"], found), case["multinomial_tolerance"])
            elif not operand["ignored"] and case["tolerances"][index] is not None:
                wrong = vectors.difference(
                    operand["type"], expected, found, case["tolerances"][index])
            if wrong:
                raise Wrong(f"output {index} ({operand['name']}): {wrong}")

    def _short(self, case):
        """Each output in turn one byte too short."""
        library = self.library
        model = Model(library, case)
        compilation = None
        try:
            compilation = Compilation(library, self.device, model)
            for index, operand in enumerate(outputs(case)):
                if len(operand["data"]) <= 1 or operand["ignored"] or not operand["dimensions"]:
                    continue
                self._short_by_one(case, compilation, index)
        finally:
            if compilation:
                compilation.close()
            model.close()

    def _short_by_one(self, case, compilation, shortened):
        library = self.library
        execution = library.make("Execution_create", compilation.handle)
        try:
            arguments = Arguments(library, case, compilation, "pointers", shortened)
            arguments.set(execution, False)
            code = library.c.ANeuralNetworksExecution_compute(execution)
            insufficient = library.constants["OUTPUT_INSUFFICIENT_SIZE"]
            if code != insufficient:
                raise Wrong(f"output {shortened} is too short: answers {code}")
            for index, operand in enumerate(outputs(case)):
                if operand["ignored"] or not operand["type"].startswith("TENSOR_"):
                    continue
                found = self._shape(execution, index, insufficient if index == shortened else 0)
                if found != operand["dimensions"]:
                    raise Wrong(f"output {shortened} is too short; shape of output {index} is "
                                f"{found}, expected {operand['dimensions']}")
        finally:
            library.Execution_free(execution)

    def _must_fail(self, case, suite):
        """Executing fails. Before, only what Android's library refuses as well: a wrong rank, and
        lengths that do not go together in a few operations."""
        library = self.library
        model = compilation = execution = None
        computes = False
        try:
            model = Model(library, case)
            compilation = Compilation(library, self.device, model)
            arguments = Arguments(library, case, compilation, "pointers")
            execution = library.make("Execution_create", compilation.handle)
            arguments.set(execution, False)
            library.Execution_setLoopTimeout(execution, LOOP_LIMIT)
            computes = True
            library.Execution_compute(execution)
        except nnapi.Failed as failed:
            at_once = case["spec"].startswith("V1_3_cts_only/") or (
                failed.function == "ANeuralNetworksModel_addOperation"
                and any(f"{operation}: shape of " in str(failed) for operation in LENGTHS_AT_ONCE))
            if not computes and not at_once:
                raise Wrong(f"{failed}; only executing may fail") from failed
            if computes and suite == "validation" and not failed.name.startswith("OP_FAILED"):
                raise Wrong(f"{failed}; OP_FAILED is expected") from failed
            if suite == "timeout" and not failed.name.startswith("MISSED_DEADLINE"):
                raise Wrong(f"{failed}; a missed deadline is expected") from failed
            return
        finally:
            if execution:
                library.Execution_free(execution)
            if compilation:
                compilation.close()
            if model:
                model.close()
        raise Wrong("accepted and executed, but must fail")


def outputs(case):
    return [case["main"]["operands"][index] for index in case["main"]["outputs"]]


def suites(case):
    """The suites that the C API can show; which version a model is of, it cannot."""
    named = [name for name in case["suites"] if name not in ("compliance", "device_memory", "fenced")]
    if "dynamic_output_shape" in named:
        named.append("short_output")
    return named


def allowed(case, suite, mode):
    """Whether a mode is meant for this vector."""
    fits = MODES[mode]
    if fits.arguments == "device" and (suite != "generated" or "device_memory" not in case["suites"]):
        return False
    if fits.start == "fenced" and (suite != "generated" or "fenced" not in case["suites"]):
        return False
    return True


def runs(case, all_modes, turn):
    """Which suites and modes a case is run in."""
    for suite in suites(case):
        if suite in ("validation", "timeout", "short_output"):
            yield suite, None
            continue
        modes = [mode for mode in MODES if allowed(case, suite, mode)]
        if not all_modes:
            rest = [mode for mode in modes if mode != ALWAYS]
            modes = [ALWAYS, rest[turn % len(rest)]] if suite == "generated" else [
                modes[turn % len(modes)]]
        for mode in modes:
            yield suite, mode


def judge_file(job):
    """Runs one file of vectors in a process of its own pool."""
    path, number, options = job
    cache = tempfile.mkdtemp(prefix="nnapi-cache-")
    counts, failures = collections.Counter(), []
    try:
        runner = Runner(options.library, options.device, cache)
        for place, case in enumerate(vectors.cases(path)):
            if options.filter not in case["name"] and options.filter not in case["spec"]:
                continue
            for suite, mode in runs(case, options.all_modes, number + place):
                if options.mode and mode != options.mode:
                    continue
                wrong = runner.verdict(case, suite, mode)
                counts[suite, mode, wrong is None] += 1
                if wrong is not None:
                    failures.append((case["name"], suite, mode, wrong))
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    return counts, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default=os.path.join(ROOT, "target/release/libneuralnetworks.so"))
    parser.add_argument("--vectors", default=os.path.join(ROOT, "../shared/conformance"))
    parser.add_argument(
        "--device",
        help="a device by name; all: as the library divides the work; otherwise the first one")
    parser.add_argument("--filter", default="", help="cases whose name or file contains this")
    parser.add_argument("--mode", choices=list(MODES), help="this mode only")
    parser.add_argument("--all-modes", action="store_true", help="every vector in every mode")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--failures", type=int, default=20, help="how many failures to print")
    options = parser.parse_args()
    options.all_modes = options.all_modes or options.mode is not None

    began = time.monotonic()
    jobs = [(path, number, options) for number, path in enumerate(vectors.files(options.vectors))]
    counts, failures = collections.Counter(), []
    with ProcessPoolExecutor(options.jobs) as pool:
        for counted, failed in pool.map(judge_file, jobs, chunksize=4):
            counts.update(counted)
            failures.extend(failed)

    print(f"{'suite':22} {'mode':30} {'passed':>7} {'failed':>7}")
    for suite, mode in sorted({(suite, mode or "-") for suite, mode, _ in counts}):
        key = None if mode == "-" else mode
        passed, failed = counts[suite, key, True], counts[suite, key, False]
        print(f"{suite:22} {mode:30} {passed:7} {failed:7}")
    for name, suite, mode, wrong in failures[:options.failures]:
        print(f"{name} [{suite}, {mode}]: {wrong}")
    passed = sum(number for key, number in counts.items() if key[2])
    total = sum(counts.values())
    print(f"{passed} of {total} passed in {time.monotonic() - began:.0f} s")
    return 0 if total and passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
