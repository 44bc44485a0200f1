#!/usr/bin/env python3
"""Runs models through PyTorch's NNAPI backend (torch.backends._nnapi) and libneuralnetworks.so, and compares with PyTorch.

    LIBRARY=target/release/libneuralnetworks.so python nnapi.py

PyTorch looks for the library by name; one that is loaded already is the one that it finds.
"""

import ctypes
import os
import pathlib
import sys
import time

import torch

ctypes.CDLL(str(pathlib.Path(os.environ["LIBRARY"]).resolve()), mode=ctypes.RTLD_GLOBAL)

import torch.ao.quantization as quantization  # noqa: E402
import torch.backends._nnapi.prepare as nnapi  # noqa: E402
import torchvision.models.quantization as networks  # noqa: E402
from torch import nn  # noqa: E402

torch.manual_seed(1)
torch.backends.quantized.engine = "qnnpack"


def image(*shape):
    """In NNAPI's order: channels last, which the backend has to know."""
    return last(torch.randn(*shape))


def last(tensor):
    tensor = tensor.contiguous(memory_format=torch.channels_last)
    tensor.nnapi_nhwc = True
    return tensor


def quantized(tensor, scale=0.03, zero_point=128):
    return torch.quantize_per_tensor(tensor, scale, zero_point, torch.quint8)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def cases():
    """(name, module or function, arguments)."""
    pair = torch.randn(2, 6, 4), torch.randn(2, 6, 4)
    yield "add", lambda a, b: a + b, pair
    yield "sub", lambda a, b: a - b, pair
    yield "mul of rows", lambda a, b: a * b, (torch.randn(2, 3), torch.randn(1, 3))
    yield "div", lambda a, b: a / b, (torch.randn(2, 3), torch.rand(2, 3) + 1)
    yield "cat", lambda a, b: torch.cat((a, b), 1), pair
    yield "cat of images", lambda a, b: torch.cat((a, b), 1), (image(1, 3, 4, 4), image(1, 5, 4, 4))
    yield "reshape", lambda a: a.reshape(4, -1), pair[:1]
    yield "flatten", nn.Flatten(), pair[:1]
    yield "unsqueeze", lambda a: a.unsqueeze(-2), pair[:1]
    yield "slice", lambda a: a[:, 1:5:2], pair[:1]
    yield "mean", lambda a: a.mean((2, 3)), (image(2, 3, 5, 6),)
    yield "mean of images", lambda a: a.mean((2, 3), keepdim=True), (image(2, 3, 5, 6),)
    yield "relu", nn.ReLU(), pair[:1]
    yield "relu6", nn.ReLU6(), pair[:1]
    yield "sigmoid", nn.Sigmoid(), pair[:1]
    yield "prelu", nn.PReLU(), pair[:1]
    yield "prelu by channel", nn.PReLU(3), (image(1, 3, 4, 4),)
    yield "softmax", nn.Softmax(-1), pair[:1]
    yield "log_softmax", nn.LogSoftmax(-1), pair[:1]
    yield "linear", nn.Linear(16, 32), (torch.randn(2, 16),)
    yield "perceptron", nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2)), (torch.randn(3, 4),)
    yield "max_pool2d", nn.MaxPool2d(3, 2, 1), (image(1, 3, 9, 9),)
    yield "avg_pool2d", nn.AvgPool2d(2), (image(1, 3, 8, 8),)
    yield "adaptive_avg_pool2d", nn.AdaptiveAvgPool2d(1), (image(1, 3, 8, 8),)
    yield "upsample", nn.UpsamplingNearest2d(scale_factor=2), (image(1, 3, 4, 5),)
    for name, options in {
        "conv2d": {},
        "conv2d, stride 2": {"stride": 2},
        "conv2d, padding": {"padding": 1},
        "conv2d, depthwise": {"groups": 8},
        "conv2d, no bias": {"bias": False},
    }.items():
        yield name, nn.Conv2d(8, 8, 3, **options), (image(1, 8, 7, 9),)
    yield "conv2d, not channels last", nn.Conv2d(4, 6, 3, padding=1), (torch.randn(1, 4, 7, 9),)
    yield "conv_transpose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1), (image(1, 4, 5, 6),)
    yield "quantize", lambda a: torch.quantize_per_tensor(a, 0.05, 100, torch.quint8), (image(1, 3, 4, 4),)
    yield "dequantize", lambda a: a.dequantize(), (quantized(pair[0]),)
    yield "8-bit add", lambda a, b: torch.ops.quantized.add(a, b, 0.06, 120), tuple(map(quantized, pair))
    yield "8-bit add_relu", lambda a, b: torch.ops.quantized.add_relu(a, b, 0.06, 120), tuple(map(quantized, pair))
    for name, network in ("mobilenet_v2", networks.mobilenet_v2), ("resnet18", networks.resnet18):
        yield name, *floats(network)
        yield f"8-bit {name}", *bytes_of(network)


def floats(network):
    """A network with random weights and the mean and variance of its layers, so that its outputs are of some size."""
    it = network(weights=None, quantize=False)
    with torch.no_grad():
        for _ in range(3):
            it.train()(torch.randn(4, 3, 96, 96))
    it.eval().fuse_model()
    return it, (image(1, 3, 224, 224),)


def bytes_of(network):
    """The same, quantized as the backend's tutorial does it."""
    it, (input,) = floats(network)
    it.qconfig = quantization.get_default_qconfig("qnnpack")
    it = quantization.prepare(it)
    for _ in range(3):
        it(torch.randn(1, 3, 224, 224))
    it = quantization.convert(it)
    quantize, it.quant, it.dequant = it.quant, nn.Identity(), nn.Identity()
    return it, (last(quantize(input)),)


def try_case(name, module, arguments):
    """What is wrong, or None."""
    module = module if isinstance(module, nn.Module) else Function(module)
    with torch.no_grad():
        module.eval()
        expected = module(*arguments)
        traced = torch.jit.trace(module, arguments)
        compiled = nnapi.convert_model_to_nnapi(traced, arguments)
        found = compiled(*arguments)
        times = [fastest(it, arguments) for it in (traced, compiled)]
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}"
    if expected.is_quantized:
        off = (found.int_repr().int() - expected.int_repr().int()).abs()
        # A layer may round another way, and what follows it then sees another step.
        most = 1 if len(list(module.modules())) < 5 else 12
        varied = expected.int_repr().unique().numel()
        note = f"at most {off.max()} steps off, {(off == 0).float().mean():.3f} the same, {varied} different values"
        wrong = off.max() > most or varied < 10
    else:
        off = (found - expected).abs().max().item() / max(1.0, expected.abs().max().item())
        note, wrong = f"{off:.1e} off", not off <= 1e-4
    print(f"{'wrong' if wrong else 'same ':5} {name}: {note}; PyTorch {times[0]:.3f} ms, NNAPI {times[1]:.3f} ms")
    return wrong


def fastest(call, arguments):
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main():
    bad = 0
    for name, module, arguments in cases():
        try:
            bad += bool(try_case(name, module, arguments))
        except Exception as error:
            bad += 1
            print(f"error {name}: {' '.join(str(error).split())[-300:]}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
