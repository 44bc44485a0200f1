"""Details and results beside LiteRT's own, where `ai-edge-litert` is installed.

`NNHAL_TEST_MODELS` names more .tflite files, or folders of them, separated by colons.
"""

import os
import pathlib
import warnings

import numpy as np
import pytest

import flatfile
import nnhal
from conftest import DIGITS, VARIABLES

litert = pytest.importorskip("ai_edge_litert.interpreter")


def models():
    yield "int8", DIGITS.read_bytes()
    yield "float32", DIGITS.with_name("digits_float32.tflite").read_bytes()
    yield "add", flatfile.add([1, 4])
    yield "open", flatfile.add([1, 4], signature=[-1, 4])
    yield "relu", flatfile.relu([3])
    yield "running sum", flatfile.running_sum()
    yield "int32", flatfile.add([2, 2], flatfile.INT32)
    yield "scalars", flatfile.add([])
    yield "sum and relu", flatfile.sum_and_relu([("r", 3)])
    yield "by block", flatfile.by_block()
    yield "variables", VARIABLES.read_bytes()
    for name in filter(None, os.environ.get("NNHAL_TEST_MODELS", "").split(":")):
        path = pathlib.Path(name)
        for file in sorted(path.rglob("*.tflite")) if path.is_dir() else [path]:
            yield file.name, file.read_bytes()


MODELS = [pytest.param(content, id=name) for name, content in models()]


def both(content):
    made = []
    for module in (litert, nnhal):
        interpreter = module.Interpreter(model_content=content, num_threads=1)
        interpreter.allocate_tensors()
        made.append(interpreter)
    return made


def same(expected, found, where=""):
    if isinstance(expected, dict):
        assert list(expected) == list(found), where
        for key in expected:
            same(expected[key], found[key], f"{where}.{key}")
    elif isinstance(expected, (list, tuple)):
        assert type(expected) is type(found) and len(expected) == len(found), where
        for position, pair in enumerate(zip(expected, found)):
            same(*pair, f"{where}[{position}]")
    elif isinstance(expected, np.ndarray):
        assert expected.dtype == found.dtype and np.array_equal(expected, found), (where, expected, found)
    else:
        assert type(expected) is type(found) and expected == found, (where, expected, found)


@pytest.mark.parametrize("content", MODELS)
def test_details_are_litert_s(content):
    expected, found = both(content)
    same(expected.get_input_details(), found.get_input_details(), "inputs")
    same(expected.get_output_details(), found.get_output_details(), "outputs")
    same(expected.get_signature_list(), found.get_signature_list(), "signatures")
    assert expected.num_subgraphs() == found.num_subgraphs()
    # Once it has allocated, LiteRT appends tensors of its own, and writes a scale for each row into the
    # weights of FULLY_CONNECTED. Before, both say what the file does.
    expected, found = (module.Interpreter(model_content=content) for module in (litert, nnhal))
    for subgraph in range(expected.num_subgraphs()):
        same(expected.get_tensor_details(subgraph), found.get_tensor_details(subgraph), f"tensors of {subgraph}")
    same(expected._get_ops_details(), found._get_ops_details(), "operators")


def inputs(details, seed):
    random = np.random.default_rng(seed)
    for detail in details:
        shape, dtype = detail["shape"], np.dtype(detail["dtype"])
        if dtype.kind == "f":
            yield random.uniform(-1, 1, shape).astype(dtype)
        elif dtype.itemsize == 1 and dtype.kind != "b":
            limits = np.iinfo(dtype)
            yield random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        else:
            yield random.integers(0, 2, shape).astype(dtype)


@pytest.mark.parametrize("content", MODELS)
def test_results_are_litert_s(content):
    expected, found = both(content)
    for seed in range(3):
        for interpreter in (expected, found):
            details = interpreter.get_input_details()
            for detail, value in zip(details, inputs(details, seed)):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
        for one, other in zip(expected.get_output_details(), found.get_output_details()):
            right, ours = expected.get_tensor(one["index"]), found.get_tensor(other["index"])
            assert type(right) is type(ours)
            assert right.dtype == ours.dtype and right.shape == ours.shape
            if right.dtype.kind == "f":
                scale = max(np.abs(right).max(initial=0), 1e-6)
                worst = np.abs(right - ours).max(initial=0) / scale
                assert worst < 1e-4, f"{one['name']}: {worst} of the largest value"
            elif right.dtype.itemsize == 1 and right.dtype.kind != "b":
                assert np.abs(right.astype(int) - ours).max(initial=0) <= 1
            else:
                assert np.array_equal(right, ours)
    same(expected.get_output_details(), found.get_output_details(), "after invoke")


@pytest.mark.parametrize("content", MODELS[:5])
def test_resized_details_are_litert_s(content):
    pair = [module.Interpreter(model_content=content) for module in (litert, nnhal)]
    for interpreter in pair:
        for detail in interpreter.get_input_details():
            interpreter.resize_tensor_input(detail["index"], [3, *detail["shape"][1:]])
    same(pair[0].get_input_details(), pair[1].get_input_details(), "before allocation")
    for interpreter in pair:
        try:
            interpreter.allocate_tensors()
        except RuntimeError:
            interpreter.refused = True
    assert [hasattr(it, "refused") for it in pair] in ([True, True], [False, False])
    if not hasattr(pair[0], "refused"):
        same(pair[0].get_output_details(), pair[1].get_output_details(), "after allocation")


def test_details_of_every_type_are_litert_s():
    expected, found = (module.Interpreter(model_content=flatfile.of_all_types()) for module in (litert, nnhal))
    same(expected.get_tensor_details(), found.get_tensor_details())
    last = len(found.get_tensor_details())
    for interpreter in (expected, found):
        # BFLOAT16, which NumPy does not have.
        with pytest.raises(ValueError):
            interpreter._get_tensor_details(last, 0)


def test_what_was_resized_has_its_shape_until_tensors_are_allocated():
    content = flatfile.sum_and_relu([("r", 3)])
    without = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    pair = [
        module.Interpreter(model_content=content, experimental_op_resolver_type=without) for module in (litert, nnhal)
    ]

    def step(call, where):
        for interpreter in pair:
            call(interpreter)
        same(pair[0].get_tensor_details(), pair[1].get_tensor_details(), where)

    allocate = lambda it: it.allocate_tensors()
    step(allocate, "allocated")
    step(lambda it: [it.resize_tensor_input(index, [3, 4]) for index in (0, 1)], "inputs")
    step(allocate, "allocated for other inputs")
    step(lambda it: it.resize_tensor_input(3, [7, 2]), "an output")
    step(lambda it: it.resize_tensor_input(2, [5]), "an intermediate tensor")
    for interpreter in pair:
        with pytest.raises(RuntimeError, match="not ready"):
            interpreter.invoke()
    step(allocate, "allocated again")
    step(lambda it: it.resize_tensor_input(0, [2, 4]), "one input")
    for interpreter in pair:
        with pytest.raises(RuntimeError):
            interpreter.allocate_tensors()
    step(lambda it: it.resize_tensor_input(1, [2, 4]), "both inputs")
    step(allocate, "allocated at last")


@pytest.mark.filterwarnings("ignore:Warning. Enabling")
@pytest.mark.parametrize("content", MODELS)
def test_all_tensors_that_are_preserved_are_litert_s(content):
    without = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    pair = []
    for module in (litert, nnhal):
        made = module.Interpreter(
            model_content=content, experimental_op_resolver_type=without, experimental_preserve_all_tensors=True
        )
        made.allocate_tensors()
        for detail, value in zip(made.get_input_details(), inputs(made.get_input_details(), 7)):
            made.set_tensor(detail["index"], value)
        made.invoke()
        pair.append(made)
    for detail in pair[1].get_tensor_details():
        right, ours = (it.get_tensor(detail["index"]) for it in pair)
        assert type(right) is type(ours) and right.dtype == ours.dtype and right.shape == ours.shape, detail["name"]
        if right.dtype.kind == "f":
            np.testing.assert_allclose(ours, right, rtol=1e-3, atol=1e-5, err_msg=detail["name"])
        elif right.dtype != np.object_:
            # Quantized values differ by a step behind one layer, by two behind the next.
            difference = np.abs(right.astype(np.int64) - ours)
            assert difference.max(initial=0) <= (2 if right.dtype.itemsize == 1 else 0), detail["name"]


def test_what_the_wrapper_says_is_litert_s():
    content = VARIABLES.read_bytes()
    expected, found = (module.Interpreter(model_content=content)._interpreter for module in (litert, nnhal))
    missing = {name for name in dir(expected) if not name.startswith("_")} - set(dir(found))
    assert not missing
    for call in [
        lambda it: it.InputIndices(),
        lambda it: it.OutputIndices(),
        lambda it: [it.NumTensors(subgraph) for subgraph in range(it.NumSubgraphs())],
        lambda it: [(it.NodeName(at), it.NodeInputs(at), it.NodeOutputs(at)) for at in range(it.NumNodes())],
        lambda it: it.GetSignatureDefs(),
        lambda it: [it.GetSubgraphIndexFromSignature(key) for key in it.GetSignatureDefs()],
        lambda it: [it.TensorName(at, 1) for at in range(it.NumTensors(1))],
        lambda it: (it.TensorType(0, 0), it.TensorSize(0, 0), it.TensorSizeSignature(0, 0)),
        lambda it: (it.TensorQuantization(0, 0), it.TensorQuantizationParameters(0, 0)),
        lambda it: it.TensorSparsityParameters(0, 0),
    ]:
        same(call(expected), call(found))


CALLS = {
    "bad index": lambda it: it.get_tensor(99),
    "negative index": lambda it: it.get_tensor(-1),
    "float index": lambda it: it.get_tensor(0.5),
    "bad details": lambda it: it._get_tensor_details(99, 0),
    "bad subgraph": lambda it: it.get_tensor_details(7),
    "wrong type": lambda it: it.set_tensor(0, np.zeros((1, 4))),
    "wrong length": lambda it: it.set_tensor(0, np.zeros((1, 5), np.float32)),
    "wrong rank": lambda it: it.set_tensor(0, np.zeros(4, np.float32)),
    "a list": lambda it: it.set_tensor(0, [[1, 2, 3, 4]]),
    "resize an unknown": lambda it: it.resize_tensor_input(99, [1]),
    "resize strictly": lambda it: it.resize_tensor_input(0, [2, 4], strict=True),
    "resize by two axes": lambda it: it.resize_tensor_input(0, [[1, 4]]),
    "resize negatively": lambda it: it.resize_tensor_input(0, [-2, 4]),
    "too few values": lambda it: it.get_signature_runner("add")(x=np.zeros((1, 4), np.float32)),
    "no such signature": lambda it: it.get_signature_runner("nope"),
    "no such subgraph": lambda it: it.get_tensor(0, subgraph_index=3),
    "no such operator": lambda it: it._get_op_details(9),
    "operator before the first": lambda it: it._get_op_details(-1),
}


@pytest.mark.parametrize("is_allocated", [True, False])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_exceptions_are_litert_s(call, is_allocated):
    kinds = []
    for module in (litert, nnhal):
        interpreter = module.Interpreter(model_content=flatfile.add([1, 4]))
        if is_allocated:
            interpreter.allocate_tensors()
        with pytest.raises(Exception) as error:
            call(interpreter)
        kinds.append(error.type)
    assert issubclass(kinds[1], kinds[0]), kinds


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"model_path": "/nowhere"},
        {"model_content": b"abc"},
        {"model_content": b""},
        {"model_content": "abc"},
        {"model_path": "x", "model_content": b"x"},
        {"model_content": flatfile.relu([1]), "num_threads": 0},
        {"model_content": flatfile.relu([1]), "num_threads": 1.5},
        {"model_content": flatfile.relu([1]), "experimental_op_resolver_type": 9},
        {"model_content": flatfile.relu([1]), "nope": 9},
    ],
    ids=str,
)
def test_constructors_refuse_as_litert_s(arguments):
    kinds = []
    for module in (litert, nnhal):
        with warnings.catch_warnings(), pytest.raises(Exception) as error:
            warnings.simplefilter("ignore")
            module.Interpreter(**arguments)
        kinds.append(error.type)
    assert issubclass(kinds[1], kinds[0]), kinds
