"""``python -m nnhal`` is the program ``nnhal``."""

import os
import sys

from ._package import program_path

if __name__ == "__main__":
    program = str(program_path())
    os.execv(program, [program, *sys.argv[1:]])
