"""Adapters in a stand-in's weights, which are (shape, bytes of fp32): names and shapes
are checked by our plugin for vLLM, the sum is in plain Python."""
import operator
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "models/servers/vllm_plugin"))
from troupe_adapters import Adapters  # noqa: E402 (its folder is above)


def rows_of(tensor):
    (_, columns), data = tensor
    return [struct.unpack_from(f"<{columns}f", data, at)
            for at in range(0, len(data), 4 * columns)]


def plain_sum(weight, a, b, scale):
    """W + scale B A in double precision, stored as fp32."""
    columns = list(zip(*rows_of(a)))
    values = [value + scale * sum(map(operator.mul, factors, column))
              for row, factors in zip(rows_of(weight), rows_of(b))
              for value, column in zip(row, columns)]
    return weight[0], struct.pack(f"<{len(values)}f", *values)


class SentAdapters(Adapters):
    def __init__(self):
        super().__init__(plain_sum)

    def take(self, info, shapes, has_base):
        """Where the tensors of a file belong, and the shapes that they must have,
        if the stand-in's model has these."""
        tensors = self.expect({name: shape for name, _, shape, *_ in info["tensors"]},
                              info["scale"], shapes, str, has_base)
        return tensors, self.shapes
