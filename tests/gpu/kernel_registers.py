#!/usr/bin/env python3
"""Compiles the GPU kernels and compares the registers that each of them takes.

usage: kernel_registers.py [--write]

Every .cu file of models/gpu/kernels is compiled for three generations of GPUs, with
the flags of its folder: a warning is an error there, and so is a register that is
spilled to memory. Registers are compared with kernel_registers.txt, of one version of
nvcc; --write makes it anew. With another version only the names are compared."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDER = TOP / "models/gpu/kernels"
GOLDEN = pathlib.Path(__file__).with_suffix(".txt")
GENERATIONS = ["80", "90a", "100"]  # A100, H100, B200
DEADLINE_S = 200  # of one file
ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'|Used (\d+) registers")
BODY = re.compile(r"run_body<(.*)>\(")


def find_nvcc():
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") or shutil.which("nvcc", path=f"{cuda}/bin")


def compile_file(nvcc, source, folder):
    """What ptxas says of a file; ends the program where it is refused."""
    command = [nvcc, "-std=c++20", "-O3", *(FOLDER / "nvcc_flags.txt").read_text().split(),
               "-Xptxas=-v", f"-I{TOP}", "-c", source, "-o", f"{folder}/{source.stem}.o"]
    for name in GENERATIONS:
        command.append(f"-gencode=arch=compute_{name},code=sm_{name}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines()
                 if "error" in line or "spill" in line]
        sys.exit(f"{source.relative_to(TOP)}:\n" + "\n".join(lines[:20]))
    return done.stdout + done.stderr


def short_names(mangled):
    """Of run_body<troupe::models::gpu::RmsNorm<float> >(..): RmsNorm<float>."""
    plain = subprocess.run(["c++filt"], input="\n".join(mangled), text=True,
                           capture_output=True, check=True).stdout.splitlines()
    names = [BODY.search(name)[1].replace("troupe::models::", "").replace("gpu::", "")
             for name in plain]
    return dict(zip(mangled, [name.replace(" ", "") for name in names]))


def registers_of(output):
    """{kernel: {generation: registers}} of what ptxas says of one file."""
    found, name, generation = {}, "", ""
    for entry, of, registers in ENTRY.findall(output):
        if entry:
            name, generation = entry, of
        else:
            found.setdefault(name, {})[generation] = registers
    names = short_names(list(found))
    return {names[mangled]: numbers for mangled, numbers in found.items()}


def table_of(nvcc):
    """The lines of the golden file."""
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True,
                             check=True).stdout
    kernels = {}
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sources = sorted(FOLDER.glob("*.cu"))
        for output in pool.map(lambda one: compile_file(nvcc, one, folder), sources):
            kernels |= registers_of(output)
    yield f"nvcc {re.search(r'V([0-9.]+)', version)[1]}"
    yield "kernel " + " ".join(f"sm_{name}" for name in GENERATIONS)
    for name, numbers in sorted(kernels.items()):
        yield " ".join([name, *(numbers[one] for one in GENERATIONS)])


def main():
    nvcc = find_nvcc()
    if not nvcc:
        print("skipped: no nvcc on this machine: GPU kernels were not compiled")
        return
    table = list(table_of(nvcc))
    if "--write" in sys.argv:
        GOLDEN.write_text("\n".join(table) + "\n")
        return
    golden = GOLDEN.read_text().splitlines()
    if table[0] != golden[0]:  # its own choice of registers
        print(f"{table[0]}, not {golden[0]}: compares names alone")
        table, golden = ([line.split()[0] for line in lines] for lines in (table, golden))
    differences = [f"was {line}" for line in golden if line not in table]
    differences += [f"now {line}" for line in table if line not in golden]
    if differences:
        sys.exit("\n".join(differences) + "\nif that is meant: tests/gpu/kernel_registers.py --write")
    print(f"{len(table) - 2} kernels for {len(GENERATIONS)} generations, no spills")


if __name__ == "__main__":
    main()
