"""`nnhal.load` and what it gives."""

import ctypes
import gc
import json
import logging
import pickle
import sys
import threading

import numpy as np
import pytest

import flatfile
import nnhal
from nnhal import _log


@pytest.fixture
def digits(digits_path):
    return nnhal.load(digits_path)


@pytest.fixture
def add(add_bytes):
    return nnhal.load(add_bytes)


ONES = np.ones((1, 4), np.float32)


def test_a_digit_is_read_from_real_numbers(digits, digit):
    outputs = digits(digit)
    assert outputs["probabilities"].argmax() == 7
    assert outputs[0].dtype == np.int8
    real = digits.outputs[0].dequantize(outputs[0])
    assert real.dtype == np.float32 and 0.9 < real.max() <= 1.0
    assert np.argmax(outputs) == 7


def test_a_model_says_what_it_takes_and_gives(digits, open_bytes):
    image = digits.inputs[0]
    assert (image.name, image.tensor_name) == ("image", "serving_default_image:0")
    assert image.shape == (1, 8, 8, 1) and image.dtype == np.int8 and image.zero_points == (-128,)
    assert nnhal.load(open_bytes).inputs[0].shape == (None, 4)
    assert digits.signatures["serving_default"].inputs == {"image": 0}
    assert digits.device == "nnhal-cpu" and not digits.is_stateful


def test_inputs_go_by_order_or_by_name(add):
    expected = [[3.0] * 4]
    for outputs in (
        add(ONES, 2 * ONES),
        add(x=ONES, y=2 * ONES),
        add(ONES, y=2 * ONES),
        add(b=2 * ONES, a=ONES),
        add(inputs={"x": ONES, "b": 2 * ONES}),
    ):
        assert (outputs["sum"] == expected).all() and (outputs["y"] == expected).all() if "y" in outputs else True
        assert list(dict(outputs)) == ["sum"]


@pytest.mark.parametrize(
    "args, kwargs, sentence",
    [
        ((ONES,), {}, "input y is not given"),
        ((ONES, ONES, ONES), {}, "3 inputs are given, the model has 2"),
        ((ONES,), {"x": ONES}, "given twice"),
        ((ONES,), {"z": ONES}, "there is no input 'z'; there are: x, y"),
        ((ONES, np.ones((2, 4), np.float32)), {}, r"the shape is \[2, 4\], expected \[1, 4\]"),
        ((ONES, np.ones((1, 4), np.int32)), {}, "int32"),
        ((ONES, np.array(["a"])), {}, "dtype"),
        ((ONES, object()), {}, "dtype"),
        ((ONES, ONES), {"timeout": -1.0}, "-1"),
    ],
)
def test_values_that_do_not_fit_are_refused(add, args, kwargs, sentence):
    with pytest.raises(ValueError, match=sentence):
        add(*args, **kwargs)


def strided(shape):
    """Arrays with the same elements in different places of memory."""
    whole = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    wide = np.zeros([2 * length for length in shape], np.float32)
    every_other = wide[tuple(slice(None, None, 2) for _ in shape)]
    every_other[...] = whole
    backwards = whole[tuple(slice(None, None, -1) for _ in shape)].copy()
    yield "contiguous", whole
    yield "every other", every_other
    yield "backwards", backwards[tuple(slice(None, None, -1) for _ in shape)]
    yield "columns first", np.asfortranarray(whole)
    yield "a part of rows", np.pad(whole, [(0, 3)] * len(shape))[tuple(slice(0, n) for n in shape)]
    yield "read-only", (lambda it: (it.setflags(write=False), it)[1])(whole.copy())
    yield "not aligned", np.frombuffer(b"x" + whole.tobytes(), np.float32, offset=1).reshape(shape)


@pytest.mark.parametrize("shape", [[1, 4], [3, 5, 7], [4, 300], [2, 3, 100], [40, 500], [3, 60, 200]])
def test_every_layout_of_memory_is_taken(shape):
    model = nnhal.load(flatfile.add(shape))
    expected = 2 * np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for name, array in strided(shape):
        assert (model(array, array)[0] == expected).all(), name


def test_large_results_are_arrays_of_their_own():
    shape = [200, 300]
    model = nnhal.load(flatfile.add(shape))
    arrays = [np.full(shape, number, np.float32) for number in range(4)]
    results = [model(array, array)[0] for array in arrays]
    for number, result in enumerate(results):
        assert (result == 2 * number).all() and result.flags.writeable
        result[...] = -1
    assert [array.max() for array in arrays] == [0, 1, 2, 3]
    # What a run does not finish in time leaves the arrays and the model as they were.
    with pytest.raises(nnhal.Error):
        model(arrays[1], arrays[2], timeout=0.0)
    assert (model(arrays[1], out=arrays[0], y=arrays[1])[0] == 2).all() and (arrays[0] == 2).all()


def test_large_results_go_into_arrays_that_are_given(tmp_path):
    shape = [200, 300]
    model = nnhal.load(flatfile.add(shape))
    ones = np.ones(shape, np.float32)
    file = np.memmap(tmp_path / "result", np.float32, "w+", shape=(200, 300))
    wide = np.zeros((200, 600), np.float32)
    for out in (np.zeros(shape, np.float32), file, wide[:, ::2], np.zeros((201, 300), np.float32)[1:]):
        assert model(ones, ones, out=out)[0] is out and (out == 2).all()
    assert (wide[:, 1::2] == 0).all()
    # An input's own array, whole or in part, takes what becomes of the values that it had.
    whole = np.arange(201 * 300, dtype=np.float32).reshape(201, 300)
    expected = 2 * whole[1:]
    assert (model(whole[1:], whole[1:], out=whole[1:])[0] == expected).all()
    assert (model(ones, ones, out=ones)[0] == 2).all() and (ones == 2).all()
    for wrong in (np.zeros(shape, np.int32), np.zeros((300, 200), np.float32)):
        with pytest.raises(ValueError):
            model(ones, ones, out=wrong)
        assert (wrong == 0).all()
    wrong = np.zeros(shape, np.float32)
    wrong.setflags(write=False)
    with pytest.raises(ValueError):
        model(ones, ones, out=wrong)


def test_threads_run_a_model_with_large_arrays():
    shape = [200, 300]
    model = nnhal.load(flatfile.add(shape), threads=2)
    wrong = []

    def run(number):
        array = np.full(shape, number, np.float32)
        for _ in range(50):
            if not (model(array, array)[0] == 2 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_repeated_element_is_taken(add):
    same = np.broadcast_to(np.float32(3), (1, 4))
    assert (add(same, same)[0] == 6.0).all()


def test_other_floats_are_rounded_to_the_models(add):
    for dtype in (np.float64, np.float16):
        assert (add(ONES.astype(dtype), ONES.astype(dtype)[:, ::-1])[0] == 2.0).all()


def test_lists_buffers_and_dlpack_are_taken(add):
    class OnlyDlpack:
        def __dlpack__(self, **arguments):
            return ONES.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return ONES.__dlpack_device__()

    buffer = (ctypes.c_float * 4 * 1)((1, 1, 1, 1))
    for value in ([[1, 1, 1, 1]], [[1.0, 1, 1, 1]], OnlyDlpack(), buffer, memoryview(ONES)):
        assert (add(value, ONES)[0] == 2.0).all()


def test_integers_of_a_list_must_fit():
    model = nnhal.load(flatfile.add([2], flatfile.INT32))
    assert list(model([1, 2], [3, 4])[0]) == [4, 6]
    with pytest.raises(ValueError, match="int32 does not hold"):
        model([1, 2**40], [3, 4])


def test_floats_of_a_list_for_integers_must_be_what_the_dtype_holds(digits):
    model = nnhal.load(flatfile.add([2], flatfile.INT32))
    assert list(model([1.0, -2.0], [3, 4])[0]) == [4, 2]
    for wrong in ([1.5, 2.0], [1e10, 0.0], [float("nan"), 0.0], [float("inf"), 0.0]):
        with pytest.raises(ValueError, match="int32 does not hold"):
            model(wrong, [3, 4])
        with pytest.raises(ValueError, match="int32 does not hold"):
            model(y=[3, 4], x=wrong)
    # For a quantized input they are real values.
    half = np.full((1, 8, 8, 1), 0.5, np.float32)
    assert (digits(half.tolist())[0] == digits(half)[0]).all()


def test_arrays_of_the_other_byte_order_are_converted(add, digits, digit):
    other = np.arange(4, dtype=">f4")[None]
    assert not other.dtype.isnative
    expected = [[1, 2, 3, 4]]
    for value in (other, other.astype(">f8"), other[0, :1].repeat(4)[None] + other, memoryview(ONES * other)):
        assert (add(value, ONES)[0] == expected).all()
        assert (add(y=ONES, x=value)[0] == expected).all()
    assert (digits(digit.astype(">f4"))[0] == digits(digit)[0]).all()
    integers = nnhal.load(flatfile.add([2], flatfile.INT32))
    assert list(integers(np.array([1, 2**20], ">i4"), [3, 4])[0]) == [4, 2**20 + 4]
    given = np.zeros((1, 4), ">f4")
    with pytest.raises(ValueError, match="dtype"):
        add(ONES, ONES, out=given)
    assert (given == 0).all()


def test_a_batch_of_no_rows_gives_no_rows(open_bytes, digits):
    model = nnhal.load(open_bytes)
    for rows in (0, 2, 0):
        value = np.ones((rows, 4), np.float32)
        found = model(value, value)[0]
        assert found.shape == (rows, 4) and found.dtype == np.float32 and (found == 2).all()
    given = np.zeros((0, 4), np.float32)
    assert model(given, given, out=given)[0] is given
    with pytest.raises(ValueError, match=r"the shape is \[0, 8, 8, 1\], expected \[1, 8, 8, 1\]"):
        digits(np.zeros((0, 8, 8, 1), np.int8))


def test_results_go_into_arrays_that_are_given(add):
    given = np.zeros((1, 4), np.float32)
    for out in (given, [given], {"sum": given}, {"y": given}):
        given.fill(0)
        assert add(ONES, ONES, out=out)[0] is given
        assert (given == 2.0).all()
    wide = np.zeros((1, 8), np.float32)
    add(ONES, ONES, out=wide[:, ::2])
    assert (wide == [[2, 0] * 4]).all()
    outputs = add(ONES, ONES)
    assert add(ONES, 2 * ONES, out=outputs)[0] is outputs[0]


@pytest.mark.parametrize(
    "out, sentence",
    [
        (np.zeros((1, 5), np.float32), "shape"),
        (np.zeros((1, 4), np.int32), "int32"),
        ([None, None], "2 arrays are given for outputs"),
        ({"nope": ONES}, "there is no output 'nope'"),
        (np.broadcast_to(np.float32(0), (1, 4)), "read-only"),
    ],
)
def test_arrays_that_results_do_not_fit_are_refused(add, out, sentence):
    with pytest.raises(ValueError, match=sentence):
        add(ONES, ONES, out=out)


def test_open_lengths_are_those_of_the_values(open_bytes):
    model = nnhal.load(open_bytes)
    for length in (3, 1, 7, 3):
        value = np.full((length, 4), length, np.float32)
        assert (model(value, value)[0] == 2 * value).all()


def test_a_model_pickles_by_where_it_came_from(digits, add_bytes, digit):
    again = pickle.loads(pickle.dumps(digits))
    assert (again(digit)[0] == digits(digit)[0]).all()
    threads = nnhal.load(add_bytes, threads=1)
    assert (pickle.loads(pickle.dumps(threads))(ONES, ONES)[0] == 2.0).all()


def test_many_threads_run_one_model(digits, digit):
    expected, wrong = digits(digit)[0], []

    def run():
        for _ in range(50):
            if not (digits(digit)[0] == expected).all():
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_profile_is_a_record_for_each_step(digits, digit):
    records = digits.profile(digit, warmup=1, runs=2)
    assert records[0]["operator"] == "CONV_2D" and records[0]["operator_index"] == 0
    assert all(record["time_us"] > 0 and record["kernel"] for record in records)
    assert abs(sum(record["share"] for record in records) - 1.0) < 1e-6
    assert digits.profile(runs=1)
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(records)
    assert list(table.columns) == list(records[0]) and len(table) == len(records)


def test_devices_are_listed_and_can_be_chosen(digits_path, digit):
    names = [device["name"] for device in nnhal.devices()]
    assert names == ["nnhal-cpu", "nnhal-reference"]
    found = [nnhal.load(digits_path, device=name)(digit)[0].argmax() for name in names]
    assert found == [7, 7]
    with pytest.raises(nnhal.Error, match="there is no device \"nope\"; there are: nnhal-cpu"):
        nnhal.load(digits_path, device="nope")


def test_options_that_make_no_sense_are_refused(digits_path):
    for options in ({"priority": "urgent"}, {"preference": "x"}, {"timeout": -1.0}, {"timeout": float("nan")}):
        with pytest.raises(ValueError):
            nnhal.load(digits_path, **options)
    with pytest.raises((OverflowError, TypeError)):
        nnhal.load(digits_path, threads=-1)
    with pytest.raises(nnhal.Error, match="cache_dir, which is not given"):
        nnhal.load(digits_path, share_weights=True)


def test_a_run_out_of_time_is_an_error_with_the_devices_status(digits, digit):
    with pytest.raises(nnhal.Error) as error:
        digits(digit, timeout=0.0)
    assert "DEADLINE" in error.value.status.upper()


def test_prepared_models_are_kept(digits_path, tmp_path, digit):
    assert not nnhal.load(digits_path, cache_dir=tmp_path).is_from_cache
    again = nnhal.load(digits_path, cache_dir=tmp_path)
    assert again.is_from_cache and again(digit)[0].argmax() == 7


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_weights_are_shared_by_those_who_load_the_same(digits_path, tmp_path, digit):
    def mapped():
        with open("/proc/self/maps", encoding="ascii") as maps:
            return {line.split()[4] for line in maps if str(tmp_path) in line}

    first = nnhal.load(digits_path, cache_dir=tmp_path, share_weights=True)
    memory = mapped()
    assert not first.is_from_cache and len(memory) == 1
    again = pickle.loads(pickle.dumps(first))
    assert again.is_from_cache and mapped() == memory
    assert (again(digit)[0] == first(digit)[0]).all()
    del first, again
    gc.collect()
    assert not mapped()


def test_errors_are_what_litert_raises_and_pickle():
    with pytest.raises(nnhal.Error, match="nowhere.tflite") as error:
        nnhal.load("/nowhere.tflite")
    assert isinstance(error.value, ValueError) and isinstance(error.value, RuntimeError)
    again = pickle.loads(pickle.dumps(nnhal.Error("a", "b", "c")))
    assert (str(again), again.status, again.operation) == ("a", "b", "c")


def test_log_lines_reach_logging(caplog):
    with pytest.raises(ValueError):
        nnhal.enable_logging("no=such=filter")
    nnhal.enable_logging("trace")
    nnhal.enable_logging("trace")
    with caplog.at_level(logging.DEBUG, logger="nnhal"):
        _log._emit([(30, "nnhal_cpu::plan", "a line")])
        _log.flush()
    assert ("nnhal.nnhal_cpu.plan", logging.WARNING, "a line") in caplog.record_tuples


def test_a_trace_has_what_happened_meanwhile(digits_path, digit, tmp_path):
    path = tmp_path / "trace.json"
    nnhal.load(digits_path)(digit)
    for _ in range(2):
        with nnhal.trace(path):
            nnhal.load(digits_path)(digit)
            with pytest.raises(nnhal.Error, match="already"), nnhal.trace(path):
                pass
        nnhal.load(digits_path)(digit)
        names = [event["name"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
        assert names.count("import") == names.count("execute") == 1
    with pytest.raises(nnhal.Error, match="missing"), nnhal.trace(tmp_path / "missing" / "trace.json"):
        pass
    with nnhal.trace(path):
        pass


def test_devices_agree_and_are_measured(digits_path, digits, digit):
    comparison = nnhal.compare(digits_path, digit)
    assert comparison and comparison.compared > 5
    for statistics in (nnhal.bench(digits, digit, runs=5), nnhal.bench(digits_path, runs=5, threads=1)):
        assert statistics.runs == 5
        assert 0 < statistics.min <= statistics.median <= statistics.p90 < 1.0
    with pytest.raises(TypeError, match="prepared already"):
        nnhal.bench(digits, threads=2)
    for runs in (0, -1):
        with pytest.raises(nnhal.Error, match=f"{runs} runs cannot be measured"):
            nnhal.bench(digits, digit, runs=runs)
        with pytest.raises(nnhal.Error, match=f"{runs} runs cannot be measured"):
            digits.profile(digit, runs=runs)


def test_a_difference_names_the_operator(digits_path):
    tight = nnhal.compare(digits_path.parent / "digits_float32.tflite", absolute=0.0, relative=0.0)
    if not tight:
        assert "expected" in tight.what and "as was said" in tight.allowed


def test_a_stateful_model_goes_on_until_it_is_reset():
    model, one = nnhal.load(flatfile.running_sum()), np.ones((1, 1), np.float32)
    assert model.is_stateful
    assert [model(one)[0].item() for _ in range(3)] == [1.0, 2.0, 3.0]
    model.reset()
    assert model(one)[0].item() == 1.0
    assert pickle.loads(pickle.dumps(model))(one)[0].item() == 1.0


def test_threads_take_turns_with_a_stateful_model():
    model, one = nnhal.load(flatfile.running_sum()), np.ones((1, 1), np.float32)
    sums = []
    threads = [
        threading.Thread(target=lambda: sums.extend(model(one)[0].item() for _ in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums) == [float(number) for number in range(1, 401)]


def test_weights_of_8_bits_beside_floats_are_dequantized_if_asked_for():
    layer, row = flatfile.dynamic_range_layer(), np.float32([[0.104, 1.553, -0.997]])
    # The row is rounded to hundredths.
    np.testing.assert_allclose(nnhal.load(layer)(row)[0], [[0.1, 0.5375]], rtol=1e-5)
    exact = nnhal.load(layer, dequantized_weights=True)
    np.testing.assert_allclose(exact(row)[0], [[0.1095, 0.54975]], rtol=1e-5)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(exact))(row)[0], exact(row)[0])
