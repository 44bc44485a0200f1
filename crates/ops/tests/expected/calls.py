"""How a script writes the calls that main.rs reads.

The file is text: a line `call` with the operation, the tolerance, and what it shows; then a line for each
argument in order: `in`, `none` (left out) or `out`, type, scale, zero point, dimensions, values.
"""

import numpy as np


class Call:
    """The lines of one call."""

    def __init__(self, operation, about, tolerance):
        print(f"call {operation} {tolerance} {about}")

    @staticmethod
    def line(kind, type_, values, scale=0.0, zero=0, shape=None):
        shape = np.shape(values) if shape is None else shape
        dimensions = "x".join(map(str, shape)) or "-"
        flat = [] if values is None else np.ravel(values)
        numbers = " ".join(f"{value:.9g}" if value % 1 else f"{int(value)}" for value in flat)
        print(f"{kind} {type_} {float(scale)!r} {zero} {dimensions} {numbers}".rstrip())

    def give(self, type_, values, scale=0.0, zero=0):
        self.line("in", type_, values, scale, zero)

    def leave_out(self, type_, shape, scale=0.0):
        self.line("none", type_, None, scale, 0, shape)

    def optional(self, type_, values, shape, scale=0.0):
        if values is None:
            self.leave_out(type_, shape, scale)
        else:
            self.give(type_, values, scale)

    def expect(self, type_, values, scale=0.0, zero=0):
        self.line("out", type_, values, scale, zero)
