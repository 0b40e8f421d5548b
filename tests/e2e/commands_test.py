"""The commands besides train: their input, output and order."""
import json
import math
import os
import shutil
import signal
import subprocess
import unittest

from support import TINY, TROUPE, Case, read_rows, tree_bytes, until, write_rows


class Commands(Case):
    def rows(self, name, rows):
        write_rows(self.folder / name, rows)
        return self.folder / name

    def generate(self, *arguments):
        if not any("--max-new-tokens" in str(word) for word in arguments):
            arguments = ["--max-new-tokens", "8", *arguments]
        self.troupe("generate", "--model", "data/base", "--prompts",
                    "prompts.jsonl", "--out", "out.jsonl", *arguments)
        return read_rows(self.folder / "out.jsonl")

    def test_generate_gives_a_line_per_sample_and_keeps_columns(self):
        self.rows("prompts.jsonl", [{"prompt": "The soup", "note": i}
                                    for i in range(3)])
        found = self.generate("--n", "2", "--seed", "3")
        self.assertEqual([(row["note"], row["sample"]) for row in found],
                         [(i, k) for i in range(3) for k in range(2)])
        for row in found:
            self.assertEqual(len(row["response_ids"]), len(row["logprobs"]))
            self.assertLessEqual(len(row["response_ids"]), 8)
            self.assertIn(row["finish_reason"], ("eos", "length"))
        self.assertEqual(found, self.generate("--n", "2", "--seed", "3"))
        self.assertNotEqual(found, self.generate("--n", "2", "--seed", "4"))

    def test_a_response_ends_with_a_token_of_generation_config(self):
        self.rows("prompts.jsonl", [{"prompt": "The soup"}])
        whole, = self.generate("--greedy", "--ignore-eos")
        end = whole["response_ids"][3]
        length = whole["response_ids"].index(end) + 1
        config = self.folder / "data/base/generation_config.json"
        kept = config.read_text()
        try:
            config.write_text(json.dumps({"eos_token_id": [end, 1]}))
            found, = self.generate("--greedy")
            self.assertEqual(found["response_ids"],
                             whole["response_ids"][:length])
            self.assertEqual(found["finish_reason"], "eos")
        finally:
            config.write_text(kept)

    def test_generate_gives_the_same_responses_under_any_degree_I2(self):
        # more samples than one step has
        self.rows("prompts.jsonl", [{"prompt": "The tea was"},
                                    {"prompt": "I felt"}] * 150)
        for options in (["--greedy"], ["--seed", "7", "--n", "2"]):
            one = self.generate(*options)
            self.assertEqual(one, self.generate(*options, "--strategy", "d2",
                                                "--devices", "2"))
            self.assertEqual(one, self.generate(*options, "--devices", "3"))

    def test_score_gives_the_same_numbers_under_any_degree(self):
        self.rows("in.jsonl", [{"ids": list(range(5, 8 + i))}
                               for i in range(9)])
        for model in ("base", "scorer"):
            found = []
            for devices in (1, 2):
                self.troupe("score", "--model", f"data/{model}", "--data",
                            "in.jsonl", "--out", "out.jsonl", "--strategy",
                            f"d{devices}", "--devices", devices)
                found.append(read_rows(self.folder / "out.jsonl"))
            self.assertEqual(found[0], found[1])

    def test_degrees_that_cannot_run_are_reported_by_the_plan_check(self):
        self.rows("prompts.jsonl", [{"prompt": "I felt"}])
        rows = ["--prompts", "prompts.jsonl", "--out", "out.jsonl"]
        for arguments, code in ((["--strategy", "d3", "--devices", "2"], 3),
                                (["--strategy", "x2"], 2)):
            done = self.troupe("generate", "--model", "data/base", *rows,
                               *arguments, code=code)
            self.assertRegex(done.stderr, r"^error: [^\n]*\n$")
        # neither rows nor a run folder are left
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()),
                         ["data", "prompts.jsonl"])

    def test_generate_gives_more_samples_of_a_prompt_than_a_step_has(self):
        # 512 samples a step: two prompts of 200, one of 600
        self.rows("prompts.jsonl", [{"prompt": "I felt"}, {"prompt": "The"},
                                    {"prompt": "The tea"}])
        for n in (200, 600):
            found = self.generate("--n", n, "--max-new-tokens=1")
            self.assertEqual([row["sample"] for row in found],
                             list(range(n)) * 3)

    def test_the_result_never_replaces_what_is_no_file(self):
        self.rows("prompts.jsonl", [{"prompt": "I felt"}])
        (self.folder / "folder").mkdir()
        done = self.troupe("generate", "--model", "data/base", "--prompts",
                           "prompts.jsonl", "--out", "folder", code=2)
        self.assertRegex(done.stderr, r"^error: command line: --out: ")
        self.assertTrue((self.folder / "folder").is_dir())

    def test_ctrl_c_ends_a_command_without_a_result(self):
        self.rows("prompts.jsonl", [{"prompt": "I felt"}] * 20000)
        process = self.start("generate", "--model", "data/base", "--prompts",
                             "prompts.jsonl", "--out", "out.jsonl",
                             "--ignore-eos", "--max-new-tokens", "100")
        until(self.workers, "a worker")
        process.send(signal.SIGINT)
        done = process.finish(20)
        self.assertEqual(done.code, 130, done.err)
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()),
                         ["data", "prompts.jsonl"])

    def test_leftovers_of_a_killed_command_are_removed_by_the_next(self):
        self.rows("prompts.jsonl", [{"prompt": "I felt"}] * 20000)
        process = self.start("generate", "--model", "data/base", "--prompts",
                             "prompts.jsonl", "--out", "out.jsonl",
                             "--ignore-eos", "--max-new-tokens", "100")
        until(self.workers, "a worker")
        process.send(signal.SIGKILL)
        process.finish()
        self.assertTrue(list(self.folder.glob(".troupe-generate-*")))
        until(lambda: not self.processes(), "its workers gone")
        self.rows("prompts.jsonl", [{"prompt": "I felt"}])
        self.generate()
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()),
                         ["data", "out.jsonl", "prompts.jsonl"])

    def test_generate_min_new_tokens_holds_and_ignore_eos(self):
        self.rows("prompts.jsonl", [{"prompt_ids": [40, 41, 42]}] * 20)
        found = self.generate("--min-new-tokens", "8")
        self.assertEqual({len(row["response_ids"]) for row in found}, {8})
        found = self.generate("--ignore-eos")
        self.assertEqual({row["finish_reason"] for row in found}, {"length"})

    def test_score_gives_logprobs_and_entropies_of_a_language_model(self):
        ids = [5, 6, 7, 8, 9]
        self.rows("in.jsonl", [{"ids": ids}, {"text": "The soup was plain."},
                               {"prompt": "The", "response": " soup"}])
        self.troupe("score", "--model", "data/base", "--data", "in.jsonl",
                    "--out", "out.jsonl")
        found = read_rows(self.folder / "out.jsonl")
        self.assertEqual(found[0]["ids"], ids)
        for row in found:
            self.assertEqual(len(row["logprobs"]), len(row["ids"]) - 1)
            self.assertEqual(len(row["entropy"]), len(row["ids"]) - 1)
            self.assertLess(max(row["logprobs"]), 0)
            self.assertLess(max(row["entropy"]), math.log(512) + 1e-4)

    def test_rows_of_ids_need_no_tokenizer_but_texts_do(self):
        model = shutil.copytree(self.folder / "data/base", self.folder / "bare",
                                ignore=shutil.ignore_patterns("*token*"))
        self.rows("ids.jsonl", [{"ids": [5, 6, 7]},
                                {"prompt_ids": [5], "response_ids": [6, 7]}])
        self.rows("prompts.jsonl", [{"prompt_ids": [40 + i]} for i in range(9)])
        found = []
        for folder in ("data/base", model):
            self.troupe("score", "--model", folder, "--data", "ids.jsonl",
                        "--out", "scored.jsonl")
            self.troupe("generate", "--model", folder, "--prompts",
                        "prompts.jsonl", "--out", "made.jsonl",
                        "--max-new-tokens", "30", "--strategy", "d2",
                        "--devices", "2")
            made = read_rows(self.folder / "made.jsonl")
            self.assertEqual({"response" in row for row in made},
                             {folder == "data/base"})
            for row in made:
                row.pop("response", None)
            found.append((read_rows(self.folder / "scored.jsonl"), made))
        self.assertEqual(*found)
        self.assertLessEqual({row["finish_reason"] for row in found[0][1]},
                             {"eos", "length"})
        wanted = "expected a tokenizer.json or a tokenizer.model in the folder"
        for command, rows, row in (
                ("score", "--data", {"text": "The soup"}),
                ("score", "--data", {"prompt": "The", "response_ids": [6]}),
                ("score", "--data", {"messages": [{"role": "user",
                                                   "content": "a"}]}),
                ("generate", "--prompts", {"prompt": "The soup"})):
            self.rows("in.jsonl", [{"ids": [5, 6], "prompt_ids": [5]}, row])
            done = self.troupe(command, "--model", model, rows, "in.jsonl",
                               "--out", "out.jsonl", code=2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(f"error: in.jsonl:2: {model}: {wanted}", done.stderr)
        done = self.troupe("generate", "--model", model, "--prompts",
                           "prompts.jsonl", "--out", "out.jsonl", "--stop", "a",
                           code=2)
        self.assertIn(f"error: {model}: {wanted}", done.stderr)

    def test_score_gives_scores_of_a_scalar_head(self):
        self.rows("in.jsonl", [{"ids": [5, 6, 7]}, {"ids": [5, 6]}])
        self.troupe("score", "--model", "data/scorer", "--data", "in.jsonl",
                    "--out", "out.jsonl")
        found = read_rows(self.folder / "out.jsonl")
        self.assertNotEqual(found[0]["score"], found[1]["score"])
        self.assertEqual(len(found[0]["values"]), 3)
        self.assertAlmostEqual(found[0]["values"][2], found[0]["score"], places=5)
        # causal: the value of a token does not depend on what follows
        self.assertAlmostEqual(found[0]["values"][1], found[1]["score"], places=5)

    def test_a_scalar_head_scores_like_the_reward_call(self):
        # a rollout's tokens, its end token with them, whichever way it is given
        self.troupe(*self.ppo("run.steps=1", "data.batch_size=64",
                              "rollout.max_new_tokens=60"))
        samples = read_rows(self.run_folder("ppo") / "samples.jsonl")
        self.assertEqual({row["finish_reason"] for row in samples},
                             {"eos", "length"})
        self.rows("in.jsonl", [{"ids": row["sequence_ids"]} for row in samples]
                  + [{"prompt_ids": row["sequence_ids"][:-sum(row["loss_mask"])],
                      "response_ids":
                      row["sequence_ids"][-sum(row["loss_mask"]):]}
                     for row in samples])
        self.troupe("score", "--model", "data/scorer", "--data", "in.jsonl",
                    "--out", "out.jsonl")
        found = read_rows(self.folder / "out.jsonl")
        for scored, row in zip(found, samples * 2):
            self.assertAlmostEqual(scored["score"], row["score"], places=5)

    def test_a_response_as_text_ends_unless_its_row_says_otherwise(self):
        whole = {"prompt": "The", "response": " soup"}
        self.rows("in.jsonl", [whole, {**whole, "finish_reason": "eos"},
                               {**whole, "finish_reason": "length"}])
        lengths = {}
        for model in ("base", "scorer"):
            self.troupe("score", "--model", f"data/{model}", "--data",
                        "in.jsonl", "--out", "out.jsonl")
            lengths[model] = [len(row["ids"]) for row in
                              read_rows(self.folder / "out.jsonl")]
        cut = lengths["base"][0]  # a language model reads the text as it is
        self.assertEqual(lengths["base"], [cut, cut + 1, cut])
        self.assertEqual(lengths["scorer"], [cut + 1, cut + 1, cut])

    def test_score_confirms_the_logprobs_of_generate(self):
        self.rows("prompts.jsonl", [{"prompt_ids": [40, 41, 42]}] * 5)
        made = self.generate("--ignore-eos")
        self.rows("in.jsonl", [{"ids": [40, 41, 42] + row["response_ids"]}
                               for row in made])
        self.troupe("score", "--model", "data/base", "--data", "in.jsonl",
                    "--out", "out.jsonl")
        for row, scored in zip(made, read_rows(self.folder / "out.jsonl")):
            for a, b in zip(row["logprobs"], scored["logprobs"][2:]):
                self.assertAlmostEqual(a, b, places=4)

    def test_convert_to_bf16_and_back_halves_the_file(self):
        self.troupe("convert", "--model", "data/base", "--out", "half",
                    "--dtype", "bf16")
        self.troupe("convert", "--model", "half", "--out", "shards",
                    "--max-shard-size", "200KB")
        size = (self.folder / "half/model.safetensors").stat().st_size
        whole = (self.folder / "data/base/model.safetensors").stat().st_size
        self.assertLess(abs(size / whole - 0.5), 0.01)
        self.assertTrue(
            (self.folder / "shards/model.safetensors.index.json").is_file())
        self.assertGreater(
            len(list((self.folder / "shards").glob("*.safetensors"))), 1)
        self.troupe("convert", "--model", "shards", "--out", "again",
                    "--strategy", "d2", "--devices", "2")
        self.assertEqual(tree_bytes(self.folder / "half", "*.safetensors"),
                         tree_bytes(self.folder / "again", "*.safetensors"))

    def test_convert_takes_a_folder_with_a_slash_at_its_end(self):
        (self.folder / "empty").mkdir()
        for out in ("new/", "empty/"):
            self.troupe("convert", "--model", "data/base", "--out", out)
            self.assertTrue((self.folder / out / "config.json").is_file())
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()),
                         ["data", "empty", "new"])

    def test_what_cannot_be_printed_is_a_failure(self):
        for words in (["explain"], ["tokenize", "--model", "data/base"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run(
                    [str(TROUPE), *words], cwd=self.folder, stdout=full,
                    input='"a"\n', stderr=subprocess.PIPE, text=True,
                    timeout=60)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "error: stdout: cannot write: No space left "
                                 "on device (io)\n"))
        # a reader that has seen enough is none
        done = subprocess.run(f"{TROUPE} explain | head -1", shell=True,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")

    def test_plan_show_prints_a_plan_that_plan_check_accepts(self):
        shown = self.troupe("plan", "show", *self.ppo()[1:], "--preset",
                            "data_parallel").stdout
        (self.folder / "plan.yaml").write_text(shown)
        report = json.loads(self.troupe(
            "plan", "check", *self.ppo()[1:], "--plan", "plan.yaml",
            "--json").stdout)
        self.assertTrue(report["ok"], report)
        self.assertEqual(report["errors"], [])
        self.assertEqual(len(report["devices"]), 4)
        self.assertGreater(report["devices"][0]["peak_bytes"], 0)

    def test_plan_check_lists_every_reason(self):
        text = (TINY / "plans/groups.yaml").read_text()
        text = text.replace("0-3, strategy: d4", "0-3, strategy: d3")
        text = text.replace("devices: 1, strategy: d1",
                            "devices: 1, strategy: d2")
        (self.folder / "plan.yaml").write_text(text)
        done = self.troupe("plan", "check", *self.ppo()[1:], "--plan",
                           "plan.yaml", "--json", code=3)
        errors = json.loads(done.stdout)["errors"]
        self.assertEqual([error["path"] for error in errors],
                         ["calls.actor_gen.strategy", "calls.ref_inf.strategy"])
        for error, line in zip(errors, done.stderr.splitlines()):
            self.assertRegex(error["message"], "^expected .*, got .*; try d")
            name = error["path"].split(".")[1] + ":"
            number = 1 + next(i for i, row in enumerate(text.splitlines())
                              if row.strip().startswith(name))
            self.assertEqual(line, f"error: plan.yaml:{number}: "
                             f"{error['path']}: {error['message']}")

    def test_explain_one_all_and_a_wrong_key(self):
        self.assertIn("kl_coef",
                      self.troupe("explain", "algorithm.kl_coef").stdout)
        everything = self.troupe("explain").stdout
        for section in ("run:", "cluster:", "models:", "rollout:", "trace:"):
            self.assertIn(section, everything)
        done = self.troupe("explain", "algorithm.kl_coff", code=2)
        self.assertIn("kl_coef", done.stderr)

    def test_status_logs_and_stop_of_a_finished_run(self):
        self.troupe(*self.sft())
        status = json.loads(self.troupe("status", "runs/sft", "--json").stdout)
        self.assertEqual(status["state"], "done")
        self.assertEqual(status["steps"], 3)
        self.assertIn("workers", status)
        self.assertIn("done", self.troupe("status", "runs/sft").stdout)
        self.troupe("logs", "runs/sft", "--worker", "1")
        self.troupe("logs", "runs/sft")
        self.troupe("status", "runs/nothing", code=2)

    def test_doctor_and_version(self):
        report = json.loads(self.troupe("doctor", "--json", seconds=60).stdout)
        self.assertTrue(report["ok"], report)
        for check in report["checks"]:
            self.assertLessEqual({"name", "ok", "found"}, set(check))
        kernel = r"(plain|avx2|avx512\w*|amx_bf16|rounded fp32)"
        devices, = (c for c in report["checks"] if c["name"] == "devices")
        self.assertRegex(devices["found"],
                         rf"products by {kernel} \(fp32\), {kernel} \(bf16\)$")
        moves = report["checks"][-1]
        self.assertEqual(moves["name"], "moves")
        self.assertRegex(moves["found"], r"checksums equal: [\d.]+ .B/s$")
        self.assertRegex(self.troupe("--version").stdout, r"^troupe \d")

    def test_every_command_has_help(self):
        for command in ("train", "plan", "generate", "score", "tokenize", "convert",
                     "worker", "status", "stop", "logs", "trace", "explain",
                     "doctor"):
            with self.subTest(command=command):
                self.assertIn("--help", self.troupe(command, "--help").stdout)


if __name__ == "__main__":
    unittest.main()
