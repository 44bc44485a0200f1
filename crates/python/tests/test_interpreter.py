"""`nnhal.Interpreter` does what LiteRT's does."""

import pathlib
import pickle
import threading

import numpy as np
import pytest

import flatfile
import nnhal


@pytest.fixture
def digits(digits_path):
    interpreter = nnhal.Interpreter(model_path=str(digits_path))
    interpreter.allocate_tensors()
    return interpreter


@pytest.fixture
def add(add_bytes):
    interpreter = nnhal.Interpreter(model_content=add_bytes)
    interpreter.allocate_tensors()
    return interpreter


def quantized(image, details):
    scale, zero_point = details["quantization"]
    return np.clip(np.round(image / scale) + zero_point, -128, 127).astype(details["dtype"])


def test_a_digit_is_read(digits, digit):
    image, probabilities = digits.get_input_details()[0], digits.get_output_details()[0]
    digits.set_tensor(image["index"], quantized(digit, image))
    digits.invoke()
    found = digits.get_tensor(probabilities["index"])
    assert found.dtype == np.int8 and found.shape == (1, 10)
    assert found.argmax() == 7


def test_details_have_the_keys_and_types_of_litert(digits):
    details = digits.get_input_details()[0]
    assert list(details) == [
        "name", "index", "shape", "shape_signature", "dtype", "quantization",
        "quantization_parameters", "sparsity_parameters",
    ]
    assert details["name"] == "serving_default_image:0" and details["index"] == 0
    assert details["shape"].dtype == np.int32 and list(details["shape"]) == [1, 8, 8, 1]
    assert details["dtype"] is np.int8
    assert details["quantization"] == (np.float32(1 / 255).item(), -128)
    parameters = details["quantization_parameters"]
    assert parameters["scales"].dtype == np.float32 and parameters["zero_points"].dtype == np.int32
    assert parameters["quantized_dimension"] == 0
    per_channel = digits.get_tensor_details()[15]
    assert len(per_channel["quantization_parameters"]["scales"]) == 16
    assert per_channel["quantization"] == (0.0, 0)


def test_an_open_length_is_minus_one_in_the_signature(open_bytes):
    interpreter = nnhal.Interpreter(model_content=open_bytes)
    details = interpreter.get_input_details()[0]
    assert list(details["shape"]) == [1, 4] and list(details["shape_signature"]) == [-1, 4]


def test_before_allocation_everything_is_refused(add_bytes):
    interpreter = nnhal.Interpreter(model_content=add_bytes)
    with pytest.raises(ValueError, match="Tensor is unallocated"):
        interpreter.set_tensor(0, np.zeros((1, 4), np.float32))
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(2)
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.tensor(0)()
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()


@pytest.mark.parametrize(
    "value, sentence",
    [
        (np.zeros((1, 4), np.float64), "Got value of type FLOAT64 but expected type FLOAT32"),
        ([[1, 2, 3, 4]], "Got value of type INT64 but expected type FLOAT32"),
        (np.zeros((2, 4), np.float32), "Got 2 but expected 1 for dimension 0"),
        (np.zeros(4, np.float32), "Got 1 but expected 2"),
        (np.zeros((1, 4), ">f4"), "type FLOAT32, in the other byte order, but expected type FLOAT32"),
    ],
)
def test_values_that_do_not_fit_are_refused(add, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        add.set_tensor(0, value)


@pytest.mark.parametrize("index", [-1, 3, 999])
def test_an_index_out_of_range_is_refused(add, index):
    for call in (add.get_tensor, lambda it: add.set_tensor(it, np.zeros((1, 4), np.float32))):
        with pytest.raises(ValueError, match=f"Invalid tensor index {index}"):
            call(index)
    with pytest.raises(RuntimeError):
        add.resize_tensor_input(index, [1, 4])
    with pytest.raises(TypeError):
        add.get_tensor(1.5)
    with pytest.raises(TypeError):
        add.get_tensor("a")


def test_constants_can_be_read_and_not_set(digits):
    weights = digits.get_tensor(15)
    assert weights.shape == (16, 3, 3, 1) and weights.dtype == np.int8
    with pytest.raises(ValueError):
        digits.set_tensor(15, weights)


def test_an_intermediate_tensor_is_kept_only_when_asked_for(digits, digits_path, digit):
    digits.invoke()
    with pytest.raises(ValueError, match="Tensor data is null"):
        digits.get_tensor(20)
    keeping = nnhal.Interpreter(str(digits_path), experimental_preserve_all_tensors=True)
    keeping.allocate_tensors()
    image = keeping.get_input_details()[0]
    keeping.set_tensor(image["index"], quantized(digit, image))
    keeping.invoke()
    for index in range(16, 28):
        value = keeping.get_tensor(index)
        details = keeping.get_tensor_details()[index]
        assert value.dtype == details["dtype"] and list(value.shape) == list(details["shape"])
    assert keeping.get_tensor(27).argmax() == 7


def test_views_see_and_change_what_is_there(add):
    a, y = add.tensor(0), add.tensor(2)
    a()[...] = 3.0
    add.tensor(1)().fill(4.0)
    add.invoke()
    assert (y() == 7.0).all() and (add.get_tensor(2) == 7.0).all()
    a()[0, 0] = -4.0
    add.invoke()
    assert y()[0, 0] == 0.0
    assert (add.get_tensor(0)[0] == [-4, 3, 3, 3]).all()
    add.set_tensor(0, np.full((1, 4), 10, np.float32))
    assert (a() == 10.0).all()
    add.invoke()
    assert (y() == 14.0).all()


@pytest.mark.parametrize("held", [lambda view: view, lambda view: view[0], lambda view: view.reshape(4)])
def test_a_view_that_is_held_forbids_running(add, held):
    view = held(add.tensor(0)())
    for call in (add.invoke, add.allocate_tensors, lambda: add.resize_tensor_input(0, [2, 4])):
        with pytest.raises(RuntimeError, match="at least 1 reference"):
            call()
    del view
    add.invoke()


def test_inputs_can_be_resized(open_bytes):
    interpreter = nnhal.Interpreter(model_content=open_bytes)
    for index in (0, 1):
        interpreter.resize_tensor_input(index, [3, 4], strict=True)
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    assert list(interpreter.get_output_details()[0]["shape"]) == [3, 4]
    value = np.arange(12, dtype=np.float32).reshape(3, 4)
    for index in (0, 1):
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    assert (interpreter.get_tensor(2) == 2 * value).all()


def test_a_batch_of_no_rows_gives_no_rows(open_bytes, add_bytes):
    interpreter = nnhal.Interpreter(model_content=open_bytes)
    for rows in (0, 2, 0):
        for index in (0, 1):
            interpreter.resize_tensor_input(index, [rows, 4], strict=True)
        interpreter.allocate_tensors()
        assert list(interpreter.get_output_details()[0]["shape"]) == [rows, 4]
        for index in (0, 1):
            interpreter.set_tensor(index, np.ones((rows, 4), np.float32))
            assert interpreter.get_tensor(index).shape == (rows, 4)
        interpreter.invoke()
        found = interpreter.get_tensor(2)
        assert found.shape == (rows, 4) and (found == 2).all()
        assert interpreter.tensor(2)().shape == (rows, 4)
    runner = interpreter.get_signature_runner()
    empty = np.zeros((0, 4), np.float32)
    assert runner(x=empty, y=empty)["sum"].shape == (0, 4)
    # A length that the file fixes is none of those that may be 0.
    fixed = nnhal.Interpreter(model_content=add_bytes)
    for index in (0, 1):
        fixed.resize_tensor_input(index, [0, 4])
    with pytest.raises(RuntimeError, match=r"the shape is \[0, 4\], expected \[1, 4\]"):
        fixed.allocate_tensors()


def test_kernels_of_others_are_refused_by_the_name_that_litert_has_for_them(add_bytes):
    interpreter = nnhal.InterpreterWithCustomOps(model_content=add_bytes)
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="InterpreterWithCustomOps: nnhal takes no kernels.*TFLite_Mine"):
        nnhal.InterpreterWithCustomOps(["TFLite_MineRegisterer"], model_content=add_bytes)


def test_strictly_only_open_lengths_are_resized(open_bytes, add_bytes):
    with pytest.raises(RuntimeError, match="ResizeInputTensorStrict"):
        nnhal.Interpreter(model_content=add_bytes).resize_tensor_input(0, [2, 4], strict=True)
    interpreter = nnhal.Interpreter(model_content=open_bytes)
    with pytest.raises(RuntimeError, match="ResizeInputTensorStrict"):
        interpreter.resize_tensor_input(0, [1, 5], strict=True)
    with pytest.raises(RuntimeError, match="dimensions"):
        interpreter.resize_tensor_input(0, [4], strict=True)


def test_without_strictness_any_length_may_change_if_the_model_allows_it(add_bytes, digits):
    interpreter = nnhal.Interpreter(model_content=add_bytes)
    for index in (0, 1):
        interpreter.resize_tensor_input(index, [2, 3, 5])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(2).shape == (2, 3, 5)
    digits.resize_tensor_input(0, [1, 7])
    with pytest.raises(RuntimeError):
        digits.allocate_tensors()


@pytest.mark.parametrize("size", [[[1, 4]], "abc", [-1, 4]])
def test_what_is_no_shape_is_refused(add, size):
    with pytest.raises((ValueError, RuntimeError)):
        add.resize_tensor_input(0, size)


def test_a_signature_runs_by_names_and_takes_shapes(add_bytes):
    interpreter = nnhal.Interpreter(model_content=add_bytes)
    assert interpreter.get_signature_list() == {"add": {"inputs": ["x", "y"], "outputs": ["sum"]}}
    run = interpreter.get_signature_runner()
    ones = np.ones((1, 4), np.float32)
    assert (run(x=ones, y=2 * ones)["sum"] == 3.0).all()
    more = np.ones((5, 4), np.float32)
    assert run(x=more, y=more)["sum"].shape == (5, 4)
    assert list(run.get_input_details()) == ["x", "y"]
    with pytest.raises(ValueError, match="expected 2 vs provided 1"):
        run(x=ones)
    with pytest.raises(ValueError, match="Invalid Input name"):
        run(x=ones, z=ones)
    with pytest.raises(ValueError, match="Invalid signature_key"):
        interpreter.get_signature_runner("nope")


def test_arguments_that_make_no_sense_are_refused(digits_path, add_bytes):
    for arguments, kind in [
        ({}, ValueError),
        ({"model_path": str(digits_path), "model_content": add_bytes}, ValueError),
        ({"model_path": "/nowhere/model.tflite"}, ValueError),
        ({"model_content": b"no model"}, ValueError),
        ({"model_content": add_bytes[:100]}, ValueError),
        ({"model_content": bytearray(add_bytes)}, TypeError),
        ({"model_content": add_bytes, "num_threads": 0}, ValueError),
        ({"model_content": add_bytes, "num_threads": "2"}, ValueError),
        ({"model_content": add_bytes, "experimental_op_resolver_type": 7}, ValueError),
        ({"model_content": add_bytes, "experimental_delegates": [object()]}, ValueError),
    ]:
        with pytest.raises(kind):
            nnhal.Interpreter(**arguments)
    with pytest.raises(ValueError, match="Failed to load delegate"):
        nnhal.load_delegate("libedgetpu.so.1")


def test_the_reference_kernels_are_the_reference_device(digits_path, digit, digits):
    reference = nnhal.Interpreter(
        str(digits_path), experimental_op_resolver_type=nnhal.OpResolverType.BUILTIN_REF
    )
    reference.allocate_tensors()
    image = digits.get_input_details()[0]
    for interpreter in (digits, reference):
        interpreter.set_tensor(0, quantized(digit, image))
        interpreter.invoke()
    assert abs(digits.get_tensor(27).astype(int) - reference.get_tensor(27)).max() <= 1


def test_operators_are_listed(digits):
    operators = digits._get_ops_details()
    assert [it["op_name"] for it in operators][:2] == ["CONV_2D", "CONV_2D"]
    assert list(operators[0]["inputs"]) == [0, 15, 14] and list(operators[0]["outputs"]) == [16]
    assert operators[0]["operand_types"] == [np.int8, np.int8, np.int32]


def test_an_interpreter_pickles(digits, digit):
    again = pickle.loads(pickle.dumps(digits))
    image = digits.get_input_details()[0]
    again.set_tensor(image["index"], quantized(digit, image))
    again.invoke()
    assert again.get_tensor(27).argmax() == 7


def test_other_threads_run_while_it_computes(digits_path):
    interpreter = nnhal.Interpreter(
        str(digits_path), experimental_op_resolver_type=nnhal.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(3):
            before = counted[0]
            for _ in range(20):
                interpreter.invoke()
            assert counted[0] > before
    finally:
        stop.set()
        thread.join()


def test_the_smallest_model_runs():
    interpreter = nnhal.Interpreter(model_content=flatfile.relu([2]), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([-1, 2], np.float32))
    interpreter.invoke()
    assert list(interpreter.get_tensor(1)) == [0, 2]


def test_a_file_that_is_cut_short_anywhere_is_an_error(add_bytes):
    for length in range(0, len(add_bytes) - 1, 7):
        try:
            interpreter = nnhal.Interpreter(model_content=add_bytes[:length] or None)
            interpreter.allocate_tensors()
            interpreter.invoke()
        except (ValueError, RuntimeError):
            pass


def test_variables_go_on_until_they_are_reset():
    interpreter = nnhal.Interpreter(model_content=flatfile.running_sum())
    interpreter.allocate_tensors()

    def step():
        interpreter.set_tensor(0, np.ones((1, 1), np.float32))
        interpreter.invoke()
        return interpreter.get_tensor(5).item()

    assert [step() for _ in range(3)] == [1.0, 2.0, 3.0]
    interpreter.reset_all_variables()
    assert step() == 1.0


def test_signatures_have_resource_variables_in_common():
    path = pathlib.Path(__file__).parents[2] / "nnhal/tests/data/variables_of_signatures.tflite"
    interpreter = nnhal.Interpreter(str(path))
    add, get = (interpreter.get_signature_runner(name) for name in ("add", "get"))
    zeros, ones = (np.full((2, 3), value, np.float32) for value in (0, 1))
    first = get(y=zeros)["sum"]
    assert np.any(first != 0)
    total = add(x=ones)["total"]
    np.testing.assert_array_equal(total, first + 1)
    np.testing.assert_array_equal(get(y=zeros)["sum"], total)
    # As LiteRT: that is for variable tensors.
    interpreter.reset_all_variables()
    np.testing.assert_array_equal(get(y=ones)["sum"], total + 1)
    # Another interpreter has others.
    other = nnhal.Interpreter(str(path)).get_signature_runner("get")
    np.testing.assert_array_equal(other(y=zeros)["sum"], first)
