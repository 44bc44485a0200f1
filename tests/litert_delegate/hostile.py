#!/usr/bin/env python3
"""What a program can do wrong with the delegate, and what it can ask for. Each test runs in a process of its own,
and one that dies is a failure.

    NNHAL_DELEGATE=libnnhal_delegate.so python hostile.py [NAME]
"""

import ctypes
import gc
import json
import os
import pathlib
import tempfile

import numpy as np

import hostile_cases as cases
import hosts
from hostile_cases import FLOAT, INT8, fails, flatfile, test


def image(interpreter, seed=0):
    details = interpreter.get_input_details()[0]
    return cases.image(details["dtype"], seed, details["shape"])


def run(interpreter, value):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def expect(model, value):
    interpreter = hosts.plain(model)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], value.shape)
    interpreter.allocate_tensors()
    return run(interpreter, value)


def open_model():
    """tanh of relu of something whose height is open."""
    tensors = [flatfile.tensor(name, [1, 1, 6], signature=[1, -1, 6]) for name in "xyz"]
    operators = [(0, [0], [1], None, None), (1, [1], [2], None, None)]
    return flatfile.model([flatfile.RELU, 28], tensors, [0], [2], operators)


# Between them, an operator of a form that the library does not have: its range is without 0.
FAKE_QUANT, FAKE_QUANT_OPTIONS = 80, 60


def islands(sizes, shape=(1, 16)):
    """As many operators of ours as the first size says, one of the host's, ours again, and so on."""
    codes, tensors, operators = [flatfile.RELU, FAKE_QUANT], [flatfile.tensor("x", shape)], []
    table = flatfile.Table(_0=("f", 1.0), _1=("f", 4.0), _2=("i", 8))
    for number, size in enumerate(sizes):
        kinds = [0] * size if number == 0 else [1] + [0] * size
        for kind in kinds:
            options = (("B", FAKE_QUANT_OPTIONS), table) if kind else (None, None)
            operators.append((kind, [len(tensors) - 1], [len(tensors)], *options))
            tensors.append(flatfile.tensor(f"t{len(tensors)}", shape))
    return flatfile.model(codes, tensors, [0], [len(tensors) - 1], operators)


def native(delegate):
    return ctypes.c_void_p(delegate._get_native_delegate_pointer())


def library():
    loaded = ctypes.CDLL(hosts.LIBRARY)
    loaded.tflite_plugin_create_delegate.restype = ctypes.c_void_p
    return loaded


@test
def a_network_is_one_partition_and_gives_what_litert_gives():
    for model in (FLOAT, INT8, FLOAT.read_bytes(), INT8.read_bytes()):
        interpreter = hosts.delegated(model)
        interpreter.allocate_tensors()
        assert hosts.partitions(interpreter)[0] == 1
        value = image(interpreter)
        np.testing.assert_allclose(run(interpreter, value), expect(model, value), atol=1e-6)


@test
def every_option_is_taken():
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        options = {"device": "nnhal-cpu", "threads": "2", "cache_dir": folder, "model_token": "digits",
                   "min_nodes_per_partition": "2", "max_partitions": "1", "priority": "high",
                   "profile": str(trace), "allow_fp16": "true", "log": "error", "share_weights": "true"}
        for _ in range(2):      # the second time from the cache
            interpreter = hosts.delegated(FLOAT, **options)
            interpreter.allocate_tensors()
            value = image(interpreter)
            np.testing.assert_allclose(run(interpreter, value), expect(FLOAT, value), atol=1e-2)
            del interpreter
        assert len(list(pathlib.Path(folder).glob("*.nnhal"))) == 1
        names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
        assert any("conv2d" in name for name in names), names


@test
def other_constants_are_not_taken_out_of_the_cache():
    # A model of the same form with other weights: the name of what is kept depends on them.
    original = FLOAT.read_bytes()
    changed = bytearray(original)
    interpreter = hosts.plain(FLOAT)
    interpreter.allocate_tensors()
    weights = max((interpreter.get_tensor(it["index"]) for it in interpreter.get_tensor_details()
                   if it["dtype"] == np.float32 and "conv" in it["name"].lower() or it["shape"].size == 4
                   and it["dtype"] == np.float32 and it["shape"][0] > 1), key=np.size)
    at = original.find(weights.tobytes())
    assert at > 0
    changed[at:at + weights.nbytes] = (weights * 2).tobytes()
    with tempfile.TemporaryDirectory() as folder:
        for model in (original, bytes(changed), original):
            interpreter = hosts.delegated(model, cache_dir=folder)
            interpreter.allocate_tensors()
            value = image(interpreter)
            np.testing.assert_allclose(run(interpreter, value), expect(model, value), atol=1e-5)
        assert len(list(pathlib.Path(folder).glob("*.nnhal"))) == 2


@test
def wrong_options_are_errors_that_say_what_there_is():
    known = ("device", "threads", "cache_dir", "model_token", "min_nodes_per_partition", "max_partitions",
             "priority", "profile", "allow_fp16", "log", "share_weights")
    fails(lambda: hosts.delegated(FLOAT, treads="2"), "treads", *known)
    for key, value in {"device": "npu", "threads": "many", "priority": "first", "allow_fp16": "maybe",
                       "max_partitions": "-1"}.items():
        fails(lambda: hosts.delegated(FLOAT, **{key: value}), key, value)


@test
def threads_are_as_many_as_the_option_says():
    def more(threads):
        before = len(os.listdir("/proc/self/task"))
        interpreter = hosts.delegated(FLOAT, threads=threads, num_threads=2)
        interpreter.allocate_tensors()
        value = image(interpreter)
        # The first small execution of a device starts no threads.
        for _ in range(2):
            np.testing.assert_allclose(run(interpreter, value), expect(FLOAT, value), atol=1e-6)
        return len(os.listdir("/proc/self/task")) - before

    # A device keeps its threads, and what takes one for the first time may make others.
    one = more("1")
    assert (more("4"), one) == (3, one)


@test
def the_log_says_which_nodes_are_left_and_the_trace_which_are_run():
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"

        def work():
            interpreter = hosts.delegated(islands([1, 1]), device="nnhal-reference", log="info", profile=str(trace))
            interpreter.allocate_tensors()
            run(interpreter, image(interpreter))

        text = cases.said_on_stderr(work)
        assert "node 1 is left to the interpreter: " in text and "2 of 3 nodes are taken, in 2 of 2" in text, text
        gc.collect()
        assert "relu" in trace.read_text().lower(), trace.read_text()
    assert "left to the interpreter" not in cases.said_on_stderr(lambda: hosts.delegated(islands([1, 1]), log="error"))


@test
def a_token_is_the_name_in_the_cache():
    with tempfile.TemporaryDirectory() as folder:
        for token in ("a", "b", "a"):
            interpreter = hosts.delegated(FLOAT, cache_dir=folder, model_token=token)
            interpreter.allocate_tensors()
        assert len(list(pathlib.Path(folder).glob("*.nnhal"))) == 2


@test
def the_device_may_be_one_of_another_process():
    fails(lambda: hosts.delegated(FLOAT, device="unix:/nowhere/nnhal.sock"))
    with cases.service() as (device, end):
        if device is None:
            return
        interpreter = hosts.delegated(INT8, device=device)
        interpreter.allocate_tensors()
        assert hosts.partitions(interpreter)[0] == 1
        value = image(interpreter)
        np.testing.assert_allclose(run(interpreter, value), expect(INT8, value), atol=1)
        end()
        fails(interpreter.invoke)


@test
def the_functions_survive_nonsense():
    loaded = library()
    assert not loaded.tflite_plugin_create_delegate(None, None, ctypes.c_size_t(3), None)
    keys = (ctypes.c_char_p * 1)(None)
    assert not loaded.tflite_plugin_create_delegate(keys, keys, ctypes.c_size_t(1), None)
    assert not loaded.tflite_plugin_create_delegate(keys, keys, ctypes.c_size_t(2**31), None)
    for pointer in (0, 1, 16, 2**63):
        loaded.tflite_plugin_destroy_delegate(ctypes.c_void_p(pointer))
    made = loaded.tflite_plugin_create_delegate(None, None, ctypes.c_size_t(0), None)
    assert made
    loaded.tflite_plugin_destroy_delegate(ctypes.c_void_p(made))
    loaded.tflite_plugin_destroy_delegate(ctypes.c_void_p(made))


@test
def a_delegate_that_is_destroyed_first_leaves_its_interpreter_running():
    delegate = hosts.load_delegate(hosts.LIBRARY)
    interpreter = hosts.Interpreter(str(INT8), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    value = image(interpreter)
    before = run(interpreter, value).copy()
    library().tflite_plugin_destroy_delegate(native(delegate))
    np.testing.assert_array_equal(run(interpreter, value), before)
    # Who comes with it now gets an error; the interpreter may go on without.
    fails(lambda: hosts.Interpreter(str(INT8), experimental_delegates=[delegate]))
    np.testing.assert_array_equal(run(interpreter, value), before)
    del interpreter


@test
def one_delegate_serves_several_interpreters():
    delegate = hosts.load_delegate(hosts.LIBRARY)
    both = [hosts.Interpreter(str(it), experimental_delegates=[delegate]) for it in (FLOAT, INT8)]
    for interpreter, model in zip(both, (FLOAT, INT8)):
        interpreter.allocate_tensors()
        value = image(interpreter)
        np.testing.assert_allclose(run(interpreter, value), expect(model, value), atol=1e-6)
    del both[0]
    value = image(both[0])
    np.testing.assert_array_equal(run(both[0], value), expect(INT8, value))


@test
def interpreters_on_threads_do_not_disturb_each_other():
    def work(seed):
        for model in (FLOAT, INT8):
            interpreter = hosts.delegated(model, threads="2")
            interpreter.allocate_tensors()
            value = image(interpreter, seed)
            expected = expect(model, value)
            for _ in range(50):
                np.testing.assert_allclose(run(interpreter, value), expected, atol=1e-6)

    cases.on_threads(work, range(4))


@test
def inputs_are_resized_back_and_forth():
    model = open_model()
    interpreter = hosts.delegated(model)
    details = interpreter.get_input_details()[0]
    for height in (4, 9, 4, 7, 9, 12, 5, 6, 8, 4):
        interpreter.resize_tensor_input(details["index"], [1, height, 6])
        interpreter.allocate_tensors()
        assert hosts.partitions(interpreter)[0] == 1
        value = np.random.default_rng(height).random((1, height, 6), np.float32)
        found = run(interpreter, value)
        assert found.shape == (1, height, 6)
        np.testing.assert_allclose(found, expect(model, value), atol=1e-6)


@test
def shapes_that_make_no_sense_are_errors_and_the_interpreter_recovers():
    interpreter = hosts.delegated(FLOAT)
    interpreter.allocate_tensors()
    value = image(interpreter)
    index = interpreter.get_input_details()[0]["index"]
    for shape in ([3, 8, 8, 1], [0, 8, 8, 1], [1, 1, 1, 1, 1, 1, 1, 1], [2**20, 2**11, 8, 1]):
        def allocate():
            interpreter.resize_tensor_input(index, shape)
            interpreter.allocate_tensors()
            interpreter.invoke()
        fails(allocate)
    for shape in ([1, 8, 8, 2], [1, 8], [8], [], [1, 1, 8, 8, 1], [1, 2, 2, 1]):
        # Some of these LiteRT takes: then the answer is the same, else there is an error.
        def both():
            odd = np.ones(shape, np.float32)
            interpreter.resize_tensor_input(index, shape)
            interpreter.allocate_tensors()
            np.testing.assert_allclose(run(interpreter, odd), expect(FLOAT, odd), atol=1e-6)
        try:
            both()
        except (ValueError, RuntimeError):
            pass
    interpreter.resize_tensor_input(index, [1, 8, 8, 1])
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter, value), expect(FLOAT, value), atol=1e-6)


@test
def invoking_before_allocating_is_an_error():
    fails(hosts.delegated(FLOAT).invoke)


@test
def a_process_that_was_forked_gets_an_error_and_may_begin_anew():
    interpreter = hosts.delegated(FLOAT, threads="2")
    interpreter.allocate_tensors()
    value = image(interpreter)
    expected = run(interpreter, value).copy()

    def child():
        nonlocal interpreter
        fails(interpreter.invoke, "process")
        fresh = hosts.delegated(FLOAT, threads="2")
        fresh.allocate_tensors()
        np.testing.assert_array_equal(run(fresh, value), expected)
        # Deleting the parent's waits for none of its threads.
        del interpreter, fresh
        gc.collect()

    assert cases.forked(child) == 0
    np.testing.assert_array_equal(run(interpreter, value), expected)


@test
def a_fork_while_a_thread_is_inside_never_hangs():
    busy, other = hosts.delegated(FLOAT, threads="2"), hosts.delegated(FLOAT, threads="2")
    for it in (busy, other):
        it.allocate_tensors()
    value = image(other)
    expected = run(other, value).copy()

    def child():
        try:
            fails(other.invoke, "process")
            fresh = hosts.delegated(FLOAT, threads="2")
            fresh.allocate_tensors()
            np.testing.assert_array_equal(run(fresh, value), expected)
        except ValueError as error:
            assert "process" in str(error), error

    outcomes = cases.forks_meanwhile(lambda: run(busy, value), child, 30)
    assert not any(outcomes), outcomes


@test
def inputs_without_elements_give_outputs_without():
    interpreter = hosts.delegated(flatfile.relu([2, 4]))
    interpreter.allocate_tensors()
    value = np.float32([[1, -1, 2, -2]])
    for shape in ([0, 4], [1, 4], [0, 4], [3, 0]):
        interpreter.resize_tensor_input(0, shape)
        interpreter.allocate_tensors()
        if 0 not in shape:
            interpreter.set_tensor(0, value)
        interpreter.invoke()
        assert list(interpreter.get_output_details()[0]["shape"]) == shape
        assert hosts.partitions(interpreter)[0] == 1
    interpreter.resize_tensor_input(0, [1, 4])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, value), [[1, 0, 2, 0]])


@test
def inputs_without_elements_beside_outputs_that_have_some():
    tensors = [flatfile.tensor("past", [1, 2]), flatfile.tensor("x", [2, 2]), flatfile.tensor("y", [3, 2]),
               flatfile.tensor("z", [3, 2])]
    join = (("B", 10), flatfile.Table(f0=("i", 0)))
    model = flatfile.model([2, flatfile.RELU], tensors, [0, 1], [3],
                           [(0, [0, 1], [2], *join), (1, [2], [3], None, None)])
    interpreter = hosts.delegated(model)
    x = np.float32([[1, -2], [-3, 4]])
    for rows in (0, 1, 3, 0):
        past = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2) - 1
        interpreter.resize_tensor_input(0, [rows, 2])
        interpreter.allocate_tensors()
        if rows:
            interpreter.set_tensor(0, past)
        interpreter.set_tensor(1, x)
        interpreter.invoke()
        expected = np.maximum(np.concatenate([past, x]), 0)
        np.testing.assert_array_equal(interpreter.get_tensor(3), expected)
        assert hosts.partitions(interpreter)[0] == 1


@test
def small_partitions_are_left():
    interpreter = hosts.delegated(FLOAT, min_nodes_per_partition="1000")
    interpreter.allocate_tensors()
    assert hosts.partitions(interpreter)[0] == 0
    value = image(interpreter)
    np.testing.assert_allclose(run(interpreter, value), expect(FLOAT, value), atol=1e-6)


@test
def partitions_are_chosen_by_size_and_number():
    model = islands([3, 1, 2])
    for options, expected in (({}, 3), ({"min_nodes_per_partition": "2"}, 2),
                              ({"min_nodes_per_partition": "3"}, 1), ({"max_partitions": "2"}, 2),
                              ({"max_partitions": "1"}, 1), ({"min_nodes_per_partition": "4"}, 0)):
        interpreter = hosts.delegated(model, **options)
        interpreter.allocate_tensors()
        assert hosts.partitions(interpreter)[0] == expected, (options, hosts.partitions(interpreter))
        value = 8 * image(interpreter) - 4
        np.testing.assert_array_equal(run(interpreter, value), expect(model, value))
        # Again in other shapes, with the host's operators in between.
        for length in (5, 40):
            interpreter.resize_tensor_input(0, [2, length])
            interpreter.allocate_tensors()
            value = 8 * np.random.default_rng(length).random((2, length), np.float32) - 4
            np.testing.assert_array_equal(run(interpreter, value), expect(model, value))


@test
def types_that_the_library_has_not_stay_with_the_host():
    # relu(float(a == b)) of texts.
    string, boolean = 5, 6
    names = [("a", string), ("b", string), ("same", boolean), ("x", flatfile.FLOAT32), ("y", flatfile.FLOAT32)]
    tensors = [flatfile.tensor(name, [3], kind) for name, kind in names]
    operators = [(0, [0, 1], [2], None, None), (1, [2], [3], None, None), (2, [3], [4], None, None)]
    model = flatfile.model([71, 53, flatfile.RELU], tensors, [0, 1], [4], operators)
    interpreter = hosts.delegated(model)
    interpreter.allocate_tensors()
    assert hosts.partitions(interpreter)[0] == 1
    for index, texts in enumerate((["a", "bc", "d"], ["a", "b", "d"])):
        interpreter.set_tensor(index, np.array(texts, dtype=np.bytes_))
    interpreter.invoke()
    assert list(interpreter.get_tensor(4)) == [1, 0, 1]


@test
def variables_are_the_interpreters():
    interpreter = hosts.delegated(flatfile.running_sum())
    interpreter.allocate_tensors()
    assert hosts.partitions(interpreter)[0] == 1
    step = lambda x: float(run(interpreter, np.float32([[x]]))[0, 0])
    assert [step(1), step(2), step(3)] == [1, 3, 6]
    interpreter.reset_all_variables()
    assert [step(5), step(2)] == [5, 7]
    # Two interpreters of one delegate have their own.
    delegate = hosts.load_delegate(hosts.LIBRARY)
    pair = [hosts.Interpreter(model_content=flatfile.running_sum(), experimental_delegates=[delegate])
            for _ in range(2)]
    sums = []
    for at, interpreter in enumerate(pair):
        interpreter.allocate_tensors()
        sums.append([step(x + at) for x in (1, 1, 1)])
    assert sums == [[1, 2, 3], [2, 4, 6]]


@test
def hostile_files_are_errors_of_the_host_or_ours():
    def runs(make):
        def call(file):
            interpreter = make(file)
            interpreter.allocate_tensors()
            interpreter.invoke()
        return call

    cases.broken_files(runs(hosts.plain), runs(hosts.delegated), 12)


@test
def a_composite_has_the_shape_of_its_input():
    model = composite()
    if hosts.HOST == "tflite-runtime":
        fails(lambda: hosts.plain(model))
        return
    interpreter = hosts.delegated(model)
    for length in (3, 5, 3, 0, 1):
        interpreter.resize_tensor_input(0, [2, length])
        interpreter.allocate_tensors()
        if length:
            value = np.random.default_rng(length).random((2, length), np.float32)
            np.testing.assert_allclose(run(interpreter, value), expect(model, value), atol=1e-6)
        assert hosts.partitions(interpreter)[0] == 1


def composite():
    """tanh(relu(x)) as a composite; `tflite-runtime` has no such operator."""
    T, tensor = flatfile.Table, flatfile.tensor
    ends = lambda: [tensor(name, [2, 3]) for name in "xy"]
    code = lambda it: T(f0=("b", min(it, 127)), f2=("i", 1), f3=("i", it))
    main = T(f0=ends(), f1=[0], f2=[1],
             f3=[T(f0=("I", 0), f1=[0], f2=[1], f11=("B", 21), f12=T(f0="test.tanh", f1=("i", 1), f2=b"\0"))])
    body = T(f0=[*ends(), tensor("z", [2, 3])], f1=[0], f2=[2],
             f3=[T(f0=("I", 1), f1=[0], f2=[1]), T(f0=("I", 2), f1=[1], f2=[2])])
    return flatfile.file(T(f0=("I", 3), f1=[code(206), code(flatfile.RELU), code(28)], f2=[main, body], f4=[T()]))


@test
def subgraphs_that_run_each_other_are_left():
    """The host would never end."""
    for body in (0, 1):
        T, tensor = flatfile.Table, flatfile.tensor
        graph = lambda number: T(
            f0=[tensor(name, [2]) for name in "xy"], f1=[0], f2=[1],
            f3=[T(f0=("I", 0), f1=[0], f2=[1], f11=("B", 21), f12=T(f0="test", f1=("i", number), f2=b"\0"))])
        model = flatfile.file(T(f0=("I", 3), f1=[T(f0=("b", 127), f2=("i", 1), f3=("i", 206))],
                                f2=[graph(1), graph(body)], f4=[T()]))
        try:
            assert hosts.partitions(hosts.delegated(model))[0] == 0
        except ValueError:
            pass    # the host itself refuses it


@test
def loops_that_run_each_other_are_left():
    """Each WHILE runs the graph of another, the main one or its own; only the host could end that."""
    T, tensor = flatfile.Table, flatfile.tensor
    for bodies in ((0, 0), (1, 0), (1, 1), (1, 2, 0), (1, 2, 1), (1, 9), (-1, 0)):
        graphs = [T(f0=[tensor("x", [2]), tensor("y", [2])], f1=[0], f2=[1], f3=[
            T(f0=("I", 0), f1=[0], f2=[1], f3=("B", 93), f4=T(f0=("i", body), f1=("i", body)))])
            for body in bodies]
        model = flatfile.file(T(f0=("I", 3), f1=[T(f0=("b", 119), f2=("i", 1), f3=("i", 119))], f2=graphs, f4=[T()]))
        if cases.forked(lambda: hosts.plain(model)) == 0:
            assert cases.forked(lambda: hosts.delegated(model)) == 0, bodies


if __name__ == "__main__":
    cases.main(hosts.HOST)
