#!/usr/bin/env python3
"""Runs the wake word detectors of PyPI with their own library and with ours, and compares probabilities.

    tests/tflite_c/wakewords.py LIBRARY        # in a venv with requirements.txt

The programs are unchanged: each takes the path of the library as an argument. They hear words that espeak-ng
speaks (where it is installed), and noise.

Float models must give the same probabilities. The quantized, streaming ones of pymicro-wakeword must give
exactly those of LiteRT's reference kernels: the optimized kernels of TensorFlow Lite round a few results by
one step otherwise, which the states of such a model carry on, so LiteRT's own kernels differ among themselves.
Whether a word is detected must be the same as with its own library.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np
import pymicro_wakeword
import pyopen_wakeword
from ai_edge_litert.interpreter import Interpreter, OpResolverType

RATE = 16000
# Float models differ in the last digits.
MOST_OF_FLOATS = 1e-4


def noise(seconds, seed):
    draws = np.random.default_rng(seed)
    loudness = np.repeat(draws.uniform(10, 6000, int(seconds * 10)), RATE // 10)
    return (draws.standard_normal(len(loudness)) * loudness).clip(-32768, 32767).astype(np.int16)


def spoken(text, folder):
    """As espeak-ng says it, at 16 kHz, with quiet noise around."""
    path = os.path.join(folder, "speech.wav")
    subprocess.run(["espeak-ng", "-v", "en-us", "-s", "130", "-w", path, text], check=True)
    with wave.open(path) as file:
        rate, frames = file.getframerate(), file.readframes(file.getnframes())
    samples = np.frombuffer(frames, np.int16).astype(np.float64)
    times = np.arange(int(len(samples) * RATE / rate)) * rate / RATE
    speech = np.interp(times, np.arange(len(samples)), samples)
    quiet = noise(1, 7) / 100
    return np.concatenate([quiet, speech, quiet]).astype(np.int16)


def quantized(detector, audio, run):
    """Every probability of a quantized detector whose model `run` runs."""
    features = pymicro_wakeword.MicroWakeWordFeatures()
    waiting, all = [], []
    for begin in range(0, len(audio), 1600):
        for feature in features.process_streaming(audio[begin:begin + 1600].tobytes()):
            waiting.append(feature)
            if len(waiting) == detector.stride:
                steps = np.concatenate(waiting, axis=1) / detector.input_scale
                values = np.round(steps + detector.input_zero_point).astype(detector.input_dtype)
                real = run(values).astype(np.float32) - detector.output_zero_point
                all.append(float(real.item() * detector.output_scale))
                waiting.clear()
    return all


def reference(model, audio):
    """With LiteRT's reference kernels."""
    detector = pymicro_wakeword.MicroWakeWord.from_builtin(model)
    interpreter = Interpreter(detector.model_path.decode(),
                              experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    taken, given = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

    def run(values):
        interpreter.set_tensor(taken["index"], values.reshape(taken["shape"]))
        interpreter.invoke()
        return interpreter.get_tensor(given["index"])

    return quantized(detector, audio, run)


def micro(model, library, audio):
    """Every probability of the program itself, and what it decides each time."""
    detector = pymicro_wakeword.MicroWakeWord.from_builtin(model, libtensorflowlite_c_path=library)
    window, cutoff, recent = detector.sliding_window_size, detector.probability_cutoff, []
    # Its own mean of one is the probability itself; the mean of the window is taken here.
    detector.sliding_window_size = 1
    features = pymicro_wakeword.MicroWakeWordFeatures()
    all, decisions = [], []
    for begin in range(0, len(audio), 1600):
        for feature in features.process_streaming(audio[begin:begin + 1600].tobytes()):
            detector._probabilities.clear()
            is_run = len(detector._features) + 1 >= detector.stride
            probability = detector.process_streaming_prob(feature)
            if is_run:
                all.append(probability)
                recent = (recent + [probability])[-window:]
                decisions.append(len(recent) == window and sum(recent) / window > cutoff)
    detector.close()
    return all, decisions


def open_word(model, library, audio):
    """Every probability of the detector with three models one after the other."""
    detector = pyopen_wakeword.OpenWakeWord.from_builtin(model, libtensorflowlite_c_path=library)
    features = pyopen_wakeword.OpenWakeWordFeatures.from_builtin(libtensorflowlite_c_path=library)
    all = []
    for begin in range(0, len(audio), 1280):
        for feature in features.process_streaming(audio[begin:begin + 1280].tobytes()):
            all.extend(detector.process_streaming(feature))
    return all


def own_library(package):
    return os.path.join(os.path.dirname(package.__file__), "lib", "libtensorflowlite_c.so")


def main():
    library = os.path.abspath(sys.argv[1])
    sounds = {"noise": noise(6, 1)}
    if shutil.which("espeak-ng"):
        with tempfile.TemporaryDirectory() as folder:
            for text in ("okay nabu", "hey jarvis", "hey mycroft", "alexa"):
                sounds[text] = spoken(text, folder)
    else:
        print("espeak-ng is not installed: noise only")
    failures = 0
    for model in pymicro_wakeword.Model:
        for sound, audio in sounds.items():
            if sound not in ("noise", model.value.replace("_", " ")):
                continue
            theirs, expected = micro(model, own_library(pymicro_wakeword), audio)
            ours, found = micro(model, library, audio)
            exact = reference(model, audio)
            is_right = ours == exact and any(found) == any(expected) and len(ours) == len(theirs) > 50
            failures += not is_right
            print(f"{'ok  ' if is_right else 'FAIL'} pymicro-wakeword {model.value} hears {sound}: {len(ours)} "
                  f"probabilities, up to {max(ours):.4f}, detected {sum(found)} times, with its own library "
                  f"{sum(expected)}; differences at most: {worst(ours, exact)} from LiteRT's reference kernels, "
                  f"{worst(ours, theirs):.4f} from its own library, which is {worst(theirs, exact):.4f} from those")
    for model in pyopen_wakeword.Model:
        for sound, audio in sounds.items():
            if sound not in ("noise", model.value.replace("_", " ")):
                continue
            begin = time.monotonic()
            theirs = open_word(model, own_library(pyopen_wakeword), audio)
            middle = time.monotonic()
            ours = open_word(model, library, audio)
            end = time.monotonic()
            is_right = len(ours) == len(theirs) > 50 and worst(ours, theirs) <= MOST_OF_FLOATS
            failures += not is_right
            print(f"{'ok  ' if is_right else 'FAIL'} pyopen-wakeword {model.value} hears {sound}: {len(ours)} "
                  f"probabilities, up to {max(ours):.4f}, difference at most {worst(ours, theirs):.2g}; its own "
                  f"library takes {middle - begin:.2f} s, ours {end - middle:.2f} s")
    sys.exit(failures > 0)


def worst(one, other):
    return max(abs(a - b) for a, b in zip(one, other))


if __name__ == "__main__":
    main()
