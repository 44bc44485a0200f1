#!/usr/bin/env python3
"""Makes a Python environment's engines run as on a processor without AVX-512.

    python hide_avx512.py ENVIRONMENT

LiteRT (XNNPACK) and ONNX Runtime have no setting for this, and OpenVINO's holds for oneDNN, but not for the
products of floats that it takes from MLAS. All ask the processor what it can do by the instruction CPUID. This program
overwrites each CPUID in the environment's libraries by UD2, and compiles hide_avx512.c to
ENVIRONMENT/libhide_avx512.so, which answers in its place. From then on the environment only works with
LD_PRELOAD=ENVIRONMENT/libhide_avx512.so: take one that is made for this. Needs gcc and objdump.
"""

import pathlib
import subprocess
import sys

PACKAGES = ("ai_edge_litert", "onnxruntime", "openvino", "numpy")
CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"


def sections(library):
    """(address, size, place in the file) of the sections that hold code."""
    lines = subprocess.run(["objdump", "-h", library], capture_output=True, text=True, check=True).stdout.splitlines()
    for line, flags in zip(lines, lines[1:]):
        fields = line.split()
        if fields and fields[0].isdigit() and "CODE" in flags:
            yield int(fields[3], 16), int(fields[2], 16), int(fields[5], 16)


def replace(library):
    """Overwrites each CPUID of a library; returns how many there were."""
    code = list(sections(library))
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True,
                             check=True).stdout
    data, count = bytearray(library.read_bytes()), 0
    for line in listing.splitlines():
        address, _, instruction = line.partition(":")
        if instruction.strip() != "cpuid":
            continue
        address = int(address, 16)
        place = next(at + address - start for start, size, at in code if start <= address < start + size)
        assert data[place:place + 2] == CPUID, f"{library}: no CPUID at {address:#x}"
        data[place:place + 2] = UD2
        count += 1
    if count:
        library.write_bytes(data)
    return count


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    environment = pathlib.Path(sys.argv[1])
    preload = environment / "libhide_avx512.so"
    source = pathlib.Path(__file__).with_name("hide_avx512.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(preload)], check=True)
    found = 0
    for package in PACKAGES:
        for folder in environment.glob(f"lib/python*/site-packages/{package}"):
            for library in sorted(folder.rglob("*.so*")):
                count = replace(library)
                found += count
                if count:
                    print(f"{library.relative_to(environment)}: {count} replaced")
    if not found:
        sys.exit(f"{environment}: no CPUID found in {', '.join(PACKAGES)}; replaced before?")
    print(f"use it with LD_PRELOAD={preload.resolve()}")


if __name__ == "__main__":
    main()
