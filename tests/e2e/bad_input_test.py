"""Mistakes of users and failures around a run: one clear line on
stderr, the right exit code, nothing half-written."""
import json
import resource
import shutil
import signal
import socket
import subprocess
import unittest

from support import TINY, TROUPE, Case

WRONG_INPUT, PLAN_CANNOT_RUN, FAILED = 2, 3, 1


class BadInput(Case):
    def refused(self, arguments, code, *words, seconds=60):
        """Runs, expects `code`, one error line that contains all of `words`, and
        no run folder."""
        done = self.troupe(*arguments, code=code, seconds=seconds)
        lines = [line for line in done.stderr.splitlines()
                 if line.startswith("error: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        for word in ("terminate called", "what():", ".cpp:", "Traceback"):
            self.assertNotIn(word, done.stderr)
        if code != FAILED:
            self.assertFalse((self.folder / "runs").exists(), lines[0])
        return lines[0]

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def model(self, name="model"):
        """A separate model folder that a test may break."""
        shutil.copytree(self.folder / "data/base", self.folder / name)
        return self.folder / name

    # -- settings ------------------------------------------------------------

    def test_unknown_setting_names_file_line_and_nearest(self):
        file = self.write("wrong.yaml", "run: {name: x, steps: 3}\n"
                          "workflow: sft\nalgorithm:\n  gama: 1\n")
        line = self.refused(["train", file], WRONG_INPUT, "algorithm.gama",
                            "gamma")
        self.assertIn("wrong.yaml:4", line)

    def test_unknown_override_names_the_command_line(self):
        self.refused(self.sft("run.stepz=3"), WRONG_INPUT, "command line",
                     "run.stepz", "steps")

    def test_wrong_type_says_expected_and_got(self):
        self.refused(self.sft("run.steps=many"), WRONG_INPUT, "run.steps",
                     "expected", "got", "many")

    def test_missing_gpus_name_setting_and_reason(self):
        checks = json.loads(self.troupe("doctor", "--json").stdout)["checks"]
        gpus = next(c for c in checks if c["name"] == "gpus")["found"]
        if not gpus.startswith("none: "):
            self.skipTest(f"this machine has GPUs: {gpus}")
        self.refused(self.sft("cluster.device=gpu"), WRONG_INPUT,
                     "cluster.device", "'gpu'", gpus.removeprefix("none: "))

    def test_value_out_of_range(self):
        self.refused(self.ppo("algorithm.gamma=1.5"), WRONG_INPUT,
                     "algorithm.gamma", "1.5")

    def test_broken_yaml_names_its_line(self):
        file = self.write("wrong.yaml", "run: {name: x\nworkflow: [\n")
        self.refused(["train", file], WRONG_INPUT, "wrong.yaml:")

    def test_settings_of_another_program_are_translated(self):
        self.refused(self.ppo("algorithm.kl_ctrl.kl_coef=0.1"), WRONG_INPUT,
                     "algorithm.kl_coef")

    def test_unknown_workflow_role_and_preset(self):
        self.refused(self.sft("workflow=stf"), WRONG_INPUT, "workflow", "sft")
        self.refused(self.sft("models.acter.path=data/base"), WRONG_INPUT,
                     "acter", "actor")
        self.refused(self.sft("plan=singel"), WRONG_INPUT, "plan", "single")

    def test_wrong_usage(self):
        self.refused(["trian"], WRONG_INPUT, "train")
        self.refused(["train"], WRONG_INPUT)
        self.refused(["train", "--no-such-flag"], WRONG_INPUT)
        self.refused([], WRONG_INPUT, "command line: expected a command (train, ")
        self.refused(["profile", "x.yaml", "--out", "y.yaml", "--seconds=5"],
                     WRONG_INPUT, "--seconds: expected ", "30 to 3600", "'5'")

    def test_options_show_their_arguments(self):
        words = ["generate", "--model", "data/base", "--prompts", "x", "--out",
                 "y"]
        for option, value, takes in (
                ("--top-p", "2", "a number > 0 and <= 1"),
                ("--min-p", "-1", "a number from 0 to 1"),
                ("--n", "0", "a whole number > 0"),
                ("--n", "many", "a whole number > 0"),
                ("--seed", "x", "a whole number >= 0"),
                ("--seed", "-1", "a whole number >= 0"),
                ("--temperature", "-1", "a number >= 0"),
                ("--temperature", "nan", "a number >= 0"),
                ("--min-p", "NaN", "a number from 0 to 1"),
                ("--logprobs", "all", "one of unfiltered,sampled")):
            with self.subTest(option=option, value=value):
                self.assertEqual(
                    self.refused([*words, f"{option}={value}"], WRONG_INPUT),
                    f"error: command line: {option}: expected {takes}, got "
                    f"'{value}'; try `troupe generate --help`")
        self.write("prompts.jsonl", '{"prompt": "a"}\n')
        words[words.index("x")] = "prompts.jsonl"
        self.assertEqual(
            self.refused([*words, "--strategy=d2", "--devices=3"],
                         PLAN_CANNOT_RUN),
            "error: command line: --strategy: expected a strategy for 3 "
            "devices (0-2), got d2, which is for 2; try d3")
        self.assertIn(
            "--decode: expected --decode or --chat, got both",
            self.refused(["tokenize", "--model", "data/base", "--decode",
                          "--chat"], WRONG_INPUT))
        self.assertIn(
            "--min-new-tokens: expected at most --max-new-tokens (4), got 5",
            self.refused([*words, "--max-new-tokens=4", "--min-new-tokens=5"],
                         WRONG_INPUT))

    # -- files ---------------------------------------------------------------

    def test_missing_files_are_named(self):
        self.refused(["train", "nowhere.yaml"], WRONG_INPUT, "nowhere.yaml")
        self.refused(self.sft("data.train=nowhere.jsonl"), WRONG_INPUT,
                     "nowhere.jsonl")
        self.refused(self.sft("models.actor.path=nowhere"), WRONG_INPUT,
                     "nowhere")
        self.refused(self.ppo("plan=nowhere.yaml"), WRONG_INPUT, "nowhere.yaml")
        self.refused(["score", "--model", "data/base", "--out", "out.jsonl",
                      "--data", "nowhere.jsonl"], WRONG_INPUT,
                     "command line: --data: ", "nowhere.jsonl")

    def test_a_broken_row_names_file_line_and_field(self):
        good = '{"prompt": "a", "completion": "b"}\n'
        for bad, word in (('{"prompt": "a"\n', "rows.jsonl:3"),
                          ('{"prompt": "a"}\n', "completion"),
                          ('{"prompt": 1, "completion": "b"}\n', "prompt"),
                          ("[1]\n", "rows.jsonl:3")):
            file = self.write("rows.jsonl", good * 2 + bad + good * 20)
            with self.subTest(row=bad):
                line = self.refused(self.sft(f"data.train={file}"), WRONG_INPUT,
                                    word)
                self.assertIn("rows.jsonl:3", line)

    def test_bad_rows_may_be_skipped_and_are_counted(self):
        good = '{"prompt": "a", "completion": "b"}\n'
        file = self.write("rows.jsonl", good * 20 + '{"prompt": 1}\n' + "no\n")
        done = self.troupe(*self.sft(f"data.train={file}",
                                     "data.on_bad_row=skip"))
        self.assertEqual((done.stdout + done.stderr).count("2 bad rows"), 1)
        self.assertEqual(self.metrics("sft")[3]["data/bad_rows"], 2)

    def test_overlong_rows_are_reported_for_data_and_evaluation(self):
        row = '{"prompt": "a", "completion": "%s"}\n'
        self.write("rows.jsonl", row % "b" * 20 + row % ("b" * 40) * 3)
        self.write("held.jsonl", row % "b" * 20 + row % ("b" * 40) * 2)
        for overlong, what in (("skip", "skipped"), ("truncate", "truncated")):
            done = self.troupe(*self.sft(
                "data.train=rows.jsonl", "data.max_tokens=16", "run.steps=1",
                f"data.overlong={overlong}", "run.resume=fresh",
                "eval.data=held.jsonl"))
            told = done.stdout + done.stderr
            for line in (f"rows.jsonl: 3 overlong rows {what}",
                         f"held.jsonl: 2 overlong rows {what}"):
                with self.subTest(line=line):
                    self.assertEqual(told.count(line), 1, told)

    def test_a_parquet_file_gets_the_conversion(self):
        file = self.write("rows.parquet", "PAR1")
        self.refused(self.sft(f"data.train={file}"), WRONG_INPUT, "parquet",
                     "jsonl")

    def test_a_data_file_without_usable_rows(self):
        file = self.write("rows.jsonl", "")
        self.refused(self.sft(f"data.train={file}"), WRONG_INPUT, "rows.jsonl")

    def test_rows_that_nest_too_deep(self):
        deep = "[" * 100_000 + "]" * 100_000
        file = self.write("rows.jsonl", '{"prompt": "a", "x": %s}\n' % deep)
        self.refused(["generate", "--model", "data/base", "--prompts", file,
                      "--out", "out.jsonl"], WRONG_INPUT, "rows.jsonl:1",
                     "more than 500 lists or objects in each other")
        done = self.troupe("tokenize", "--model", "data/base", code=2,
                           text_in=deep)
        self.assertIn("error: stdin:1: expected one JSON value a line",
                      done.stderr)

    def test_invalid_token_ids_are_refused(self):
        for line in ("[-1]", "[4294967297]", "[1.0]"):
            done = self.troupe("tokenize", "--model", "data/base", "--decode",
                               code=2, text_in=line)
            self.assertEqual(done.stderr, "error: stdin:1: expected a list of "
                                          f"token ids, got {line}\n")

    def test_rows_longer_than_the_model_allows(self):
        folder = self.model()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(
            json.dumps(config | {"max_position_embeddings": 20}))
        self.write("rows.jsonl",
                   '{"prompt": "%s"}\n' % ("a" * 8) * 20
                   + '{"prompt": "%s"}\n' % ("a" * 9))
        models = ["models.actor.path=model", "models.ref.path=model"]
        rows = ["data.train=rows.jsonl", "data.max_prompt_tokens=null"]
        says = ("rows.jsonl:21: prompt: expected at most 8 tokens, the 20 "
                "positions of actor less rollout.max_new_tokens (12), got 9; "
                "try data.max_prompt_tokens=8")
        self.refused(self.ppo(*models, *rows), WRONG_INPUT, says)
        self.write("short.jsonl", '{"prompt": "aaaa"}\n' * 20)
        self.refused(self.ppo(*models, "data.train=short.jsonl", rows[1],
                              "eval.data=rows.jsonl"), WRONG_INPUT, says)
        self.refused(self.ppo(*models, "data.train=rows.jsonl",
                              "data.max_prompt_tokens=9", "--dry-run"),
                     WRONG_INPUT, "data.max_prompt_tokens: expected at most 8")
        done = self.troupe(*self.ppo(
            *models, *rows[:1], "data.max_prompt_tokens=8", "run.steps=1"))
        self.assertIn("of 20 in rows.jsonl", done.stdout)
        line = self.metrics("ppo")[1]
        self.assertGreaterEqual(line["response_length/min"], 1)

    # -- model folders -------------------------------------------------------

    def test_an_unknown_model_family(self):
        folder = self.model()
        config = json.loads((folder / "config.json").read_text())
        config |= {"model_type": "mamba", "architectures": ["MambaForCausalLM"]}
        (folder / "config.json").write_text(json.dumps(config))
        self.refused(self.sft("models.actor.path=model"), WRONG_INPUT, "mamba",
                     "llama")

    def test_a_folder_without_config_or_tokenizer(self):
        for file in ("config.json", "tokenizer.json"):
            folder = self.model(file.split(".")[0])
            (folder / file).unlink()
            with self.subTest(missing=file):
                self.refused(self.sft(f"models.actor.path={folder}"),
                             WRONG_INPUT, file)

    def test_a_tokenizer_with_more_ids_than_the_model(self):
        folder = self.model()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(
            json.dumps(config | {"vocab_size": 300}))
        self.refused(self.sft("models.actor.path=model"), WRONG_INPUT)

    def test_a_truncated_weight_file(self):
        file = self.model() / "model.safetensors"
        file.write_bytes(file.read_bytes()[:5000])
        self.refused(self.sft("models.actor.path=model"), WRONG_INPUT,
                     "model.safetensors")

    def test_weights_that_are_not_those_of_the_config(self):
        folder = self.model()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(
            json.dumps(config | {"num_hidden_layers": 3}))
        self.refused(self.sft("models.actor.path=model"), WRONG_INPUT,
                     "model.layers.2")

    def test_a_critic_of_another_vocabulary(self):
        folder = self.model()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(
            json.dumps(config | {"vocab_size": 511}))
        self.refused(self.ppo("models.critic.path=model"), WRONG_INPUT)

    # -- plans ---------------------------------------------------------------

    def plan(self, **changes):
        """groups.yaml with some calls changed: actor_gen="{devices: ..}"."""
        lines = (TINY / "plans/groups.yaml").read_text().splitlines()
        for call, value in changes.items():
            lines = [f"  {call}: {value}" if line.strip().startswith(call + ":")
                     else line for line in lines]
        return f"plan={self.write('plan.yaml', chr(10).join(lines))}"

    def test_a_strategy_that_does_not_fit_its_devices(self):
        line = self.refused(
            self.ppo(self.plan(actor_gen="{devices: 0-3, strategy: d3}")),
            PLAN_CANNOT_RUN, "actor_gen", "d3", "4")
        number = 1 + (self.folder / "plan.yaml").read_text().splitlines().index(
            "  actor_gen: {devices: 0-3, strategy: d3}")
        self.assertIn(f"/plan.yaml:{number}: calls.actor_gen.strategy: expected ",
                      line)
        self.assertTrue(line.endswith("; try d4"), line)  # the nearest that fits

    def test_a_plan_in_the_settings_names_its_line_there(self):
        file = self.write("plan_inside.yaml", "plan:\n  calls:\n"
                          "    actor_gen: {devices: 0-3, strategy: d3}\n"
                          "    rew_inf: {devices: 0..1}\n")
        train, config, *overrides = self.ppo()
        words = [train, config, file,
                 *(word for word in overrides if not word.startswith("plan="))]
        self.refused([*words, "plan=null", "plan.calls.x=1"], WRONG_INPUT)
        self.assertIn(
            "plan_inside.yaml:4: plan.calls.rew_inf.devices: expected devices",
            self.refused(words, WRONG_INPUT))
        file.write_text(file.read_text().replace("0..1", "0-1, strategy: d2"))
        self.assertIn(
            "plan_inside.yaml:3: plan.calls.actor_gen.strategy: expected a "
            "strategy for 4 devices", self.refused(words, PLAN_CANNOT_RUN))

    def test_more_devices_than_there_are(self):
        self.refused(
            self.ppo(self.plan(actor_gen="{devices: 0-7, strategy: d8}")),
            PLAN_CANNOT_RUN, "actor_gen", "4")

    def test_a_plan_of_another_cluster(self):
        self.refused(self.ppo("cluster.devices_per_node=2"), PLAN_CANNOT_RUN)

    def test_a_plan_without_a_call_or_with_an_unknown_one(self):
        text = (TINY / "plans/groups.yaml").read_text()
        file = self.write("plan.yaml", text.replace("  rew_inf", "  rew_imf"))
        self.refused(self.ppo(f"plan={file}"), WRONG_INPUT, "rew_imf", "rew_inf")

    def test_a_malformed_strategy(self):
        self.refused(
            self.ppo(self.plan(actor_gen="{devices: 0-3, strategy: 4d}")),
            WRONG_INPUT, "plan.yaml:", "strategy", "4d")

    # -- the world -----------------------------------------------------------

    def test_an_unwritable_run_folder(self):
        self.refused(self.sft("run.dir=/proc/troupe"), WRONG_INPUT,
                     "/proc/troupe")
        file = self.write("occupied", "")
        self.refused(self.sft(f"run.dir={file}"), WRONG_INPUT, "occupied")
        self.assertEqual(file.read_text(), "")

    def test_a_replay_that_does_not_fit(self):
        self.refused(self.ppo("run.replay=nothing.jsonl"), WRONG_INPUT,
                     "run.replay")
        self.troupe(*self.ppo("run.steps=1", "run.dir=recorded"))
        samples = "run.replay=recorded/ppo/samples.jsonl"
        self.refused(self.ppo(samples), WRONG_INPUT, "16 samples of step 2",
                     "0 in")
        self.refused(self.ppo(samples, "run.steps=1", "data.batch_size=8"),
                     WRONG_INPUT, "8 samples of step 1")

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused(self.sft(f"cluster.ports={port}-{port}"), FAILED,
                         str(port))

    def run_with_room_for(self, file_bytes):
        """A run of one device (the shared memory of several counts as files,
        too) in which write() fails beyond that size, as on a full disk."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

        alone = self.sft("trace.enabled=false", "cluster.devices_per_node=1",
                         "cluster.workers_per_node=1")
        done = subprocess.run(
            [str(TROUPE), *map(str, alone)],
            cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=60, preexec_fn=limit)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        error, = [line for line in done.stderr.splitlines()
                  if line.startswith("error: ")]
        return error

    def test_a_disk_that_is_full_while_saving(self):
        self.assertIn("step_000003", self.run_with_room_for(1 << 20))
        folder = self.run_folder("sft")
        self.assertFalse((folder / "latest").exists())
        self.assertEqual(list((folder / "checkpoints").iterdir()), [],
                         "parts of a checkpoint")

    def test_a_disk_that_is_full_in_the_middle_of_a_run(self):
        self.assertIn("metrics.jsonl", self.run_with_room_for(1600))

    # -- resume --------------------------------------------------------------

    def test_a_damaged_checkpoint_says_how_to_continue(self):
        self.troupe(*self.sft("run.save_every=1", "run.keep=2"))
        newest = self.latest("sft")
        file = newest / "actor/model.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
        done = self.troupe(*self.sft("run.steps=4"), code=2)
        self.assertIn("step_000003/actor/model.safetensors: expected the size "
                      "that the manifest says, got another one, or no file: "
                      "the checkpoint is damaged; try removing its step_ "
                      "folder: the run then continues from the checkpoint before",
                      done.stderr)
        shutil.rmtree(newest)
        done = self.troupe(*self.sft("run.steps=4"))
        self.assertIn("continuing after step 2 of 4", done.stdout)
        self.assertEqual(sorted(self.metrics("sft")), [1, 2, 3, 4])

    def test_a_damaged_checkpoint_is_skipped_where_nobody_could_remove_it(self):
        self.troupe(*self.sft("run.save_every=1", "run.keep=3"))
        for step in (2, 3):
            file = (self.run_folder("sft")
                    / f"checkpoints/step_00000{step}/actor/model.safetensors")
            whole = file.read_bytes()
            file.write_bytes(whole[:-8] + bytes(8) if step == 2 else whole[:-1])
        self.environment |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
        done = self.troupe(*self.sft("run.steps=4", "run.save_every=1"))
        self.assertIn("continuing after step 1 of 4", done.stdout)
        for step in (2, 3):
            self.assertRegex(done.stderr, "skips a damaged checkpoint: .*"
                             f"step_00000{step}/actor/model.safetensors")
        self.assertEqual(sorted(self.metrics("sft")), [1, 2, 3, 4])
        self.assertEqual(self.latest("sft").name, "step_000004")
        self.assertEqual(
            sorted(self.run_folder("sft").glob("checkpoints/*.damaged")),
            [self.run_folder("sft") / f"checkpoints/step_00000{step}.damaged"
             for step in (2, 3)])
        self.troupe(*self.sft("run.steps=4", "run.name=undisturbed"))
        self.assertEqual(
            *((self.latest(name) / "actor/model.safetensors").read_bytes()
              for name in ("sft", "undisturbed")))

    def test_without_a_whole_checkpoint_it_does_not_begin_again_by_itself(self):
        self.troupe(*self.sft("run.save_every=0"))
        file = self.latest("sft") / "actor/model.safetensors"
        file.write_bytes(b"")
        self.environment |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
        done = self.troupe(*self.sft("run.steps=4"), code=2)
        self.assertIn("the checkpoint is damaged", done.stderr)
        self.assertEqual(max(self.metrics("sft")), 3)

    def test_other_settings_do_not_continue_a_run(self):
        self.troupe(*self.sft())
        before = (self.run_folder("sft") / "metrics.jsonl").read_bytes()
        done = self.troupe(*self.sft("run.steps=5", "run.seed=2"), code=2)
        self.assertIn("run.seed", done.stderr)
        after = (self.run_folder("sft") / "metrics.jsonl").read_bytes()
        self.assertEqual(before, after)
        self.troupe(*self.sft("run.seed=2", "run.resume=fresh"))
        self.assertTrue((self.folder / "runs/sft.1/config.yaml").is_file())
        done = self.troupe(*self.sft("run.resume=never", "run.seed=2"), code=2)
        self.assertIn("never", done.stderr)

    def test_other_files_do_not_continue_a_run(self):
        """The settings name the same files, which are not what they were."""
        data, graph = self.folder / "rows.jsonl", self.folder / "graph.yaml"
        data.write_text((self.folder / "data/sft.jsonl").read_text())
        graph.write_text((TINY.parent / "workflows/sft.yaml").read_text())
        command = self.sft("data.train=rows.jsonl", "workflow=graph.yaml")
        self.troupe(*command)
        graph.write_text(graph.read_text() + "# the same calls\n")
        done = self.troupe(*command, "run.steps=4")
        self.assertIn("continuing after step 3 of 4", done.stdout)

        with data.open("a") as file:
            file.write('{"prompt": "one", "completion": "more"}\n')
        done = self.troupe(*command, "run.steps=5", code=2)
        self.assertRegex(done.stderr, r"the file of data.train was \d+ bytes "
                         r"\(CRC-32 [0-9a-f]{8}\), is \d+ bytes")
        self.assertIn("try run.resume=fresh", done.stderr)
        self.troupe(*command, "run.steps=5", "run.resume=force")

        graph.write_text(graph.read_text().replace(
            "[sequence_ids, loss_mask]",
            "{sequence_ids: sequence_ids, loss_mask: loss_mask}"))
        done = self.troupe(*command, "run.steps=6")
        self.assertIn("continuing after step 5 of 6", done.stdout)
        graph.write_text(graph.read_text().replace("actor_train:", "learn:"))
        done = self.troupe(*command, "run.steps=7", code=2)
        self.assertIn("calls.actor_train was train sft_loss of actor",
                      done.stderr)
        self.assertIn("calls.learn was not set, is train", done.stderr)


if __name__ == "__main__":
    unittest.main()
