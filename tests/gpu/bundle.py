"""Packs first light for a machine with a GPU that has Python and torch, but neither a
network nor the libraries that Debian has: programs without debug information, the
libraries that they load but libtorch and NVIDIA's (that machine's Python has them),
golden data and scripts.

    tests/gpu/bundle.sh OUT.tar.gz [--build DIR]      default: build-cuda

The archive holds one folder, first_light, with README.txt."""
import argparse
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime/python"))
# pylint: disable=wrong-import-position
from build_wheels import needed_glibc
from bundle import licence_of, loaded_by

MOST_BYTES = 60_000_000
PT_DYNAMIC, DT_PATHS = 2, (15, 29)  # of ELF; RPATH, RUNPATH
# below the build folder; net_test reads stand-ins that are left here
PROGRAMS = ("troupe", "troupe-bench", "tiny_data", "tests/models_test")
OF_NVCC = ("tests/gpu/gpu_kernels_test",)  # where the build has it
READ = ("tests/gpu", "tests/golden/data", "tests/bench/cards.json", "tests/e2e/support.py",
        "examples/tiny/ppo.yaml", "examples/tiny/sft.yaml", "examples/tiny/plans", "LICENSE")
README = """First light of Troupe {commit}, made from {build}.

    tar xzf THIS_FILE && cd first_light
    ./first_light.sh              one GPU: ten minutes at most
    ./first_light_many.sh         two to eight GPUs of this machine
    ./first_light.sh --list       the steps
    ./first_light.sh --rehearse   all of them on the CPU, with small models

Needs Linux on x86-64 with glibc 2.{glibc} or newer, Python 3.9 or newer with torch
{torch}{build_of_torch} (`python3 -c "import torch"`: libtorch and NVIDIA's libraries are taken from it;
PYTHON=FILE names another Python){cuda}. Nothing is installed or fetched.

Logs, and first_light.json with all figures, go to ./first_light_results. Exit code 0: no
step was red; 1: one was, and those after it did not run; 77: there is no GPU.
lib/LICENCES.txt has the licences of the libraries in lib.
"""
START = """#!/bin/sh
# {what} (README.txt)
here=$(cd "$(dirname "$0")" && pwd)
exec "${{PYTHON:-python3}}" -B "$here/tests/gpu/first_light.py" {words}"$@"
"""
MANY = '--gpus "$(n=$(nvidia-smi -L 2>/dev/null | grep -c ^GPU); ' \
       'echo $((n < 2 ? 2 : n > 8 ? 8 : n)))" '


def strip(file, to):
    """Without debug information, and without the folders of the machine that built it,
    which would be searched before LD_LIBRARY_PATH."""
    subprocess.run(["strip", "-o", to, file], check=True)
    data = bytearray(to.read_bytes())
    first, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for header in range(first, first + size * count, size):
        if struct.unpack_from("<I", data, header)[0] == PT_DYNAMIC:
            begin, = struct.unpack_from("<Q", data, header + 8)
            length, = struct.unpack_from("<Q", data, header + 32)
            entries = [data[at:at + 16] for at in range(begin, begin + length, 16)]
            kept = [each for each in entries
                    if struct.unpack_from("<Q", each)[0] not in DT_PATHS]
            data[begin:begin + length] = b"".join(kept).ljust(length, b"\0")
    to.write_bytes(data)


def torch_version():
    header = ROOT / ".deps/wheels/torch/include/torch/headeronly/version.h"
    if not header.is_file():
        return "2.11"
    parts = re.findall(r"#define TORCH_VERSION_M\w+ (\d+)", header.read_text())
    return ".".join(parts[:2])


def copy(path, folder):
    """A file or folder below the root to the same place below `folder`."""
    to = folder / path
    to.parent.mkdir(parents=True, exist_ok=True)
    if (ROOT / path).is_dir():
        shutil.copytree(ROOT / path, to, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(ROOT / path, to)


def commit():
    said = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                          capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def starter(folder, name, what, words):
    file = folder / name
    file.write_text(START.format(what=what, words=words))
    file.chmod(0o755)


def fill(folder, build):
    """Writes everything to `folder`; returns the names of programs and libraries."""
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True)
    libraries = {}
    programs = [*PROGRAMS, *(each for each in OF_NVCC if (build / each).is_file())]
    for program in programs:
        strip(build / program, folder / "bin" / pathlib.Path(program).name)
        libraries |= loaded_by(build / program)
    licences = []
    for name, file in sorted(libraries.items()):
        strip(file, folder / "lib" / name)
        licences.append(f"##### {name}\n\n{licence_of(file)}")
    (folder / "lib/LICENCES.txt").write_text("\n".join(licences))
    for path in READ:
        copy(path, folder)
    (folder / "COMMIT").write_text(commit() + "\n")
    starter(folder, "first_light.sh", "First light on one GPU", "")
    starter(folder, "first_light_many.sh", "First light on two to eight GPUs", MANY)
    loads = subprocess.run(["ldd", build / "troupe"], capture_output=True, text=True,
                           check=True).stdout
    on_gpus = "libtorch_cuda" in loads
    cuda = ",\nand a driver of CUDA 13 (580 or newer)" if on_gpus else \
        ".\nThese programs were built without CUDA: they only rehearse"
    (folder / "README.txt").write_text(README.format(
        commit=commit(), build=build.name, glibc=needed_glibc(folder),
        torch=torch_version(), build_of_torch="+cu130" if on_gpus else "", cuda=cuda))
    return programs, sorted(libraries)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-cuda")
    asked = parser.parse_args()
    missing = [name for name in PROGRAMS if not (asked.build / name).is_file()]
    if missing:
        raise SystemExit(f"bundle: {asked.build} has no {', '.join(missing)}; build them, or "
                         "give --build DIR")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "first_light"
        programs, libraries = fill(folder, asked.build.resolve())
        with tarfile.open(asked.out, "w:gz") as archive:
            archive.add(folder, "first_light")
    size = asked.out.stat().st_size
    print(f"{asked.out}: {size / 1e6:.1f} MB, {len(programs)} programs, "
          f"{len(libraries)} libraries")
    if size > MOST_BYTES:
        raise SystemExit(f"bundle: more than {MOST_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
