"""What the wheel carries beside the module: the program, and the C library."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from ._errors import Error

_FOLDER = Path(__file__).parent


def libneuralnetworks_path() -> Path:
    """Where ``libneuralnetworks.so`` is: the Neural Networks API of Android's NDK."""
    return _existing(_FOLDER / "lib" / "libneuralnetworks.so")


def include_path() -> Path:
    """The folder with the headers of ``libneuralnetworks.so``."""
    return _existing(_FOLDER / "include")


def program_path() -> Path:
    """Where the program ``nnhal`` is."""
    name = "nnhal"
    folders = [sysconfig.get_path("scripts"), os.path.join(sys.prefix, "bin")]
    user = sysconfig.get_preferred_scheme("user")
    folders.append(sysconfig.get_path("scripts", scheme=user))
    # `pip install --target` puts programs beside packages.
    folders.append(str(_FOLDER.parent / "bin"))
    for folder in folders:
        path = Path(folder) / name
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise Error(f"the program {name} is in none of: {', '.join(folders)}")
    return Path(found)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise Error(f"{path} is not there: this is not an installed wheel")
    return path
