"""LiteRT's interpreter, in nnhal: ``ai_edge_litert.interpreter`` with the same names.

Arguments, dictionaries, dtypes and exceptions are LiteRT's. Where nnhal does something else, its docstring
says so.
"""

from __future__ import annotations

import enum
import os
import sys
from typing import Any

import numpy as np

from . import _nnhal
from ._errors import Error

_HELD = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""
_UNALLOCATED = "Tensor data is null. Run allocate_tensors() first"
_MOST_PREPARED = 8


class Delegate:
    """nnhal has no delegates: making one raises an error."""

    def __init__(self, library, options=None):
        raise Error(
            f"nnhal does not load delegates ({library}): it runs models on devices of its own,"
            " see nnhal.devices()"
        )


def load_delegate(library, options=None):
    """As LiteRT's; it raises a ``ValueError``, which programs expect where a delegate is not there."""
    try:
        return Delegate(library, options)
    except ValueError as error:
        raise Error(f"Failed to load delegate from {library}\n{error}") from None


@enum.unique
class OpResolverType(enum.Enum):
    """Which kernels are used: with ``BUILTIN_REF`` the device ``nnhal-reference``, otherwise ``nnhal-cpu``."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class _Tensors:
    """What the file says of each tensor, read when it is asked for."""

    def __init__(self, file: Any):
        self._file = file
        self._known: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return self._file.tensor_count

    def __getitem__(self, index: int) -> dict[str, Any]:
        info = self._known.get(index)
        if info is None:
            info = self._known[index] = self._file.tensor(index)
        return info


class Interpreter:
    """Runs a ``.tflite`` model step by step, as LiteRT's ``Interpreter`` does.

    ``num_threads`` is the most that share a run; without it as many as the process may use processors.
    Delegates are refused. With ``experimental_preserve_all_tensors`` the model runs on ``nnhal-reference``, which
    keeps each operation's results. The other experimental arguments choose among ways of
    LiteRT's that nnhal does not have; they change nothing.
    """

    def __init__(
        self,
        model_path: str | os.PathLike | None = None,
        model_content: bytes | None = None,
        experimental_delegates: list | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
    ):
        # Enumerations of LiteRT itself are taken as well.
        resolver = getattr(experimental_op_resolver_type, "name", None)
        if resolver not in OpResolverType.__members__:
            raise ValueError(
                f"Unrecognized passed in op resolver type: {experimental_op_resolver_type}"
            )
        if num_threads is not None:
            if not isinstance(num_threads, int):
                raise ValueError("type of num_threads should be int")
            if num_threads < 1:
                raise ValueError("num_threads should >= 1")
        source: str | bytes
        if model_path and not model_content:
            source = os.fsdecode(model_path)
        elif model_content and not model_path:
            if not isinstance(model_content, bytes):
                kind = type(model_content).__name__
                raise TypeError(f"model_content should be bytes, not {kind}")
            source = model_content
        elif not model_content and not model_path:
            raise ValueError("`model_path` or `model_content` must be specified.")
        else:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        if experimental_delegates:
            raise Error(
                f"nnhal takes no delegates, {len(experimental_delegates)} are given: it runs models on"
                " devices of its own, see nnhal.devices()"
            )
        self._source = source
        self._options: dict[str, Any] = {}
        if num_threads is not None:
            self._options["threads"] = num_threads
        self._keeps_all = bool(experimental_preserve_all_tensors)
        if self._keeps_all or resolver == "BUILTIN_REF":
            self._options["device"] = "nnhal-reference"
        self.experimental_compress_quantization_zero_points = bool(
            experimental_compress_quantization_zero_points
        )
        # Resource variables, which signatures have in common, and which keep their values when shapes change.
        self._variables = _Variables()
        self._load()

    def _load(self) -> None:
        source = self._source
        load: Any = _nnhal.Model.load_bytes if isinstance(source, bytes) else _nnhal.Model.load_path
        try:
            self._file = load(source)
        except Error as error:
            # The kinds of sentences that programs look for, then ours.
            if isinstance(source, str) and not os.path.isfile(source):
                raise Error(f"Could not open '{source}'. {error}") from None
            if "not a TensorFlow Lite model" in str(error):
                raise Error(f"The model is not a valid Flatbuffer buffer: {error}") from None
            raise
        self._use()

    def _use(self) -> None:
        """Begins with the model of ``_file``."""
        # By name of a signature of another subgraph: what runs it.
        self._others: dict[str, Interpreter] = {}
        self._inputs: list[dict[str, Any]] = self._file.inputs()
        self._outputs: list[dict[str, Any]] = self._file.outputs()
        self._input_at = {info["index"]: at for at, info in reversed(list(enumerate(self._inputs)))}
        self._output_at = {info["index"]: at for at, info in reversed(list(enumerate(self._outputs)))}
        self._tensors = _Tensors(self._file)
        # What the inputs are to be, and what was prepared for which shapes.
        self._shapes: list[tuple[int, ...]] = [tuple(info["example_shape"]) for info in self._inputs]
        self._prepared: dict[tuple, tuple] = {}
        self._shapes_of_all: list[list[int] | None] = []
        self._runner: Any = None
        self._has_run = False
        self._views: dict[int, np.ndarray] = {}
        self._stale: set[int] = set()
        self._kept: dict[int, np.ndarray] = {}

    def __getstate__(self):
        state = {"source": self._source, "options": self._options, "keeps_all": self._keeps_all}
        state["compress"] = self.experimental_compress_quantization_zero_points
        state["shapes"] = self._shapes
        state["is_allocated"] = self._runner is not None
        return state

    def __setstate__(self, state):
        self._source, self._options = state["source"], state["options"]
        self._keeps_all = state["keeps_all"]
        self._variables = _Variables()
        self.experimental_compress_quantization_zero_points = state["compress"]
        self._load()
        self._shapes = state["shapes"]
        if state["is_allocated"]:
            self.allocate_tensors()

    # --- Preparing

    def allocate_tensors(self) -> None:
        """Prepares the model for the shapes that its inputs have. What was set before stays where shapes do."""
        self._ensure_safe()
        if self._runner is not None:
            return
        shapes = tuple(self._shapes)
        prepared = self._prepared.pop(shapes, None)
        if prepared is None:
            prepared = self._prepare(shapes)
            while len(self._prepared) >= _MOST_PREPARED:
                del self._prepared[next(iter(self._prepared))]
        self._prepared[shapes] = prepared
        self._runner, self._shapes_of_all = prepared
        self._runner.reset_variable_tensors()
        self._has_run = False
        self._views.clear()
        self._stale.clear()
        self._kept.clear()

    def _prepare(self, shapes: tuple) -> tuple:
        model = self._file
        is_open = any(None in info["shape"] for info in self._inputs)
        is_other = any(
            tuple(info["example_shape"]) != shape for info, shape in zip(self._inputs, shapes)
        )
        is_empty = any(0 in shape for shape in shapes)
        if is_open or is_other:
            # What has no elements is not run, so that any length does.
            lengths = [[length or 1 for length in shape] for shape in shapes]
            model = model.with_input_shapes(lengths, False)
        runner = model.session(**self._options).runner()
        shapes_of_all = model.prepared_shapes()
        if is_empty:
            for at, shape in enumerate(shapes):
                runner.resize_input(at, list(shape))
            runner.run()
            for index, at in self._input_at.items():
                shapes_of_all[index] = runner.input_shape(at)
            for index, at in self._output_at.items():
                shapes_of_all[index] = runner.output_shape(at)
        elif any(shapes_of_all[index] is None for index in self._output_at):
            # Only a run finds them out; programs make room for outputs before.
            try:
                runner.run()
                for index, at in self._output_at.items():
                    shapes_of_all[index] = runner.output_shape(at)
                runner.reset()
            except Error:
                # With values other than 0 it may be possible.
                pass
        self._variables.join(runner)
        return runner, shapes_of_all

    def resize_tensor_input(self, input_index, tensor_size, strict=False) -> None:
        """Gives an input another shape. ``allocate_tensors`` has to follow.

        Strictly, only lengths that are -1 in ``shape_signature`` may change.
        """
        self._ensure_safe()
        size = np.array(tensor_size, dtype=np.int32)
        if size.ndim != 1:
            raise ValueError(f"Shape should be 1D instead of {size.ndim}.")
        at = self._input_at.get(self._checked(input_index, RuntimeError))
        if at is None:
            raise RuntimeError(
                f"Attempting to resize a fixed-size tensor: tensor {input_index} is no input."
            )
        shape = tuple(int(length) for length in size)
        if any(length < 0 for length in shape):
            raise RuntimeError(f"Lengths cannot be negative: {list(shape)} for tensor {input_index}.")
        now = self._shapes[at]
        if strict:
            if len(shape) != len(now):
                raise RuntimeError(
                    f"Attempting to resize tensor {input_index} to {len(shape)} dimensions instead of"
                    f" {len(now)}."
                )
            declared = self._inputs[at]["shape_signature"] or now
            for axis, (wanted, length) in enumerate(zip(shape, now)):
                if wanted != length and declared[axis] is not None:
                    raise RuntimeError(
                        f"Attempting to resize dimension {axis} of tensor {input_index} with value"
                        f" {length} to {wanted}. ResizeInputTensorStrict only allows mutating unknown"
                        " dimensions identified by -1."
                    )
        if shape != now:
            self._shapes[at] = shape
            self._runner = None

    def reset_all_variables(self) -> None:
        """Sets variable tensors to 0. Resource variables keep their values, as LiteRT's do."""
        if self._runner is not None:
            self._runner.reset_variable_tensors()

    # --- Values

    def set_tensor(self, tensor_index, value) -> None:
        """Copies a value into an input; it has exactly the input's dtype and shape."""
        at = self._input_at.get(tensor_index)
        runner = self._runner
        if at is not None and runner is not None and not self._views and type(value) is np.ndarray:
            if runner.set_input_exactly(at, value):
                return
        self._set_checked(tensor_index, np.asarray(value))

    def _set_checked(self, tensor_index, value: np.ndarray) -> None:
        index = self._checked(tensor_index)
        if self._runner is None:
            raise Error(
                "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
            )
        info = self._tensors[index]
        shape = self._shape(index)
        if value.dtype != info["dtype"]:
            found = _type_name(value.dtype)
            if not value.dtype.isnative:
                found += ", in the other byte order,"
            raise ValueError(
                f"Cannot set tensor: Got value of type {found} but expected type"
                f" {_type_name(info['dtype'])} for input {index}, name: {info['name']} "
            )
        if value.ndim != len(shape):
            raise ValueError(
                f"Cannot set tensor: Dimension mismatch. Got {value.ndim} but expected {len(shape)}"
                f" for input {index}."
            )
        for axis, (found, expected) in enumerate(zip(value.shape, shape)):
            if found != expected:
                raise ValueError(
                    f"Cannot set tensor: Dimension mismatch. Got {found} but expected {expected}"
                    f" for dimension {axis} of input {index}."
                )
        at = self._input_at.get(index)
        if at is None and index not in self._output_at:
            raise Error(f"Cannot set tensor: tensor {index}, {info['name']}, is no input of the model.")
        if at is not None and index not in self._views:
            self._runner.set_input(at, value)
        else:
            self._view(index)[...] = value

    def get_tensor(self, tensor_index, subgraph_index=0) -> np.ndarray:
        """A copy of an input, an output or a constant; with ``experimental_preserve_all_tensors`` of any tensor."""
        at = self._output_at.get(tensor_index)
        if at is not None and self._has_run and not self._views and not subgraph_index:
            return self._runner.output(at)
        index = self._checked(tensor_index)
        if subgraph_index:
            raise Error(f"{_UNALLOCATED}: nnhal keeps no values of subgraph {subgraph_index}")
        return self._read(index)

    def _read(self, index: int) -> np.ndarray:
        if self._tensors[index]["is_constant"]:
            return self._file.constant(index)
        if self._runner is None:
            raise Error(_UNALLOCATED)
        if index in self._views and index not in self._stale:
            return self._views[index].copy()
        return self._value(index)

    def _value(self, index: int) -> np.ndarray:
        """What the runner has, as an array of its own."""
        at = self._input_at.get(index)
        if at is not None:
            return self._runner.input(at)
        at = self._output_at.get(index)
        if at is not None:
            if self._has_run:
                return self._runner.output(at)
            return np.zeros(self._shape(index), self._tensors[index]["dtype"])
        if index in self._kept:
            return self._kept[index].copy()
        name = self._tensors[index]["name"]
        raise Error(
            f"{_UNALLOCATED}: nnhal keeps no value of the intermediate tensor {index}, {name}"
            " (experimental_preserve_all_tensors does, after invoke())"
        )

    def tensor(self, tensor_index):
        """A function that gives a view of an input or output. Views must be gone before ``invoke()``.

        What is written into an input's view is copied once when the model is invoked.
        """

        def view() -> np.ndarray:
            index = self._checked(tensor_index)
            if self._runner is None:
                raise Error(_UNALLOCATED)
            return self._view(index)[...]

        return view

    def _view(self, index: int) -> np.ndarray:
        if index not in self._views or index in self._stale:
            is_variable_size = index in self._output_at or index in self._input_at
            value = self._value(index) if is_variable_size else self._read(index)
            self._views[index] = value
            self._stale.discard(index)
        return self._views[index]

    def _safe_to_run(self) -> bool:
        # The dictionary, the loop and getrefcount each refer to an array.
        return all(sys.getrefcount(array) <= _OWN_REFERENCES for array in self._views.values())

    def _ensure_safe(self) -> None:
        if self._views and not self._safe_to_run():
            raise RuntimeError(_HELD)

    # --- Running

    def invoke(self) -> None:
        """Runs the model. Other Python threads run meanwhile."""
        runner = self._runner
        if self._views:
            self._ensure_safe()
        if runner is None:
            raise Error("Invoke called on model that is not ready. Run allocate_tensors() first")
        for index, array in self._views.items():
            at = self._input_at.get(index)
            if at is not None:
                runner.set_input(at, array)
            else:
                self._stale.add(index)
        self._has_run = False
        if self._keeps_all:
            self._kept = runner.run_recorded()
        else:
            runner.run()
        self._has_run = True

    # --- What the file says

    def get_input_details(self) -> list[dict[str, Any]]:
        """A dictionary for each input."""
        return [self._get_tensor_details(info["index"], 0) for info in self._inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """A dictionary for each output."""
        return [self._get_tensor_details(info["index"], 0) for info in self._outputs]

    def get_tensor_details(self, subgraph_index=0) -> list[dict[str, Any]]:
        """A dictionary for each tensor of the main subgraph."""
        count = self.num_subgraphs()
        if subgraph_index < 0 or subgraph_index >= count:
            raise ValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model,"
                f" which has {count} subgraphs."
            )
        if subgraph_index:
            raise Error(f"nnhal describes the main subgraph only, not subgraph {subgraph_index}")
        every = range(len(self._tensors))
        return [self._get_tensor_details(index, 0) for index in every if self._has_type(index)]

    def _has_type(self, index: int) -> bool:
        return self._tensors[index]["dtype"] is not None or self._tensors[index]["type"] == "int4"

    def num_subgraphs(self) -> int:
        """How many subgraphs the file has."""
        return self._file.subgraph_count

    def _shape(self, index: int) -> list[int]:
        at = self._input_at.get(index)
        if at is not None:
            return list(self._shapes[at])
        if self._has_run and index in self._output_at:
            shape = self._runner.output_shape(self._output_at[index])
            if shape is not None:
                return shape
        if index in self._kept:
            return list(self._kept[index].shape)
        info = self._tensors[index]
        prepared = None
        if self._runner is not None and not info["is_constant"]:
            prepared = self._shapes_of_all[index]
        return info["example_shape"] if prepared is None else prepared

    def _get_tensor_details(self, tensor_index, subgraph_index=0) -> dict[str, Any]:
        index = self._checked(tensor_index)
        if subgraph_index:
            raise Error(f"nnhal describes the main subgraph only, not subgraph {subgraph_index}")
        if not self._has_type(index):
            raise ValueError("Could not get tensor details")
        info = self._tensors[index]
        shape = self._shape(index)
        declared = info["shape_signature"]
        signature = shape if declared is None else [-1 if it is None else it for it in declared]
        scales, zero_points, axis = info["quantization"] or ([], [], 0)
        one = (0.0, 0)
        if len(scales) == 1 and len(zero_points) <= 1:
            one = (float(scales[0]), int(zero_points[0]) if len(zero_points) else 0)
        return {
            "name": info["name"],
            "index": index,
            "shape": np.array(shape, dtype=np.int32),
            "shape_signature": np.array(signature, dtype=np.int32),
            "dtype": _dtype(info),
            "quantization": one,
            "quantization_parameters": {
                "scales": np.array(scales, dtype=np.float32),
                "zero_points": np.array(zero_points, dtype=np.int64).astype(np.int32),
                "quantized_dimension": axis,
                "block_size": 0,
            },
            "sparsity_parameters": dict(info["sparsity"]),
        }

    def _checked(self, tensor_index, error=Error) -> int:
        if isinstance(tensor_index, float) or not hasattr(tensor_index, "__index__"):
            kind = type(tensor_index).__name__
            raise TypeError(f"incompatible arguments: a tensor's index is an int, not {kind}")
        index = tensor_index.__index__()
        if not 0 <= index < len(self._tensors):
            raise error(f"Invalid tensor index {index} exceeds max tensor index {len(self._tensors)}")
        return index

    def _get_op_details(self, op_index) -> dict[str, Any]:
        name, inputs, outputs = self._file.operators()[op_index]
        return self._describe_operator(op_index, name, inputs, outputs)

    def _get_ops_details(self) -> list[dict[str, Any]]:
        """A dictionary for each operator of the main subgraph."""
        every = enumerate(self._file.operators())
        return [self._describe_operator(at, *operator) for at, operator in every]

    def _describe_operator(self, at, name, inputs, outputs) -> dict[str, Any]:
        types = [_dtype(self._tensors[index]) for index in inputs if index is not None]
        return {
            "index": int(at),
            "op_name": name,
            "inputs": np.array([-1 if it is None else it for it in inputs], dtype=np.int32),
            "outputs": np.array(outputs, dtype=np.int32),
            "operand_types": types,
            "result_types": [_dtype(self._tensors[index]) for index in outputs],
        }

    # --- Signatures

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            name: {"inputs": dict(sorted(inputs)), "outputs": dict(sorted(outputs))}
            for name, inputs, outputs in sorted(self._file.file_signatures())
        }

    def _owner_of(self, signature_key: str) -> Interpreter:
        """What runs a signature: this, or for another subgraph of the file one of its own."""
        if signature_key in (name for name, _, _ in self._file.signatures()):
            return self
        other = self._others.get(signature_key)
        if other is None:
            other = Interpreter.__new__(type(self))
            other._source, other._options = self._source, self._options
            other._keeps_all = self._keeps_all
            other._variables = self._variables
            compress = self.experimental_compress_quantization_zero_points
            other.experimental_compress_quantization_zero_points = compress
            other._file = self._file.with_signature(signature_key)
            other._use()
            self._others[signature_key] = other
        return other

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of each signature's inputs and outputs."""
        return {
            name: {side: list(names) for side, names in signature.items()}
            for name, signature in self._get_full_signature_list().items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function of the inputs of a signature, by their names."""
        if signature_key is None:
            signatures = self._get_full_signature_list()
            if len(signatures) != 1:
                raise ValueError(
                    f"SignatureDef signature_key is None and model has {len(signatures)} Signatures. "
                    "None is only allowed when the model has 1 SignatureDef"
                )
            signature_key = next(iter(signatures))
        return SignatureRunner(interpreter=self, signature_key=signature_key)


class InterpreterWithCustomOps(Interpreter):
    """LiteRT's interpreter with kernels of others for custom operators, which nnhal does not take: they are C++.

    Those of the custom operators that nnhal has need none, see docs/tflite.md.
    """

    def __init__(self, custom_op_registerers: list | None = None, **kwargs):
        if custom_op_registerers:
            raise Error(
                f"InterpreterWithCustomOps: nnhal takes no kernels for custom operators, and"
                f" {len(custom_op_registerers)} registerers are given: {custom_op_registerers!r:.200}"
            )
        super().__init__(**kwargs)


class _Variables:
    """Resource variables of an interpreter. As long as there is one runner, they are that one's alone."""

    def __init__(self):
        self._only: Any = None
        self._shared: Any = None

    def join(self, runner) -> None:
        if self._shared is None and self._only is None:
            self._only = runner
            return
        if self._shared is None:
            self._shared = _nnhal.Variables()
            self._only.share(self._shared)
            self._only = None
        runner.share(self._shared)


class SignatureRunner:
    """Runs a model by the names of a signature, see ``Interpreter.get_signature_runner``."""

    def __init__(self, interpreter: Interpreter | None = None, signature_key: str | None = None):
        if not interpreter:
            raise ValueError("None interpreter provided.")
        if not signature_key:
            raise ValueError("None signature_key provided.")
        signatures = interpreter._get_full_signature_list()
        if signature_key not in signatures:
            raise ValueError(f'Invalid signature_key provided: "{signature_key}".')
        self._interpreter = interpreter._owner_of(signature_key)
        self._signature_key = signature_key
        self._inputs = signatures[signature_key]["inputs"]
        self._outputs = signatures[signature_key]["outputs"]

    def __call__(self, **kwargs) -> dict[str, np.ndarray]:
        if len(kwargs) != len(self._inputs):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(kwargs)}"
            )
        interpreter = self._interpreter
        for name, value in kwargs.items():
            if name not in self._inputs:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef")
            interpreter.resize_tensor_input(self._inputs[name], value.shape)
        interpreter.allocate_tensors()
        for name, value in kwargs.items():
            interpreter.set_tensor(self._inputs[name], value)
        interpreter.invoke()
        return {name: interpreter.get_tensor(index) for name, index in self._outputs.items()}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """A dictionary for each input, by name."""
        details = self._interpreter._get_tensor_details
        return {name: details(index, 0) for name, index in self._inputs.items()}

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """A dictionary for each output, by name."""
        details = self._interpreter._get_tensor_details
        return {name: details(index, 0) for name, index in self._outputs.items()}


def _dtype(info: dict[str, Any]):
    """The type as LiteRT gives it: ``numpy.float32``, not the dtype object."""
    return np.int8 if info["dtype"] is None else info["dtype"].type


_TYPE_NAMES = {"str": "STRING", "bytes": "STRING", "object": "STRING"}


def _type_name(dtype: np.dtype) -> str:
    return _TYPE_NAMES.get(dtype.name, dtype.name.upper())


def _own_references() -> int:
    """How many references to an array ``_safe_to_run`` counts if there are no views of it."""
    views = {0: np.zeros(1)}
    return max(sys.getrefcount(array) for array in views.values())


_OWN_REFERENCES = _own_references()
