#!/usr/bin/env python3
"""Runs the wake word detectors of PyPI with their own library and with ours, and compares probabilities.

    tests/tflite_c/wakewords.py LIBRARY        # in a venv with requirements.txt

The programs are unchanged: each takes the path of the library as an argument. They hear words that espeak-ng
speaks (where it is installed), and noise.
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

RATE = 16000
# Float models differ in the last digits; quantized ones may differ by a step of 1/256.
MOST_OF_FLOATS = 1e-3
MOST_OF_BYTES = 1 / 256 + 1e-6


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


def micro(model, library, audio):
    """Every probability of the quantized, streaming detector."""
    detector = pymicro_wakeword.MicroWakeWord.from_builtin(model, libtensorflowlite_c_path=library)
    features = pymicro_wakeword.MicroWakeWordFeatures()
    detector.sliding_window_size = 1
    all = []
    for begin in range(0, len(audio), 1600):
        for feature in features.process_streaming(audio[begin:begin + 1600].tobytes()):
            detector._probabilities.clear()
            all.append(detector.process_streaming_prob(feature))
    detector.close()
    return all


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
    programs = [("pymicro-wakeword", pymicro_wakeword, micro, MOST_OF_BYTES),
                ("pyopen-wakeword", pyopen_wakeword, open_word, MOST_OF_FLOATS)]
    for name, package, run, most in programs:
        theirs = own_library(package)
        for model in package.Model:
            for sound, audio in sounds.items():
                if sound != "noise" and sound.replace(" ", "_") != model.value:
                    continue
                begin = time.monotonic()
                expected = np.array(run(model, theirs, audio))
                middle = time.monotonic()
                found = np.array(run(model, library, audio))
                end = time.monotonic()
                same = expected.shape == found.shape
                worst = float(np.abs(expected - found).max()) if same and len(found) else None
                is_right = worst is not None and worst <= most
                failures += not is_right
                print(f"{'ok  ' if is_right else 'FAIL'} {name} {model.value} hears {sound}: {len(found)} "
                      f"probabilities, up to {expected.max(initial=0):.4f}, difference at most {worst}; "
                      f"{middle - begin:.2f} s, ours {end - middle:.2f} s")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
