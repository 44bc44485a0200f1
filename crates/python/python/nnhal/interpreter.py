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
from ._wrapper import Wrapper

_HELD = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""
_UNALLOCATED = "Tensor data is null. Run allocate_tensors() first"
_NOT_SET = "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
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
        # Scales and zero points of tensors that have some for each block.
        self._by_block: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        return self._file.tensor_count

    def __getitem__(self, index: int) -> dict[str, Any]:
        info = self._known.get(index)
        if info is None:
            info = self._known[index] = self._file.tensor(index)
        return info

    def constant(self, index: int) -> np.ndarray:
        return self._file.constant(index)

    def by_block(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        known = self._by_block.get(index)
        if known is None:
            scales, zero_points, _, _ = self[index]["blocks"]
            known = self._by_block[index] = (
                self._flat(scales, np.dtype(np.float32)),
                self._flat(zero_points, np.dtype(np.int32)).astype(np.int32),
            )
        return known

    def _flat(self, index: int | None, dtype: np.dtype) -> np.ndarray:
        if index is None:
            return np.array([], dtype)
        try:
            return self.constant(index).reshape(-1)
        except Error:
            # They are computed, which operators refuse.
            return np.array([], dtype)


class _TensorsOfSubgraph(_Tensors):
    """The same of another subgraph than the one that the model is."""

    def __init__(self, file: Any, subgraph: int):
        super().__init__(file)
        self._subgraph = subgraph
        self._known = dict(enumerate(file.tensors_of_subgraph(subgraph)))

    def __len__(self) -> int:
        return len(self._known)

    def constant(self, index: int) -> np.ndarray:
        return self._file.constant_of_subgraph(self._subgraph, index)


class Interpreter:
    """Runs a ``.tflite`` model step by step, as LiteRT's ``Interpreter`` does.

    ``num_threads`` is the most that share a run; without it as many as the process may use processors.
    Delegates are refused. With ``experimental_preserve_all_tensors`` the model runs on ``nnhal-reference``, which
    keeps each operation's results. The other experimental arguments choose among ways of
    LiteRT's that nnhal does not have; they change nothing.
    """

    _custom_op_registerers: list = []

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
            if "not a TensorFlow Lite model" in str(error) or "was cut off" in str(error):
                raise Error(f"The model is not a valid Flatbuffer buffer: {error}") from None
            raise
        # TensorFlow's QuantizationDebugger asks for the results of these operators, which are no outputs.
        if any(name == "NumericVerify" for name, _, _ in self._file.operators()):
            self._keeps_all = True
            self._options["device"] = "nnhal-reference"
        self._use()

    def _use(self) -> None:
        """Begins with the model of ``_file``."""
        # By subgraph other than the first: what runs it, and what the file says of its tensors.
        self._others: dict[int, Interpreter] = {}
        self._tensors_of_others: dict[int, _Tensors] = {}
        self._inputs: list[dict[str, Any]] = self._file.inputs()
        # Behind those of the subgraph are results of operators that signatures name.
        outputs: list[dict[str, Any]] = self._file.outputs()
        self._outputs = outputs[: self._file.own_output_count]
        self._input_at = {info["index"]: at for at, info in reversed(list(enumerate(self._inputs)))}
        self._output_at = {
            info["index"]: at
            for at, info in reversed(list(enumerate(outputs)))
            if info["index"] not in self._input_at
        }
        self._state_at = {
            tensor: state
            for state, tensor in enumerate(self._file.state_tensors())
            if tensor is not None
        }
        self._tensors = _Tensors(self._file)
        # What the inputs are to be, and what was prepared for which shapes.
        self._shapes: list[tuple[int, ...]] = [tuple(info["example_shape"]) for info in self._inputs]
        # Shapes that programs give other tensors, which preparing forgets.
        self._other_shapes: dict[int, tuple[int, ...]] = {}
        self._prepared: dict[tuple, tuple] = {}
        self._shapes_of_all: list[list[int] | None] = []
        # What was prepared last, for these shapes of the inputs; once one has another, it is not ready.
        self._runner: Any = None
        self._runner_shapes: tuple[tuple[int, ...], ...] = ()
        self._is_ready = False
        # Inputs that the program has given values.
        self._given: set[int] = set()
        self._has_run = False
        self._views: dict[int, np.ndarray] = {}
        self._stale: set[int] = set()
        self._kept: dict[int, np.ndarray] = {}

    def __getstate__(self):
        state = {"source": self._source, "options": self._options, "keeps_all": self._keeps_all}
        state["compress"] = self.experimental_compress_quantization_zero_points
        state["shapes"] = self._shapes
        state["is_allocated"] = self._is_ready
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
        self._allocate()

    def _allocate(self) -> None:
        if self._is_ready:
            return
        shapes = tuple(self._shapes)
        prepared = self._prepared.pop(shapes, None)
        if prepared is None:
            prepared = self._prepare(shapes)
            while len(self._prepared) >= _MOST_PREPARED:
                del self._prepared[next(iter(self._prepared))]
        self._prepared[shapes] = prepared
        runner, self._shapes_of_all = prepared
        if self._runner is not None and self._runner is not runner:
            for at in self._given:
                if self._runner_shapes[at] == shapes[at]:
                    index = self._inputs[at]["index"]
                    runner.set_input(at, self._views[index] if index in self._views else self._runner.input(at))
        self._given = {at for at in self._given if self._runner_shapes[at] == shapes[at]}
        self._runner, self._runner_shapes = runner, shapes
        self._runner.reset_variable_tensors()
        self._is_ready = True
        self._other_shapes.clear()
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
        self._variables.join(runner)
        return runner, shapes_of_all

    def resize_tensor_input(self, input_index, tensor_size, strict=False) -> None:
        """Gives an input another shape. ``allocate_tensors`` has to follow.

        Strictly, only lengths that are -1 in ``shape_signature`` may change. Other tensors take a shape too, as LiteRT's,
        and have the one that follows from the inputs again once tensors are allocated.
        """
        self._ensure_safe()
        self._resize(input_index, tensor_size, strict)

    def _resize(self, input_index, tensor_size, strict=False) -> None:
        size = np.array(tensor_size, dtype=np.int32)
        if size.ndim != 1:
            raise ValueError(f"Shape should be 1D instead of {size.ndim}.")
        index = self._checked(input_index)
        shape = tuple(int(length) for length in size)
        if any(length < 0 for length in shape):
            raise Error(f"Lengths cannot be negative: {list(shape)} for tensor {index}.")
        now = tuple(self._shape(index))
        if strict:
            if len(shape) != len(now):
                raise Error(
                    f"Attempting to resize tensor {index} to {len(shape)} dimensions instead of {len(now)}."
                )
            declared = self._tensors[index]["shape_signature"]
            if not declared or len(declared) != len(now):
                declared = now
            for axis, (wanted, length) in enumerate(zip(shape, now)):
                if wanted != length and declared[axis] is not None:
                    raise Error(
                        f"Attempting to resize dimension {axis} of tensor {index} with value"
                        f" {length} to {wanted}. ResizeInputTensorStrict only allows mutating unknown"
                        " dimensions identified by -1."
                    )
        if shape == now:
            return
        if self._tensors[index]["is_constant"]:
            name = self._tensors[index]["name"]
            raise Error(f"Attempting to resize a fixed-size tensor: {index}, {name}, is a constant of the file.")
        at = self._input_at.get(index)
        if at is not None:
            self._shapes[at] = shape
        else:
            self._other_shapes[index] = shape
        self._is_ready = False

    def reset_all_variables(self) -> None:
        """Sets variable tensors to 0. Resource variables keep their values, as LiteRT's do."""
        for interpreter in (self, *self._others.values()):
            if interpreter._runner is not None:
                interpreter._runner.reset_variable_tensors()
                interpreter._stale.update(interpreter._state_at.keys() & interpreter._views.keys())

    # --- Values

    def set_tensor(self, tensor_index, value) -> None:
        """Copies a value into an input; it has exactly the input's dtype and shape."""
        at = self._input_at.get(tensor_index)
        if at is not None and self._is_ready and not self._views and type(value) is np.ndarray:
            if self._runner.set_input_exactly(at, value):
                self._given.add(at)
                return
        self._set_checked(tensor_index, np.asarray(value))

    def _set_checked(self, tensor_index, value: np.ndarray) -> None:
        index = self._checked(tensor_index)
        info = self._tensors[index]
        if info["is_constant"]:
            raise Error(f"Cannot set tensor: tensor {index}, {info['name']}, is a constant of the file.")
        if not self._has_memory(index):
            raise Error(_NOT_SET)
        at = self._input_at.get(index)
        if at is None and index not in self._output_at and index not in self._state_at:
            raise Error(f"Cannot set tensor: tensor {index}, {info['name']}, is no input of the model.")
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
        if at is not None:
            self._given.add(at)
        if at is not None and index not in self._views:
            self._runner.set_input(at, value)
        elif index in self._state_at and index not in self._views:
            self._runner.write_state(self._state_at[index], np.ascontiguousarray(value))
        else:
            self._view(index)[...] = value

    def _has_memory(self, index: int) -> bool:
        if self._runner is None or index in self._other_shapes:
            return False
        at = self._input_at.get(index)
        return at is None or self._runner_shapes[at] == self._shapes[at]

    def get_tensor(self, tensor_index, subgraph_index=0) -> Any:
        """A copy of an input, an output, a constant or a variable; with ``experimental_preserve_all_tensors`` of any
        tensor. A scalar is one of NumPy's, as LiteRT's. Those of another subgraph are there if a signature runs it.
        """
        at = self._output_at.get(tensor_index)
        if at is not None and self._has_run and not self._views and not self._other_shapes and not subgraph_index:
            return _as_given(self._runner.output(at))
        if subgraph_index:
            return self._get_of_subgraph(tensor_index, subgraph_index)
        return _as_given(self._read(self._checked(tensor_index)))

    def _get_of_subgraph(self, tensor_index, subgraph_index) -> Any:
        count = self.num_subgraphs()
        if not 0 <= subgraph_index < count:
            raise Error(f"Invalid subgraph index {subgraph_index} exceeds max subgraph index {count}")
        other = self._others.get(subgraph_index)
        if other is not None:
            return other.get_tensor(tensor_index)
        tensors = self._tensors_of(subgraph_index)
        index = _checked(tensor_index, tensors)
        if not tensors[index]["is_constant"]:
            raise Error(f"{_UNALLOCATED}: no signature has run subgraph {subgraph_index}")
        return _as_given(tensors.constant(index))

    def _read(self, index: int) -> np.ndarray:
        if self._tensors[index]["is_constant"]:
            return self._file.constant(index)
        if not self._has_memory(index):
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
            if self._shapes_of_all[index] is None:
                raise Error(f"{_UNALLOCATED}, and invoke(): only a run shows its shape")
            return np.zeros(self._shape(index), self._tensors[index]["dtype"])
        state = self._state_at.get(index)
        if state is not None:
            info = self._tensors[index]
            value = np.zeros(info["example_shape"], info["dtype"])
            self._runner.read_state(state, value)
            return value
        if index in self._kept:
            return self._kept[index].copy()
        if self._keeps_all and _dtype(self._tensors[index]) is np.object_:
            # Programs that look at all tensors get of handles what LiteRT gives.
            return np.full(self._shape(index), None, np.object_)
        name = self._tensors[index]["name"]
        raise Error(
            f"{_UNALLOCATED}: nnhal keeps no value of the intermediate tensor {index}, {name}"
            " (experimental_preserve_all_tensors does, after invoke())"
        )

    def tensor(self, tensor_index):
        """A function that gives a view of an input, an output or a variable. Views must be gone before ``invoke()``.

        What is written into an input's view is copied once when the model is invoked. Of a scalar it gives the value, as
        LiteRT's does.
        """

        def view() -> Any:
            index = self._checked(tensor_index)
            if not self._has_memory(index) and not self._tensors[index]["is_constant"]:
                raise Error(_UNALLOCATED)
            return _as_given(self._view(index)[...])

        return view

    def _view(self, index: int) -> np.ndarray:
        if index not in self._views or index in self._stale:
            is_constant = self._tensors[index]["is_constant"]
            self._views[index] = self._file.constant(index) if is_constant else self._value(index)
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
        if self._views:
            self._ensure_safe()
        self._invoke()

    def _invoke(self) -> None:
        runner = self._runner
        if not self._is_ready:
            raise Error("Invoke called on model that is not ready. Run allocate_tensors() first")
        for index, array in self._views.items():
            at = self._input_at.get(index)
            if at is not None:
                runner.set_input(at, array)
            elif not self._tensors[index]["is_constant"]:
                state = self._state_at.get(index)
                if state is not None and index not in self._stale:
                    runner.write_state(state, array)
                self._stale.add(index)
        self._has_run = False
        if self._keeps_all:
            self._kept = runner.run_recorded()
        else:
            runner.run()
        self._has_run = True
        if self._stale:
            self._refresh_held()

    def _refresh_held(self) -> None:
        """Signatures run though views are held, which see the results."""
        for index in list(self._stale):
            if sys.getrefcount(self._views[index]) > _OWN_REFERENCES - 1:
                value = self._value(index)
                if value.shape == self._views[index].shape:
                    self._views[index][...] = value
                    self._stale.discard(index)

    # --- What the file says

    def get_input_details(self) -> list[dict[str, Any]]:
        """A dictionary for each input."""
        return [self._get_tensor_details(info["index"], 0) for info in self._inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """A dictionary for each output."""
        return [self._get_tensor_details(info["index"], 0) for info in self._outputs]

    def get_tensor_details(self, subgraph_index=0) -> list[dict[str, Any]]:
        """A dictionary for each tensor of a subgraph whose type NumPy has."""
        count = self.num_subgraphs()
        if subgraph_index < 0 or subgraph_index >= count:
            raise ValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model,"
                f" which has {count} subgraphs."
            )
        tensors = self._tensors_of(subgraph_index)
        every = range(len(tensors))
        return [
            self._get_tensor_details(index, subgraph_index) for index in every if _dtype(tensors[index]) is not None
        ]

    def _tensors_of(self, subgraph: int) -> _Tensors:
        if subgraph == 0:
            return self._tensors
        other = self._others.get(subgraph)
        if other is not None:
            return other._tensors
        tensors = self._tensors_of_others.get(subgraph)
        if tensors is None:
            tensors = self._tensors_of_others[subgraph] = _TensorsOfSubgraph(self._file, subgraph)
        return tensors

    def num_subgraphs(self) -> int:
        """How many subgraphs the file has."""
        return self._file.subgraph_count

    def _shape(self, index: int) -> list[int]:
        at = self._input_at.get(index)
        if at is not None:
            return list(self._shapes[at])
        if index in self._other_shapes:
            return list(self._other_shapes[index])
        if self._has_run and index in self._output_at:
            shape = self._runner.output_shape(self._output_at[index])
            if shape is not None:
                return shape
        if index in self._kept:
            return list(self._kept[index].shape)
        info = self._tensors[index]
        prepared = None
        if self._shapes_of_all and not info["is_constant"]:
            prepared = self._shapes_of_all[index]
        # Where only a run shows it, programs see what the file says, as with LiteRT.
        return info["declared_shape"] if prepared is None else prepared

    def _get_tensor_details(self, tensor_index, subgraph_index=0) -> dict[str, Any]:
        subgraph_index = int(subgraph_index)
        count = self.num_subgraphs()
        if not 0 <= subgraph_index < count:
            raise Error(f"Invalid subgraph index {subgraph_index} exceeds max subgraph index {count}")
        tensors = self._tensors_of(subgraph_index)
        index = _checked(int(tensor_index), tensors)
        owner = self._others.get(subgraph_index) if subgraph_index else self
        shape = tensors[index]["declared_shape"] if owner is None else owner._shape(index)
        return _details(tensors, index, shape)

    def _checked(self, tensor_index) -> int:
        return _checked(tensor_index, self._tensors)

    def _get_op_details(self, op_index) -> dict[str, Any]:
        every = self._file.operators()
        if not 0 <= op_index < len(every):
            raise Error(f"Invalid node index {op_index}, there are {len(every)}")
        return self._describe_operator(op_index, *every[op_index])

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
            for name, _, inputs, outputs in sorted(self._file.file_signatures())
        }

    def _subgraph_of(self, signature_key: str) -> int | None:
        """The subgraph of a signature, if there is such a one."""
        found = (subgraph for name, subgraph, _, _ in self._file.file_signatures() if name == signature_key)
        return next(found, None)

    def _owner_of(self, signature_key: str) -> Interpreter:
        """What runs a signature: this, or for another subgraph of the file one of its own."""
        subgraph = self._subgraph_of(signature_key)
        if subgraph is None or subgraph == self._file.subgraph:
            return self
        other = self._others.get(subgraph)
        if other is None:
            other = Interpreter.__new__(type(self))
            other._source, other._options = self._source, self._options
            other._keeps_all = self._keeps_all
            other._variables = self._variables
            compress = self.experimental_compress_quantization_zero_points
            other.experimental_compress_quantization_zero_points = compress
            other._file = self._file.with_signature(signature_key)
            other._use()
            self._others[subgraph] = other
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

    # --- What programs use though its name begins with an underscore

    @property
    def _interpreter(self) -> Wrapper:
        return Wrapper(self)

    @property
    def _signature_defs(self) -> dict[str, dict[str, list[str]]]:
        return self.get_signature_list()

    @property
    def _delegates(self) -> list:
        return []

    def _native_handle(self) -> int:
        """There is none, and an error says so."""
        raise Error(
            "_native_handle: nnhal has no tflite::Interpreter, which C++ code could use; libtensorflowlite_c.so of nnhal"
            " has TensorFlow Lite's C functions"
        )

    def _set_threads(self, count: int) -> None:
        self._options = {**self._options, "threads": count}
        self._prepared.clear()


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
        self._interpreter = interpreter
        self._owner = interpreter._owner_of(signature_key)
        self._signature_key = signature_key
        self._signature_def = signatures[signature_key]
        self._inputs = self._signature_def["inputs"]
        self._outputs = self._signature_def["outputs"].items()
        self._subgraph_index = interpreter._subgraph_of(signature_key)

    @property
    def _interpreter_wrapper(self) -> Wrapper:
        return Wrapper(self._interpreter)

    def __call__(self, **kwargs) -> dict[str, Any]:
        if len(kwargs) != len(self._inputs):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(kwargs)}"
            )
        owner = self._owner
        for name, value in kwargs.items():
            if name not in self._inputs:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef")
            owner._resize(self._inputs[name], value.shape)
        # As LiteRT's, it runs though views are held.
        owner._allocate()
        for name, value in kwargs.items():
            owner.set_tensor(self._inputs[name], value)
        owner._invoke()
        return {name: owner.get_tensor(index) for name, index in self._outputs}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """A dictionary for each input, by name."""
        return self._details(self._inputs.items())

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """A dictionary for each output, by name."""
        return self._details(self._outputs)

    def _details(self, tensors) -> dict[str, dict[str, Any]]:
        of_interpreter = self._interpreter._get_tensor_details
        return {name: of_interpreter(index, self._subgraph_index) for name, index in tensors}


# By code of the format, where nnhal has no arrays of a type: what LiteRT gives for it.
_OTHER_DTYPES: dict[int, Any] = {
    5: np.bytes_,  # STRING
    11: np.complex128,
    13: np.object_,  # RESOURCE
    14: np.object_,  # VARIANT
    17: np.int8,  # INT4
    19: np.int8,  # INT2
    20: np.uint8,  # UINT4
    21: np.int8,  # FLOAT8_E4M3FN
    22: np.int8,  # FLOAT8_E5M2
}


def _dtype(info: dict[str, Any]) -> Any:
    """The type as LiteRT gives it: ``numpy.float32``, not the dtype object. ``None`` of BFLOAT16, which NumPy lacks."""
    return _OTHER_DTYPES.get(info["type_code"]) if info["dtype"] is None else info["dtype"].type


def _as_given(array: np.ndarray) -> Any:
    """The array, or the only element of one without axes as a scalar of NumPy's."""
    return array if array.ndim or array.dtype == np.object_ else array[()]


def _checked(tensor_index, tensors: _Tensors) -> int:
    if isinstance(tensor_index, float) or not hasattr(tensor_index, "__index__"):
        kind = type(tensor_index).__name__
        raise TypeError(f"incompatible arguments: a tensor's index is an int, not {kind}")
    index = tensor_index.__index__()
    if not 0 <= index < len(tensors):
        raise Error(f"Invalid tensor index {index} exceeds max tensor index {len(tensors)}")
    return index


def _details(tensors: _Tensors, index: int, shape: list[int]) -> dict[str, Any]:
    """What LiteRT says of a tensor that has a shape now."""
    info = tensors[index]
    dtype = _dtype(info)
    if dtype is None:
        raise ValueError(f"Could not get tensor details: NumPy has no type {info['type']}")
    declared = info["shape_signature"]
    signature = shape if declared is None else [-1 if it is None else it for it in declared]
    scales, zero_points, axis = info["quantization"] or ([], [], 0)
    block_size = 0
    one = (0.0, 0)
    if info["blocks"] is not None:
        _, _, block_size, axis = info["blocks"]
        scales, zero_points = tensors.by_block(index)
    else:
        scales = np.array(scales, dtype=np.float32)
        if len(scales) == 1 and len(zero_points) <= 1:
            one = (float(scales[0]), int(zero_points[0]) if len(zero_points) else 0)
    return {
        "name": info["name"],
        "index": index,
        "shape": np.array(shape, dtype=np.int32),
        "shape_signature": np.array(signature, dtype=np.int32),
        "dtype": dtype,
        "quantization": one,
        "quantization_parameters": {
            "scales": scales.copy(),
            "zero_points": np.array(zero_points, dtype=np.int64).astype(np.int32),
            "quantized_dimension": axis,
            "block_size": block_size,
        },
        "sparsity_parameters": dict(info["sparsity"]),
    }


_TYPE_NAMES = {"str": "STRING", "bytes": "STRING", "object": "STRING"}


def _type_name(dtype: np.dtype) -> str:
    return _TYPE_NAMES.get(dtype.name, dtype.name.upper())


def _own_references() -> int:
    """How many references to an array ``_safe_to_run`` counts if there are no views of it."""
    views = {0: np.zeros(1)}
    return max(sys.getrefcount(array) for array in views.values())


_OWN_REFERENCES = _own_references()
