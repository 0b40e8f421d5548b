"""What the parts of make_golden.py share: seeds, files, ragged batches."""
import hashlib
import json
import os
import pathlib
import shutil

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

SEED = 4711
PACKAGES = ("torch", "transformers", "trl", "peft", "tokenizers", "safetensors", "jinja2")


def quiet():
    """One thread and no chatter: the same numbers on each run of one machine."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)


def versions():
    import importlib.metadata

    return {name: importlib.metadata.version(name) for name in PACKAGES}


def generator(*names):
    """A generator that depends on the names alone, so cases can be added anywhere."""
    digest = hashlib.sha256("/".join(str(x) for x in (SEED, *names)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:4], "little"))


def normal(shape, g, scale=1.0):
    return torch.randn(shape, generator=g) * scale


def ints(low, high, count, g):
    """`count` whole numbers of [low, high)."""
    return torch.randint(low, high, (count,), generator=g)


def cu(lengths):
    return torch.tensor([0, *[int(n) for n in lengths]]).cumsum(0)


def split(packed, lengths):
    return list(torch.split(packed, [int(n) for n in lengths]))


def fresh(*parts):
    folder = pathlib.Path(*parts)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def save(path, tensors):
    save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()}, str(path))
    os.chmod(path, 0o644)


def load(path):
    return load_file(str(path))


def write_json(path, value):
    text = json.dumps(value, indent=1, ensure_ascii=False)
    pathlib.Path(path).write_text(text + "\n", encoding="utf-8")


def write_lines(path, rows):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def describe(folder, summary, **meta):
    write_json(folder / "meta.json", {"summary": summary, **meta})


def difference(a, b):
    """The largest difference; infinite where only one of both is finite."""
    a, b = a.double(), b.double()
    finite = torch.isfinite(a)
    if not torch.equal(finite, torch.isfinite(b)):
        return float("inf")
    return float((a[finite] - b[finite]).abs().max()) if finite.any() else 0.0


def short(number):
    return float(f"{number:.3g}")


def fill(model, g, std=0.2, spread=0.5, embedding_std=None, one_plus=False):
    """Large random weights, so that a missing norm, bias or mask shows at once.

    Matrices and biases N(0, std), norm weights 1 +- spread (0 +- spread where the
    family multiplies with 1 + w)."""
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            is_norm = p.dim() == 1 and name.endswith("weight")
            if is_norm:
                middle = 0.0 if one_plus else 1.0
                p.copy_(middle + spread * (2 * torch.rand(p.shape, generator=g) - 1))
            elif embedding_std is not None and "embed" in name:
                p.copy_(normal(p.shape, g, embedding_std))
            else:
                p.copy_(normal(p.shape, g, std))
    return model


def store(model, folder, **options):
    """save_pretrained without what only some versions write."""
    model.save_pretrained(folder, **options)
    for path in pathlib.Path(folder).iterdir():
        os.chmod(path, 0o644)
