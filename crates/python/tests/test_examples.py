"""The examples run, and print what they promise."""

import re
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "name, promised",
    [
        ("classify.py", r"^(4[34]\d|450) of 450 digits are read right"),
        ("stand_in.py", r"^StatefulPartitionedCall_1:0 \[\["),
        ("threads.py", r"^100 runs, 1 different result\n +\d.*CONV_2D"),
    ],
)
def test_an_example_runs(name, promised, digits_path):
    command = [sys.executable, digits_path.parents[2] / "examples/python" / name, digits_path]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(promised, run.stdout), run.stdout
