"""What the tests share: models of the repository, and small ones that are made here."""

import pathlib

import numpy as np
import pytest

import flatfile

ROOT = pathlib.Path(__file__).parents[3]
DIGITS = ROOT / "assets/digits/digits_int8.tflite"
# A variable, and signatures of two subgraphs that read and change it.
VARIABLES = ROOT / "crates/nnhal/tests/data/variables_of_signatures.tflite"


@pytest.fixture(scope="session")
def digits_path():
    return DIGITS


@pytest.fixture
def digit():
    """A seven, in real numbers from 0 to 1: rows of a scan of 8 by 8 pixels."""
    rows = ["  ####  ", "  ####  ", "    ##  ", "   ###  ", "  ####  ", "   ##   ", "  ##    ", "  ##    "]
    return np.array([[float(cell == "#") for cell in row] for row in rows], np.float32)[None, ..., None]


@pytest.fixture(scope="session")
def add_bytes():
    """y = a + b, float32 [1, 4]."""
    return flatfile.add([1, 4])


@pytest.fixture(scope="session")
def open_bytes():
    """y = a + b, whose first length is open."""
    return flatfile.add([1, 4], signature=[-1, 4])
