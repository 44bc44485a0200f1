"""`nnhal.Interpreter` does what LiteRT's does."""

import pickle
import threading

import numpy as np
import pytest

import flatfile
import nnhal
from conftest import VARIABLES


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


def test_differences_of_a_model_that_verifies_itself_are_kept():
    interpreter = nnhal.Interpreter(model_content=flatfile.verified())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([0.25, -3], np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor_details()[3]["dtype"] is np.float32
    np.testing.assert_array_equal(interpreter.get_tensor(3), np.array([0.75, 2], np.float32))


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


def test_an_input_without_elements_beside_an_output_that_has_some():
    tensors = [flatfile.tensor("x", [2]), flatfile.tensor("like", [0]), flatfile.tensor("y", [2])]
    content = flatfile.model([flatfile.RELU], tensors, [0, 1], [2], [(0, [0], [2], None, None)])
    interpreter = nnhal.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for value in ([1, -1], [-2, 2]):
        interpreter.set_tensor(0, np.float32(value))
        interpreter.set_tensor(1, np.zeros(0, np.float32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(2), np.maximum(value, 0))


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


@pytest.mark.parametrize(
    "outputs, inputs",
    [
        ([("y", 2), ("r", 3)], (("x", 0), ("w", 1))),
        ([("y", 2)], (("x", 0), ("w", 1))),
        ([("same", 0), ("y", 2), ("r", 3), ("again", 2)], (("x", 0), ("w", 1), ("v", 1))),
        ([("y", 2), ("r", 3)], (("w", 1),)),
    ],
)
@pytest.mark.parametrize("signature", [None, [-1, 4]])
def test_a_signature_gives_what_it_names_of_the_graph_and_takes_some_of_its_inputs(outputs, inputs, signature):
    content = flatfile.sum_and_relu(outputs, inputs, signature)
    interpreter = nnhal.Interpreter(model_content=content)
    assert [it["name"] for it in interpreter.get_output_details()] == ["r"]
    run = interpreter.get_signature_runner("serve")
    assert set(run.get_output_details()) == {name for name, _ in outputs}
    for factor, rows in ((1, 1), (-1, 1), (1, 3)):
        a, b = (np.full((rows, 4), factor * value, np.float32) for value in (-3, 2))
        if ("x", 0) not in inputs:
            # What the signature does not name is what it was set to, and 0 at first.
            interpreter.resize_tensor_input(0, [rows, 4])
            interpreter.resize_tensor_input(1, [rows, 4])
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, a)
        given = {"x": a, "w": b, "v": b}
        found = run(**{name: given[name] for name, _ in inputs})
        right = {0: a, 2: a + b, 3: np.maximum(a + b, 0)}
        assert list(found) == sorted(name for name, _ in outputs)
        for name, index in outputs:
            np.testing.assert_array_equal(found[name], right[index])
    # It is an output of models that are called, too, behind those of the graph.
    called = nnhal.load(content)
    a, b = (np.full((1, 4), value, np.float32) for value in (1, -4))
    assert called.outputs[0].tensor_name == "r"
    results = {tensor.tensor_name: array for tensor, array in zip(called.outputs, called(a, b))}
    np.testing.assert_array_equal(results["y"], a + b)
    np.testing.assert_array_equal(results["r"], np.zeros((1, 4)))
    positions = called.signatures["serve"].outputs
    assert {name: called.outputs[at].index for name, at in positions.items()} == dict(outputs)


def test_a_scalar_is_one_of_numpy_s():
    interpreter = nnhal.Interpreter(model_content=flatfile.add([]))
    interpreter.allocate_tensors()
    for index in (0, 1):
        interpreter.set_tensor(index, np.float32(1.5))
    interpreter.invoke()
    found = interpreter.get_tensor(2)
    assert type(found) is np.float32 and found == 3
    assert type(interpreter.get_tensor(0)) is np.float32
    assert type(interpreter.tensor(2)()) is np.float32
    result = interpreter.get_signature_runner()(x=np.float32(1), y=np.array(1, np.float32))
    assert type(result["sum"]) is np.float32 and result["sum"] == 2


def test_scales_by_block_and_weights_of_4_bits_can_be_read():
    interpreter = nnhal.Interpreter(model_content=flatfile.by_block())
    interpreter.allocate_tensors()
    details = interpreter.get_tensor_details()[1]
    assert details["dtype"] is np.int8 and details["quantization"] == (0.0, 0)
    parameters = details["quantization_parameters"]
    assert parameters["scales"].dtype == np.float16 and parameters["block_size"] == 32
    np.testing.assert_array_equal(parameters["scales"], np.arange(1, 9) / 8)
    assert len(parameters["zero_points"]) == 0
    weights = interpreter.get_tensor(1)
    np.testing.assert_array_equal(weights.reshape(-1), (np.arange(256) % 7).astype(np.int8))
    np.testing.assert_array_equal(interpreter.tensor(1)(), weights)
    interpreter.set_tensor(0, np.ones((1, 64), np.float32))
    interpreter.invoke()
    by_block = weights.reshape(4, 2, 32).sum(axis=2) * parameters["scales"].reshape(4, 2)
    np.testing.assert_allclose(interpreter.get_tensor(2)[0], by_block.sum(axis=1), rtol=1e-2)


def test_details_are_at_the_index_of_their_tensor():
    interpreter = nnhal.Interpreter(str(VARIABLES))
    kinds = set()
    for subgraph in range(interpreter.num_subgraphs()):
        details = interpreter.get_tensor_details(subgraph)
        assert [it["index"] for it in details] == list(range(len(details)))
        kinds.update(it["dtype"] for it in details)
    assert np.object_ in kinds, "handles of variables"
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(0, subgraph_index=1)
    run = interpreter.get_signature_runner("add")
    total = run(x=np.ones((2, 3), np.float32))["total"]
    index = run.get_output_details()["total"]["index"]
    found = interpreter.get_tensor(index, subgraph_index=run._subgraph_index)
    np.testing.assert_array_equal(found, total)


def test_tensors_that_follow_from_inputs_take_a_shape_until_they_are_allocated(add_bytes):
    # Programs resize outputs as well, which changes nothing.
    interpreter = nnhal.Interpreter(model_content=add_bytes)
    for index in (0, 1, 2):
        interpreter.resize_tensor_input(index, [3, 4])
    assert list(interpreter.get_output_details()[0]["shape"]) == [3, 4]
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((3, 4), np.float32))
    interpreter.invoke()
    interpreter.resize_tensor_input(2, [9])
    assert list(interpreter.get_output_details()[0]["shape"]) == [9]
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(2)
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    assert list(interpreter.get_output_details()[0]["shape"]) == [3, 4]
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.ones((3, 4)))
    weights = nnhal.Interpreter(model_content=flatfile.dynamic_range_layer())
    weights.resize_tensor_input(1, [2, 3])
    with pytest.raises(RuntimeError, match="fixed-size tensor"):
        weights.resize_tensor_input(1, [4, 3])


def test_between_resizing_and_allocating_the_last_results_stay(open_bytes):
    interpreter = nnhal.Interpreter(model_content=open_bytes)
    interpreter.allocate_tensors()
    for index in (0, 1):
        interpreter.set_tensor(index, np.ones((1, 4), np.float32))
    interpreter.invoke()
    interpreter.resize_tensor_input(0, [2, 4])
    assert list(interpreter.get_output_details()[0]["shape"]) == [1, 4]
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.full((1, 4), 2))
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.ones((1, 4)))
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(0)
    for rows in (1, 2):
        with pytest.raises(ValueError, match="Tensor is unallocated"):
            interpreter.set_tensor(0, np.ones((rows, 4), np.float32))
    # Lengths of 1 fit all others, so that it can be allocated; what was set and kept its shape stays.
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.ones((2, 4)))
    interpreter.resize_tensor_input(0, [5])
    with pytest.raises(RuntimeError):
        interpreter.allocate_tensors()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.ones((2, 4)))
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()


def test_a_variable_can_be_read_and_set():
    interpreter = nnhal.Interpreter(model_content=flatfile.running_sum())
    interpreter.allocate_tensors()

    def step():
        interpreter.invoke()
        return interpreter.get_tensor(5).item()

    interpreter.set_tensor(0, np.ones((1, 1), np.float32))
    assert step() == 1 and interpreter.get_tensor(4).item() == 1
    interpreter.set_tensor(4, np.full((1, 1), 10, np.float32))
    assert step() == 11
    interpreter.tensor(4)()[...] = 20
    assert step() == 21 and interpreter.tensor(4)().item() == 21
    interpreter.reset_all_variables()
    assert interpreter.get_tensor(4).item() == 0 and interpreter.tensor(4)().item() == 0
    assert step() == 1


def test_a_signature_runs_though_views_are_held(add):
    a, y = add.tensor(0)(), add.tensor(2)()
    run = add.get_signature_runner()
    ones = np.ones((1, 4), np.float32)
    assert (run(x=2 * ones, y=ones)["sum"] == 3).all()
    assert (a == 2).all() and (y == 3).all()
    with pytest.raises(RuntimeError, match="at least 1 reference"):
        add.invoke()


def test_members_that_programs_use_though_they_are_private(add):
    wrapper = add._interpreter
    wrapper.SetNumThreads(2)
    wrapper.ResizeInputTensor(0, np.array([2, 4], np.int32), False)
    wrapper.ResizeInputTensor(1, np.array([2, 4], np.int32), False, 0)
    wrapper.AllocateTensors()
    for index in wrapper.InputIndices():
        wrapper.SetTensor(index, np.ones((2, 4), np.float32))
    wrapper.Invoke()
    assert (wrapper.GetTensor(2) == 2).all()
    assert wrapper.NodeName(0) == "ADD" and wrapper.GetSubgraphIndexFromSignature("add") == 0
    run = add.get_signature_runner()
    assert run._subgraph_index == 0 and run._signature_def == {"inputs": {"x": 0, "y": 1}, "outputs": {"sum": 2}}
    assert add._signature_defs == add.get_signature_list() and add._delegates == []
    for call, name in [
        (add._native_handle, "_native_handle"),
        (wrapper.interpreter, "_native_handle"),
        (lambda: wrapper.ModifyGraphWithDelegate(0), "ModifyGraphWithDelegate"),
    ]:
        with pytest.raises(RuntimeError, match=name):
            call()


@pytest.mark.parametrize(
    "content, what",
    [
        (b"PK\x03\x04" + bytes(60), "ZIP archive"),
        (b"\x08\x07\x12\x07pytorch" + bytes(60), "ONNX"),
        (b"<!DOCTYPE html><html><title>404 Not Found</title></html>", "page of HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "git lfs pull"),
        (b"Entry not found", "text, not a model"),
        (b"abc", "only 3 bytes|text"),
    ],
)
def test_what_is_no_model_is_named(content, what, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    for arguments in ({"model_content": content}, {"model_path": path}):
        with pytest.raises(ValueError, match=f"not a valid Flatbuffer buffer: .*({what})"):
            nnhal.Interpreter(**arguments)


def test_a_file_that_is_empty_or_was_cut_off_is_said_to_be(tmp_path, digits_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="it is empty"):
        nnhal.Interpreter(path)
    whole = digits_path.read_bytes()
    for length in (len(whole) // 10, len(whole) // 2, len(whole) - 100):
        with pytest.raises(ValueError, match="not a valid Flatbuffer buffer: .*was cut off"):
            nnhal.Interpreter(model_content=whole[:length])


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
    interpreter = nnhal.Interpreter(str(VARIABLES))
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
    other = nnhal.Interpreter(str(VARIABLES)).get_signature_runner("get")
    np.testing.assert_array_equal(other(y=zeros)["sum"], first)
