"""What the measurements of servers and of Ray share: times of processes, and the arguments of a server to compare with."""

import argparse
import os
import pathlib


def processor_times(process):
    """Seconds of processor that a process and those that it started have had, by process."""
    parents, times = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue  # It has ended.
        parents[int(path.parent.name)] = int(fields[1])
        times[int(path.parent.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family, found = set(), {process}
    while found:
        family |= found
        found = {one for one, parent in parents.items() if parent in found}
    return {it: times[it] for it in family if it in times}


def server_arguments(description):
    """How serve.py starts a server to compare with: MODEL PORT, instances, and threads of each."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("port", type=int)
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()
