"""Parquet files: data sets of verl run as they are, and tables train as their rows."""
import json
import os
import subprocess
import unittest

from support import SOURCE, Case, read_rows

WRONG_INPUT = 2
PYTHON_PATH = os.pathsep.join(
    [str(SOURCE / ".deps/parquet"), os.environ.get("PYTHONPATH", "")])
HAS_PYARROW = subprocess.run(
    ["python3", "-c", "import pyarrow.parquet"], capture_output=True,
    env={**os.environ, "PYTHONPATH": PYTHON_PATH}).returncode == 0
if not HAS_PYARROW:
    print("skipped: no pyarrow on this machine (./setup.sh --parquet)")

# rows of standard input as a table, in groups of a few rows
WRITE = """
import json, sys
import pyarrow, pyarrow.parquet
rows = [json.loads(line) for line in sys.stdin]
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sys.argv[1],
                            row_group_size=7, compression="zstd")
"""
TEMPLATE = ("{% for m in messages %}{{ m['content'] }}{% endfor %}")
# with verl's arguments, and what verl gives them
SCORE = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert data_source == "openai/gsm8k", data_source
    assert extra_info["index"] == int(ground_truth), (extra_info, ground_truth)
    return {"score": float(len(solution_str)), "seen": 1}
"""


@unittest.skipUnless(HAS_PYARROW, "no pyarrow on this machine")
class Parquet(Case):
    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = PYTHON_PATH

    def table(self, name, rows):
        subprocess.run(["python3", "-c", WRITE, str(self.folder / name)],
                       input="\n".join(map(json.dumps, rows)), text=True,
                       check=True, env=self.environment)
        return name

    def verl_rows(self, split, count):
        """Rows as verl's examples/data_preprocess write them."""
        prompts = read_rows(self.folder / "data/prompts.jsonl")[:count]
        return [{"data_source": "openai/gsm8k",
                 "prompt": [{"role": "user", "content": row["prompt"]}],
                 "ability": "math",
                 "reward_model": {"style": "rule", "ground_truth": str(i)},
                 "extra_info": {"split": split, "index": i,
                                "question": row["prompt"]}}
                for i, row in enumerate(prompts)]

    def test_a_data_set_of_verl_runs_unchanged(self):
        model = self.folder / "chat"
        model.mkdir()
        for file in (self.folder / "data/base").iterdir():
            (model / file.name).write_bytes(file.read_bytes())
        file = model / "tokenizer_config.json"
        config = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(config | {"chat_template": TEMPLATE}))
        (self.folder / "score.py").write_text(SCORE)
        self.troupe(
            "train", "/dev/null", "workflow=grpo", "run.name=verl",
            "run.steps=2", "models.actor.path=chat",
            f"data.train={self.table('train.parquet', self.verl_rows('train', 24))}",
            f"eval.data={self.table('test.parquet', self.verl_rows('test', 6))}",
            "data.batch_size=6", "data.max_prompt_tokens=32", "rollout.n=2",
            "rollout.max_new_tokens=8", "reward.kind=python",
            "reward.file=score.py", "cluster.devices_per_node=1",
            "cluster.workers_per_node=1", "plan=single")
        line = self.metrics("verl")[2]
        self.assertEqual((line["reward/errors"], line["reward/seen/mean"]), (0, 1))
        self.assertIn("val-core/openai/gsm8k/reward/mean@1", line)
        samples = read_rows(self.run_folder("verl") / "samples.jsonl")
        prompts = {row["extra_info"]["question"]
                   for row in self.verl_rows("train", 24)}
        self.assertLessEqual({sample["prompt"] for sample in samples}, prompts)

    def test_a_table_trains_as_its_rows(self):
        rows = read_rows(self.folder / "data/sft.jsonl")
        self.table("sft.parquet", rows)
        self.troupe(*self.sft("run.name=rows"))
        self.troupe(*self.sft("run.name=table", "data.train=sft.parquet"))
        for step, line in self.metrics("rows").items():
            self.assertEqual(line["train/loss"],
                             self.metrics("table")[step]["train/loss"])

    def test_a_bad_row_is_named_with_its_number(self):
        good = {"prompt": "a", "completion": "b"}
        self.table("rows.parquet", [good] * 9 + [{"prompt": "a"}] + [good] * 9)
        done = self.troupe(*self.sft("data.train=rows.parquet"),
                           code=WRONG_INPUT)
        self.assertIn("rows.parquet:10: completion: expected text", done.stderr)

    def test_a_damaged_file_is_refused_by_name(self):
        self.table("rows.parquet", [{"prompt": "a", "completion": "b"}] * 9)
        whole = (self.folder / "rows.parquet").read_bytes()
        (self.folder / "cut.parquet").write_bytes(whole[:-20])
        done = self.troupe(*self.sft("data.train=cut.parquet"), code=WRONG_INPUT)
        self.assertIn("cut.parquet: expected a Parquet file that pyarrow reads",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
