"""Copies programs and the libraries that they load into one folder that can lie
anywhere: bin/ and lib/. Left to the machine are the C and C++ libraries, which any
system with torch has, and libtorch with its own, which the package torch has beside
us (`$ORIGIN/../../torch/lib` from site-packages/troupe/bin)."""
import argparse
import pathlib
import re
import shutil
import subprocess

# of every Linux system; two copies of them in a process would not be alike
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+)\.so|ld-linux|linux-vdso")
TORCH = re.compile(r"/torch/lib/|/nvidia/")
LOADED = re.compile(r"^\s*(\S+) => (\S+)", re.M)
# RPATH, not RUNPATH: it also serves the libraries that a library loads
PROGRAM_PATH = "$ORIGIN/../lib:$ORIGIN/../../torch/lib"


def loaded_by(program):
    """{name: path} of the libraries to bring along."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True,
                          check=True).stdout
    found = dict(LOADED.findall(said))
    missing = [name for name, path in found.items() if path == "not"]
    if missing:
        raise SystemExit(f"{program} loads what is not here: {', '.join(missing)}")
    return {name: pathlib.Path(path).resolve() for name, path in found.items()
            if not SYSTEM.match(name) and not TORCH.search(path)}


def licence_of(library):
    """The licence that a Debian package has for a file, which dpkg may know by its
    path of before /lib was /usr/lib."""
    for name in (str(library), str(library).removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True,
                              text=True, check=False)
        package = done.stdout.partition(":")[0]
        text = pathlib.Path(f"/usr/share/doc/{package}/copyright")
        if done.returncode == 0 and text.is_file():
            return text.read_text(errors="replace")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--patchelf", default="patchelf")
    parser.add_argument("--strip", default="strip")
    asked = parser.parse_args()
    shutil.rmtree(asked.out, ignore_errors=True)
    (asked.out / "bin").mkdir(parents=True)
    (asked.out / "lib").mkdir()

    def place(file, to, path, *words):
        subprocess.run([asked.strip, "-o", to, file], check=True)
        subprocess.run([asked.patchelf, *words, "--set-rpath", path, to],
                       check=True)

    libraries, licences = {}, []
    for program in asked.programs:
        place(program, asked.out / "bin" / program.name, PROGRAM_PATH,
              "--force-rpath")
        libraries |= loaded_by(program)
    for name, file in sorted(libraries.items()):
        place(file, asked.out / "lib" / name, "$ORIGIN")
        licences.append(f"##### {name}\n\n{licence_of(file)}")
    (asked.out / "lib/LICENCES.txt").write_text("\n".join(licences))


if __name__ == "__main__":
    main()
