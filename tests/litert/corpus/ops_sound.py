"""AudioSpectrogram and Mfcc, and NumericVerify: custom operators that LiteRT's interpreter has."""

import numpy as np
from flatbuffers import flexbuffers

from . import graph, judge
from .single import draw, random

LIMITS = dict(lower_frequency_limit=20, upper_frequency_limit=4000)


def spectrogram(name, shape, **options):
    def make():
        file = graph.File()
        main = file.graph()
        x, y = main.input("x", shape), main.tensor("y", (0, 0, 0))
        main.outputs(*main.op("CUSTOM:AudioSpectrogram", [x], [y],
                              custom_options=bytes(flexbuffers.Dumps(options))))
        runs = [judge.Run([draw(random(f"{name} {run}"), shape)]) for run in range(2)]
        return judge.Made(file.finish(), runs, "schema", "float32")
    return f"audio_spectrogram_{name}", make


def coefficients(name, shape, rate, **options):
    def make():
        file = graph.File()
        main = file.graph()
        x, y = main.input("x", shape), main.tensor("y", (0, 0, 0))
        rate_of = main.const("rate", np.array([rate], np.int32))
        main.outputs(*main.op("CUSTOM:Mfcc", [x, rate_of], [y],
                              custom_options=bytes(flexbuffers.Dumps(options))))
        # Squared magnitudes: with some that are 0.
        value = np.maximum(draw(random(name), shape, -1, 40), 0)
        return judge.Made(file.finish(), [judge.Run([value])], "schema", "float32")
    return f"mfcc_{name}", make


def front_end():
    """Both, as speech models begin."""
    def make():
        file = graph.File()
        main = file.graph()
        x = main.input("sound", (16000, 1))
        between, y = main.tensor("spectrogram", (0, 0, 0)), main.tensor("y", (0, 0, 0))
        main.op("CUSTOM:AudioSpectrogram", [x], [between], custom_options=bytes(
            flexbuffers.Dumps(dict(window_size=480, stride=320, magnitude_squared=True))))
        main.outputs(*main.op(
            "CUSTOM:Mfcc", [between, main.const("rate", np.array([16000], np.int32))], [y],
            custom_options=bytes(flexbuffers.Dumps(dict(LIMITS, filterbank_channel_count=40,
                                                        dct_coefficient_count=13)))))
        return judge.Made(file.finish(), [judge.Run([draw(random("front end"), (16000, 1))])], "schema",
                          "float32")
    return "sound_front_end", make


def verified(source, quant):
    def make():
        file = graph.File()
        main = file.graph()
        x, expected = main.input("x", (2, 3, 5), source, quant), main.input("expected", (2, 3, 5))
        y = main.tensor("y", (2, 3, 5))
        options = bytes(flexbuffers.Dumps(dict(tolerance=5.0, log_if_failed=False)))
        main.outputs(*main.op("CUSTOM:NumericVerify", [x, expected], [y], custom_options=options))
        value = draw(random(source), (2, 3, 5), -4, 4)
        near = (value + draw(random("near"), (2, 3, 5), -0.1, 0.1)).astype(np.float32)
        value = quant.quantize(value, source) if quant else value.astype(source)
        return judge.Made(file.finish(), [judge.Run([value, near])], "schema", source)
    return f"numeric_verify_{source}", make


def all_cases():
    yield spectrogram("of_speech", (4000, 1), window_size=480, stride=320, magnitude_squared=True)
    yield spectrogram("magnitudes", (700, 1), window_size=256, stride=100, magnitude_squared=False)
    yield spectrogram("of_channels", (300, 3), window_size=100, stride=33, magnitude_squared=True)
    yield spectrogram("of_one_window", (64, 1), window_size=64, stride=1000, magnitude_squared=True)
    yield spectrogram("of_no_window", (63, 2), window_size=64, stride=10, magnitude_squared=True)
    yield spectrogram("of_the_shortest_window", (9, 2), window_size=2, stride=3, magnitude_squared=False)
    forty = dict(filterbank_channel_count=40, dct_coefficient_count=13)
    yield coefficients("of_speech", (1, 12, 257), 16000, **LIMITS, **forty)
    yield coefficients("of_channels", (3, 4, 129), 8000, **LIMITS, **forty)
    yield coefficients("all", (1, 5, 65), 44100, lower_frequency_limit=300, upper_frequency_limit=9000,
                       filterbank_channel_count=12, dct_coefficient_count=12)
    # As wide as half of the rate, narrower than a frequency is from the next, beyond what the spectrum has.
    yield coefficients("to_the_end", (1, 3, 33), 8000, lower_frequency_limit=0, upper_frequency_limit=4000,
                       filterbank_channel_count=4, dct_coefficient_count=3)
    yield coefficients("of_narrow_filters", (1, 3, 33), 16000, **LIMITS, **forty)
    yield coefficients("beyond_the_end", (1, 3, 33), 4000, **LIMITS, **forty)
    yield front_end()
    yield verified("int8", graph.Quant.per_tensor(0.05, -5))
    yield verified("uint8", graph.Quant.per_tensor(0.05, 120))
    yield verified("int16", graph.Quant.per_tensor(0.0005, 0))
    yield verified("float16", None)
