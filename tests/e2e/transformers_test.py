"""Folders that `troupe convert` writes load in Hugging Face's transformers and
give the golden logits. Needs a Python with transformers:
TROUPE_TRANSFORMERS_PYTHON, or that of `make golden`; without one it is skipped."""
import os
import shutil
import subprocess
import sys
import unittest

from support import SOURCE, Case

GOLDEN = SOURCE / "tests/golden/data/models"

# One process for all folders: it takes longer to start than to check one.
CHECK = """
import sys, torch, transformers
from safetensors.torch import load_file

def difference(folder, golden):
    # eager: scaled_dot_product_attention leaves out the soft caps of Gemma 2
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager",
        output_loading_info=True)
    assert not info["missing_keys"], info["missing_keys"]
    assert not info["unexpected_keys"], info["unexpected_keys"]
    model.eval()
    io = load_file(golden + "/io.safetensors")
    cu = io["cu_seqlens"].tolist()
    worst = 0.0
    with torch.no_grad():
        for begin, end in zip(cu, cu[1:]):
            logits = model(io["tokens"][begin:end][None]).logits[0]
            worst = max(worst, (logits - io["logits"][begin:end]).abs().max().item())
    return worst

for folder, golden in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        print("differs by", difference(folder, golden), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\\n", " "), flush=True)
"""


PEFT_CHECK = """
import sys, torch, transformers, peft
base, adapters, merged = sys.argv[1:4]
load = lambda folder: transformers.AutoModelForCausalLM.from_pretrained(
    folder, dtype=torch.float32, attn_implementation="eager").eval()
ids = torch.arange(3, 23)[None]
with torch.no_grad():
    plain = load(base)(ids).logits
    adapted = peft.PeftModel.from_pretrained(load(base), adapters).eval()
    apart = adapted(ids).logits
    whole = load(merged)(ids).logits
assert (apart - plain).abs().max() > 1e-3, "the adapters change nothing"
assert (apart - whole).abs().max() < 1e-4, (apart - whole).abs().max()
"""


def python_with_transformers():
    for python in (os.environ.get("TROUPE_TRANSFORMERS_PYTHON", sys.executable),
                   SOURCE / ".deps/golden/bin/python"):
        if shutil.which(python) and subprocess.run(
                [python, "-c", "import transformers, torch"],
                capture_output=True, check=False).returncode == 0:
            return python
    return None


class Transformers(Case):
    def setUp(self):
        super().setUp()
        self.python = python_with_transformers()
        if self.python is None:
            self.skipTest("no Python with transformers; set "
                          "TROUPE_TRANSFORMERS_PYTHON")

    def check_folders(self, written, tolerance=1e-4):
        """written: {folder: golden model whose logits it has}."""
        pairs = [str(path) for out, name in written.items()
                 for path in (self.folder / out, GOLDEN / name)]
        done = subprocess.run([self.python, "-c", CHECK, *pairs],
                              capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), len(written), done.stderr[-800:])
        for out, line in zip(written, lines):
            with self.subTest(out):
                self.assertTrue(line.startswith("differs by "), line[-800:])
                self.assertLessEqual(float(line.split()[-1]), tolerance)

    def test_every_family_loads_sharded_with_the_golden_logits(self):
        names = ("gemma", "gemma2", "gpt2", "granite", "llama_gqa",
                 "llama_rope_llama3", "llama_tied_sharded", "ministral",
                 "mistral_window", "mixtral", "phi3", "phi4_longrope", "qwen2",
                 "qwen2_yarn", "qwen3", "qwen3_moe", "smollm3", "gemma3",
                 "olmo2", "olmo3", "gpt_neox", "glm", "glm4", "glm4_moe",
                 "olmoe")
        for name in names:
            self.troupe("convert", "--model", str(GOLDEN / name), "--out",
                        name, "--max-shard-size", "10KB")
            self.assertTrue((self.folder / name
                             / "model.safetensors.index.json").exists())
        self.check_folders({name: name for name in names})

    def test_bf16_weights_load_and_convert_back_exactly(self):
        name = "llama_bf16_weights"
        self.troupe("convert", "--model", str(GOLDEN / name), "--out", "half",
                    "--dtype", "bf16")
        self.check_folders({"half": name})

    def test_peft_loads_the_adapters_of_a_checkpoint(self):
        if subprocess.run([self.python, "-c", "import peft"],
                          capture_output=True, check=False).returncode != 0:
            self.skipTest("no peft beside transformers")
        self.troupe(*self.ppo("models.actor.lora.rank=4",
                              "models.actor.optimizer.lr=1.0e-2"))
        adapters = self.latest("ppo") / "actor"
        self.troupe("convert", "--model", adapters, "--out", "merged")
        done = subprocess.run(
            [self.python, "-c", PEFT_CHECK, self.folder / "data/base",
             adapters, self.folder / "merged"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-800:])


if __name__ == "__main__":
    unittest.main()
