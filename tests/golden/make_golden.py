#!/usr/bin/env python3
"""Makes the golden data of the repository, tests/golden/data (make golden).

usage: make_golden.py [--out DIR] [--only PART[,PART]] [--second DIR] [--python]

Values of transformers, torch, TRL, tokenizers and Jinja2 for small random models,
small tokenizers trained here, losses, samplers and whole training steps. Runs in a
Python environment of its own, .deps/golden (6 GB, made on first use from
requirements.txt). Nothing is fetched but these packages: weights come from seeds,
texts from texts.py. manifest.json says what made it."""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENT = ROOT / ".deps" / "golden"
PARTS = ["models", "gradients", "lora", "samplers", "rl", "policies", "training", "trl_losses",
         "preferences", "distillation", "tokenizing", "templates", "safetensors_files", "rows"]
LIMIT = 6_000_000  # bytes of all files


def environment():
    """The Python of .deps/golden with exactly what requirements.txt names."""
    wanted = (HERE / "requirements.txt").read_text()
    stamp = ENVIRONMENT / "requirements.txt"
    python = ENVIRONMENT / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"golden: installing {HERE / 'requirements.txt'} into {ENVIRONMENT} (6 GB)",
              file=sys.stderr)
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet",
                        "--disable-pip-version-check", "-r", HERE / "requirements.txt"],
                       check=True)
        stamp.write_text(wanted)
    return python


def manifest(out):
    from common import SEED, versions

    files = {}
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            files[str(path.relative_to(out))] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    size = sum((out / name).stat().st_size for name in files)
    if size > LIMIT:
        raise SystemExit(f"golden: {size} bytes are more than {LIMIT}")
    text = {"made_by": "tests/golden/make_golden.py", "seed": SEED, "python": sys.version.split()[0],
            "packages": versions(), "bytes": size, "sha256_16": files}
    (out / "manifest.json").write_text(json.dumps(text, indent=1) + "\n")
    print(f"golden: {len(files)} files, {size} bytes in {out}")


def make(out, only):
    from common import quiet

    quiet()
    out.mkdir(parents=True, exist_ok=True)
    for part in only or PARTS:
        begin = time.monotonic()
        print(part, flush=True)
        __import__(part).make(out)
        print(f"  {time.monotonic() - begin:.1f} s", flush=True)
    manifest(out)


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--out", type=pathlib.Path, default=HERE / "data")
    options.add_argument("--only", default="")
    options.add_argument("--second", type=pathlib.Path)
    options.add_argument("--python", action="store_true",
                         help="print the Python of the environment, and no more")
    given = options.parse_args()
    if given.python:
        print(environment())
        return
    if pathlib.Path(sys.prefix) != ENVIRONMENT:
        python = environment()
        os.execv(python, [str(python), "-B", *sys.argv])
    sys.path.insert(0, str(HERE))
    make(given.out.resolve(), [p for p in given.only.split(",") if p])
    if given.second:
        import policies  # noqa: F401, adds its formulas to those of rl
        import rl

        rl.compare(given.second)


if __name__ == "__main__":
    main()
