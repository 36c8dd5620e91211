"""An ONNX graph that grows node by node, in double precision but where it says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

try:
    import onnx
except ImportError as error:
    raise ImportError("to_onnx needs the package onnx: pip install 'sparserf[onnx]'") from error

OPSET, IR_VERSION = 19, 9  # the first in which strings can be compared


class Graph:
    """Nodes, constants, inputs and outputs. Names of values begin with "_", which `named` keeps apart from all others."""

    def __init__(self, taken: Iterable[str]):
        """taken : names that no value or output may have, those of the inputs"""
        self._nodes, self._constants, self._inputs, self._outputs, self._taken = [], [], [], [], set(taken)

    def __call__(self, operator: str, *operands: Any, **attributes: Any) -> str:
        """The name of the result of an operator; operands are names, or arrays, which become constants."""
        result = self.named(f"_{operator}_{len(self._nodes)}")
        names = [operand if isinstance(operand, str) else self._constant(operand) for operand in operands]
        self._nodes.append(onnx.helper.make_node(operator, names, [result], **attributes))
        return result

    def named(self, name: str) -> str:
        """The name, with "_" behind it as long as it is taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _constant(self, values):
        name = self.named(f"_constant_{len(self._constants)}")
        self._constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(values).reshape(np.shape(values)), name))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        return self("Cast", value, to=_type(dtype))

    def input(self, name: str, dtype: Any, n_columns: int) -> None:
        self._inputs.append(onnx.helper.make_tensor_value_info(name, _type(dtype), ["n_rows", n_columns]))

    def output(self, name: str, value: str, dtype: Any, *shape: int) -> None:
        name = self.named(name)
        self._nodes.append(onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(onnx.helper.make_tensor_value_info(name, _type(dtype), ["n_rows", *shape]))

    def model(self, about: str) -> onnx.ModelProto:
        """The ModelProto, checked."""
        graph = onnx.helper.make_graph(self._nodes, "sparserf", self._inputs, self._outputs, self._constants, about)
        opset = [onnx.helper.make_opsetid("", OPSET)]
        model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="sparserf")
        onnx.checker.check_model(model)
        return model


def write(model: onnx.ModelProto, path: str | PathLike[str]) -> None:
    onnx.save(model, path)


def _type(dtype):
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
