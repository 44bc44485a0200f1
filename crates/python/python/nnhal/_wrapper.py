"""The object that LiteRT's ``Interpreter`` has as ``_interpreter``: some programs call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import Error

if TYPE_CHECKING:
    from .interpreter import Interpreter


class Wrapper:
    """The methods of LiteRT's wrapper by its names, on an interpreter of nnhal's."""

    def __init__(self, interpreter: Interpreter):
        self._of = interpreter

    def _owner(self, subgraph_index: int) -> Interpreter:
        """What runs a subgraph: the first, or one that a signature names."""
        if subgraph_index in (-1, 0):
            return self._of
        for name, subgraph, _, _ in self._of._file.file_signatures():
            if subgraph == subgraph_index:
                return self._of._owner_of(name)
        raise Error(f"nnhal runs subgraphs that signatures name, and subgraph {subgraph_index} is not among them")

    def _detail(self, key: str, tensor_index: int, subgraph_index: int) -> Any:
        return self._of._get_tensor_details(tensor_index, subgraph_index)[key]

    def AllocateTensors(self, subgraph_index: int = -1) -> None:
        self._owner(subgraph_index)._allocate()

    def Invoke(self, subgraph_index: int = 0) -> None:
        self._owner(subgraph_index)._invoke()

    def ResizeInputTensor(self, i: int, value: Any, strict: bool, subgraph_index: int = 0) -> None:
        self._owner(subgraph_index)._resize(i, value, strict)

    def SetTensor(self, i: int, value: Any, subgraph_index: int = 0) -> None:
        self._owner(subgraph_index).set_tensor(i, value)

    def GetTensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._of.get_tensor(tensor_index, subgraph_index)

    def tensor(self, base_object: Any, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._owner(subgraph_index).tensor(tensor_index)()

    def ResetVariableTensors(self) -> None:
        self._of.reset_all_variables()

    def SetNumThreads(self, num_threads: int) -> None:
        """Holds for what is allocated from now on."""
        if num_threads < -1:
            raise Error(f"num_threads should be at least -1, not {num_threads}")
        self._of._set_threads(max(num_threads, 0))

    def InputIndices(self) -> np.ndarray:
        return np.array([info["index"] for info in self._of._inputs], np.int32)

    def OutputIndices(self) -> np.ndarray:
        return np.array([info["index"] for info in self._of._outputs], np.int32)

    def NumTensors(self, subgraph_index: int) -> int:
        return len(self._of._tensors_of(subgraph_index))

    def NumSubgraphs(self) -> int:
        return self._of.num_subgraphs()

    def TensorName(self, tensor_index: int, subgraph_index: int) -> str:
        return self._detail("name", tensor_index, subgraph_index)

    def TensorType(self, tensor_index: int, subgraph_index: int) -> Any:
        return self._detail("dtype", tensor_index, subgraph_index)

    def TensorSize(self, tensor_index: int, subgraph_index: int) -> np.ndarray:
        return self._detail("shape", tensor_index, subgraph_index)

    def TensorSizeSignature(self, tensor_index: int, subgraph_index: int) -> np.ndarray:
        return self._detail("shape_signature", tensor_index, subgraph_index)

    def TensorQuantization(self, tensor_index: int, subgraph_index: int) -> tuple[float, int]:
        return self._detail("quantization", tensor_index, subgraph_index)

    def TensorQuantizationParameters(self, tensor_index: int, subgraph_index: int) -> tuple:
        return tuple(self._detail("quantization_parameters", tensor_index, subgraph_index).values())

    def TensorSparsityParameters(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        return self._detail("sparsity_parameters", tensor_index, subgraph_index)

    def NumNodes(self) -> int:
        return len(self._of._file.operators())

    def NodeName(self, index: int) -> str:
        return self._of._get_op_details(index)["op_name"]

    def NodeInputs(self, index: int) -> np.ndarray:
        return self._of._get_op_details(index)["inputs"]

    def NodeOutputs(self, index: int) -> np.ndarray:
        return self._of._get_op_details(index)["outputs"]

    def GetSignatureDefs(self) -> dict[str, dict[str, dict[str, int]]]:
        return self._of._get_full_signature_list()

    def GetSubgraphIndexFromSignature(self, signature_key: str) -> int:
        found = self._of._subgraph_of(signature_key)
        if found is None:
            raise Error(f"No signature {signature_key!r}")
        return found

    def ModifyGraphWithDelegate(self, delegate: int) -> None:
        raise Error(
            "ModifyGraphWithDelegate: nnhal takes no delegates; it runs models on devices of its own, see nnhal.devices()"
        )

    def interpreter(self) -> int:
        return self._of._native_handle()
