#!/usr/bin/env python3
"""What a program asks of compiled models, and what it can do wrong. Each test runs in a process of its own, and one that
dies is a failure.

    NNHAL_LITERT_LIBRARIES=FOLDER python hostile.py [NAME]
"""

import gc
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "litert_delegate")]
os.environ.setdefault("NNHAL_LITERT_OPTIONS", "threads:2;log:debug")

import asynchronous  # noqa: E402
import compiled  # noqa: E402: reads the environment
import hostile_cases as cases  # noqa: E402
from hostile_cases import FLOAT, INT8, fails, flatfile, image, test  # noqa: E402


def expect(model, *values):
    interpreter = compiled.interpreter(model)
    for details, value in zip(interpreter.get_input_details(), values):
        interpreter.resize_tensor_input(details["index"], value.shape)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(it["index"]) for it in interpreter.get_output_details()]


def run(model, *values, of=None, signature=0):
    return compiled.run(model, values, [(it.shape, it.dtype) for it in of], signature)


@test
def both_digits_run_on_nnhal_alone():
    for path, kind, near in ((FLOAT, np.float32, 1e-6), (INT8, np.int8, 0)):
        with compiled.Log() as log:
            model = compiled.compiled(path, compiled.OURS)
            assert model.is_fully_accelerated()
            for seed in range(3):
                value = image(kind, seed)
                expected = expect(path, value)
                np.testing.assert_allclose(run(model, value, of=expected)[0], expected[0], atol=near)
        assert log.operators() == (12, 12), log.text
        assert log.runs() == 3, log.text
        assert not log.errors(), log.text


@test
def what_nnhal_has_not_is_left_to_litert():
    model = parts([3, 1, 2])
    with compiled.Log() as log:
        made = compiled.compiled(model)
        value = 8 * np.random.default_rng(1).random((1, 8), np.float32) - 4
        expected = expect(model, value)
        np.testing.assert_array_equal(run(made, value, of=expected)[0], expected[0])
    assert log.operators() == (6, 8), log.text
    assert log.runs() == 3 and not log.errors(), log.text


def parts(lengths):
    """Chains of RELU with a FAKE_QUANT between them, whose options LiteRT does not tell a plugin."""
    tensors, operators = [flatfile.tensor("x", [1, 8])], []
    table = flatfile.Table(_0=("f", -4.0), _1=("f", 4.0), _2=("i", 8))
    for number, length in enumerate(lengths):
        for kind in [1] * (number > 0) + [0] * length:
            options = (("B", 60), table) if kind else (None, None)
            operators.append((kind, [len(tensors) - 1], [len(tensors)], *options))
            tensors.append(flatfile.tensor(f"t{len(tensors)}", [1, 8]))
    return flatfile.model([flatfile.RELU, 80], tensors, [0], [len(tensors) - 1], operators)


@test
def signatures_have_partitions_of_their_own():
    model = two_signatures()
    with compiled.Log() as log:
        made = compiled.compiled(model)
        x = np.float32([[-1, 2, -3]])
        found = [run(made, x, of=[x], signature=at)[0] for at in range(2)]
    np.testing.assert_array_equal(found[0], [[0, 2, 0]])
    np.testing.assert_array_equal(found[1], [[-2, 4, -6]])
    assert log.runs() == 2 and not log.errors(), log.text


def two_signatures():
    T, tensor = flatfile.Table, flatfile.tensor
    relu = T(f0=[tensor("x", [1, 3]), tensor("y", [1, 3])], f1=[0], f2=[1],
             f3=[T(f0=("I", 0), f1=[0], f2=[1])])
    double = T(f0=[tensor("x", [1, 3]), tensor("y", [1, 3])], f1=[0], f2=[1],
               f3=[T(f0=("I", 1), f1=[0, 0], f2=[1], f3=("B", 11), f4=T())])
    code = lambda it: T(f0=("b", it), f2=("i", 1), f3=("i", it))
    ends = lambda name: [T(f0=name, f1=("I", 0 if name == "x" else 1))]
    signature = lambda name, at: T(f0=ends("x"), f1=ends("y"), f2=name, f4=("I", at))
    return flatfile.file(T(f0=("I", 3), f1=[code(flatfile.RELU), code(flatfile.ADD)], f2=[relu, double],
                           f4=[T()], f7=[signature("first", 0), signature("second", 1)]))


@test
def another_shape_is_an_error():
    def resized():
        model.resize_input_tensor(0, [2, 4], strict=False)
        run(model, np.ones((2, 4), np.float32), of=[np.zeros((2, 4), np.float32)])

    with compiled.Log():
        model = compiled.compiled(flatfile.relu([1, 4]))
        fails(resized)


@test
def open_shapes_are_left_to_litert():
    tensors = [flatfile.tensor(name, [1, 4], signature=[-1, 4]) for name in "xy"]
    for it in tensors:
        it.fields[8] = ("B", 1)  # it has a rank
    model = flatfile.model([flatfile.RELU], tensors, [0], [1], [(0, [0], [1], None, None)])
    with compiled.Log() as log:
        made = compiled.compiled(model)
        for length in (1, 3):
            value = np.random.default_rng(length).random((length, 4), np.float32) - 0.5
            expected = expect(model, value)
            np.testing.assert_array_equal(run(made, value, of=expected)[0], expected[0])
    assert log.runs() == 0, log.text
    assert "is known only later" in log.text, log.text


@test
def wrong_options_are_an_error_that_lists_them():
    os.environ["NNHAL_LITERT_OPTIONS"] = "treads:2"
    with compiled.Log() as log:
        model = compiled.compiled(FLOAT)
        value = image(np.float32)
        expected = expect(FLOAT, value)
        # The plugin is left out, and LiteRT runs the model.
        np.testing.assert_allclose(run(model, value, of=expected)[0], expected[0], atol=1e-6)
    assert "NNHAL_LITERT_OPTIONS" in log.text and "treads" in log.text and "threads (number" in log.text


@test
def the_device_may_be_one_of_another_process():
    with cases.service() as (device, end):
        if device is None:
            return
        os.environ["NNHAL_LITERT_OPTIONS"] = f"log:debug;device:{device}"
        with compiled.Log() as log:
            model = compiled.compiled(INT8, compiled.OURS)
            for seed in range(2):
                value = image(np.int8, seed)
                expected = expect(INT8, value)
                np.testing.assert_allclose(run(model, value, of=expected)[0], expected[0], atol=1)
        assert log.operators() == (12, 12) and log.runs() == 2, log.text
        end()
        with compiled.Log():
            fails(lambda: run(model, value, of=expected))


@test
def the_trace_has_the_operations():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        script = ("from hostile import *; m = compiled.compiled(FLOAT); run(m, image(np.float32), of=[np.zeros((1, 10), np.float32)]); "
                  "del m; gc.collect()")
        environment = dict(os.environ, NNHAL_LITERT_OPTIONS=f"threads:1;profile:{path}",
                           PYTHONPATH=f"{HERE}")
        subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True)
        assert "CONV" in path.read_text().upper()
        json.loads(path.read_text())


@test
def models_on_threads_are_separate():
    def work(of):
        path, kind = of
        model = compiled.compiled(path)
        for seed in range(40):
            value = image(kind, seed)
            expected = expect(path, value)
            np.testing.assert_allclose(run(model, value, of=expected)[0], expected[0], atol=1e-5)

    with compiled.Log():
        cases.on_threads(work, [(FLOAT, np.float32), (INT8, np.int8)] * 2)


@test
def models_can_go_in_any_order():
    with compiled.Log() as log:
        first, second = compiled.compiled(FLOAT), compiled.compiled(INT8)
        value = image(np.int8)
        expected = expect(INT8, value)
        first.close()
        np.testing.assert_array_equal(run(second, value, of=expected)[0], expected[0])
        del first, second
        gc.collect()
    assert not log.errors(), log.text


@test
def after_fork_it_is_an_error_and_the_child_makes_its_own():
    with compiled.Log() as log:
        model = compiled.compiled(FLOAT)
        value = image(np.float32)
        expected = expect(FLOAT, value)
        run(model, value, of=expected)

        def child():
            nonlocal model
            fails(lambda: run(model, value, of=expected))
            fresh = compiled.compiled(FLOAT)
            np.testing.assert_allclose(run(fresh, value, of=expected)[0], expected[0], atol=1e-6)
            del model, fresh
            gc.collect()

        status = cases.forked(child)
        np.testing.assert_allclose(run(model, value, of=expected)[0], expected[0], atol=1e-6)
    assert status == 0, log.text
    assert "make it after the fork" in log.text, log.text


@test
def a_fork_while_a_thread_is_inside_never_hangs():
    with compiled.Log() as log:
        busy, other = compiled.compiled(FLOAT), compiled.compiled(FLOAT)
        value = image(np.float32)
        expected = expect(FLOAT, value)
        taken, given = busy.create_input_buffers(0), busy.create_output_buffers(0)
        taken[0].write(value)
        outcomes = cases.forks_meanwhile(lambda: busy.run_by_index(0, taken, given),
                                         lambda: fails(lambda: run(other, value, of=expected)), 15)
    assert not any(outcomes), (outcomes, log.text[-2000:])


@test
def hostile_files_are_errors_or_run():
    """What LiteRT survives alone it survives with us."""
    def runs(make):
        return lambda file: run(make(file), np.zeros((1, 8, 8, 1), np.int8), of=[np.zeros((1, 10), np.int8)])

    cases.broken_files(runs(compiled.plain), runs(compiled.compiled), 12)


@test
def an_asynchronous_run_of_a_c_program_is_done_when_it_returns():
    asynchronous.check(compiled.FOLDER, flatfile.relu([1, 4]), compiled.Log())


@test
def buffers_of_other_sizes_and_missing_ones_are_errors():
    with compiled.Log() as log:
        model, other = compiled.compiled(FLOAT, compiled.OURS), compiled.compiled(flatfile.relu([1, 4]))
        value = image(np.float32)
        expected = expect(FLOAT, value)
        taken, given = model.create_input_buffers(0), model.create_output_buffers(0)
        small, also_small = other.create_input_buffers(0), other.create_output_buffers(0)
        for wrong in ((small, given), (taken, also_small), (given, taken), ([], given), (taken, []),
                      (taken * 2, given), (taken, given * 2)):
            fails(lambda: model.run_by_index(0, *wrong))
        fails(lambda: model.run_by_index(3, taken, given))
        # It runs on.
        np.testing.assert_allclose(run(model, value, of=expected)[0], expected[0], atol=1e-6)
        np.testing.assert_array_equal(run(other, np.float32([[1, -1, 2, -2]]), of=[np.zeros((1, 4), np.float32)])[0],
                                      [[1, 0, 2, 0]])
    assert log.runs() >= 2, log.text


@test
def buffers_outlive_their_model_and_serve_another():
    with compiled.Log():
        first, second = compiled.compiled(FLOAT), compiled.compiled(FLOAT)
        value = image(np.float32)
        expected = expect(FLOAT, value)
        taken, given = first.create_input_buffers(0), first.create_output_buffers(0)
        taken[0].write(value)
        # Buffers of one model in another of the same form.
        second.run_by_index(0, taken, given)
        first.close()
        second.run_by_index(0, taken, given)
        np.testing.assert_allclose(given[0].read(10, np.float32), expected[0].ravel(), atol=1e-6)


@test
def a_result_that_is_known_before_runs_is_right_where_it_is_read():
    T, tensor = flatfile.Table, flatfile.tensor
    tensors = [tensor("x", []), tensor("z", [3], flatfile.INT32), tensor("rank", [], flatfile.INT32),
               tensor("y", [3], flatfile.INT32)]
    model = flatfile.model([110, flatfile.ADD], tensors, [0, 1], [2, 3],
                           [(0, [0], [2], None, None), (1, [2, 1], [3], ("B", 11), T())])
    values = np.array(2, np.float32), np.int32([1, 2, 3])
    outputs = [np.zeros((), np.int32), values[1]]

    def is_right(make):
        with compiled.Log():
            found = [run(make(model), *values, of=outputs) for _ in range(40)]
        return all(np.array_equal(x, y) for each in found for x, y in zip(each, outputs))

    try:
        host_is_right = is_right(compiled.plain)
    except RuntimeError:
        host_is_right = False
    # LiteRT 2.3 itself does not write such a result.
    assert is_right(compiled.compiled) or not host_is_right


@test
def a_library_alone_is_no_harm():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libLiteRtCompilerPlugin_nnhal.so",):
            shutil.copy(pathlib.Path(compiled.FOLDER) / name, folder)
        script = ("import compiled, sys; compiled.FOLDER = sys.argv[1]; "
                  "compiled.compiled(sys.argv[2])")
        done = subprocess.run([sys.executable, "-c", script, folder, str(FLOAT)], capture_output=True, text=True,
                              cwd=HERE)
    # LiteRT cannot run what was compiled then; it says so here or when it is run.
    said = any(words in done.stderr for words in ("No dispatch library", "Dispatch library not found"))
    assert done.returncode in (0, 1) and said, (done.returncode, done.stderr)


if __name__ == "__main__":
    cases.main(compiled.HOST)
