"""Conversations: an actor of the user's leads each sample, a tool speaks in
between, and the model learns only from its own tokens (examples/tool_use)."""
import json
import re
import shutil
import subprocess
import sys
import unittest

from support import BUILD, SOURCE, TINY, TROUPE, Case, read_rows, write_rows

EXAMPLES = TINY.parent
PROGRAMS = BUILD / "examples"
STAND_IN = SOURCE / "tests/support/vllm_stand_in.py"


class Talk(Case):
    @classmethod
    def learn(cls, example):
        """Its data, and a model of their language."""
        folder = cls.shared_folder
        subprocess.run([sys.executable, "-B", EXAMPLES / example /
                        "make_data.py", folder / example], check=True)
        done = subprocess.run(
            [TROUPE, "train", EXAMPLES / example / "sft.yaml",
             f"run.dir={folder}/runs", f"run.name={example}",
             f"models.actor.path={folder}/base",
             f"data.train={folder}/{example}/sft.jsonl"],
            capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def program(self, example, command, *overrides, code=0):
        role = "player" if example == "self_play" else "actor"
        done = subprocess.run(
            [str(word) for word in (
                PROGRAMS / example, *command.split(),
                EXAMPLES / example / f"{example}.yaml",
                f"models.{role}.path=data/runs/{example}/latest/actor",
                f"data.train=data/{example}/prompts.jsonl", *overrides)],
            cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=120)
        self.assertEqual(done.returncode, code,
                         f"{overrides}\n{done.stdout}\n{done.stderr}")
        return done

    def served(self, example):
        """Overrides for a stand-in of vLLM's server on one device. Servers get end
        tokens, not texts: here "=" is one, after which the tool speaks."""
        model = self.folder / "served"
        if not model.exists():
            shutil.copytree(self.folder / f"data/runs/{example}/latest/actor", model)
            words = json.loads((model / "tokenizer.json").read_text())
            file = model / "generation_config.json"
            config = json.loads(file.read_text())
            config["eos_token_id"] = [config["eos_token_id"],
                                      words["model"]["vocab"]["="]]
            file.write_text(json.dumps(config))
        return [f"models.actor.path={model}", "rollout.stop=null",
                "rollout.engine=vllm",
                f"rollout.server_command={sys.executable} -B {STAND_IN}",
                "data.batch_size=2", "plan=single", "cluster.devices_per_node=1",
                "cluster.workers_per_node=1"]

    def samples(self, name):
        return read_rows(self.run_folder(name) / "samples.jsonl")

    def rise(self, run, name):
        """The mean of a metric in the first and the last 4 steps."""
        steps = self.metrics(run)
        values = [steps[step][name] for step in sorted(steps)]
        first, last = sum(values[:4]) / 4, sum(values[-4:]) / 4
        print(f"{name} {first:.2f} -> {last:.2f}", file=sys.stderr)
        return first, last


class SelfPlay(Talk):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.learn("self_play")

    def test_it_learns_the_rules_from_its_own_games(self):
        self.program("self_play", "train")
        first, last = self.rise("self_play", "game/legal")
        self.assertGreater(last, first + 0.15)
        steps = self.metrics("self_play")
        legal = {step: [] for step in steps}
        for sample in self.samples("self_play"):
            left, text = int(sample["prompt"].split()[1]), sample["response"]
            while move := re.match(r"take ([123])\n", text):
                left, text = left - int(move[1]), text[move.end():]
                if text.startswith("left"):  # the referee counts
                    told, text = text.split("\n", 1)
                    self.assertEqual(told, f"left {left}")
            legal[sample["step"]].append(left == 0 and not text)
        for step, line in steps.items():
            self.assertAlmostEqual(line["game/legal"],
                                   sum(legal[step]) / 64, places=5)


class ToolUse(Talk):
    @classmethod
    def setUpClass(cls):
        """A model that half of the time asks the calculator."""
        super().setUpClass()
        cls.learn("tool_use")

    def tool_use(self, *overrides, code=0):
        return self.program("tool_use", "train", *overrides, code=code)

    def test_it_learns_to_ask_the_calculator(self):
        self.tool_use()
        first, last = self.rise("tool_use", "tool/right")
        self.assertGreater(last, first + 0.2)
        self.assertGreater(self.rise("tool_use", "tool/asked")[1], 0.8)
        self.check_samples(self.samples("tool_use"), self.metrics("tool_use"))

    def check_samples(self, samples, steps):
        """The tool said the sum where it was asked; what it said, and only
        that, is masked; rewards are those of the texts."""
        told = re.compile(r"calc (\d+)\+(\d+)=(\d+)\n", re.A)
        right = {step: [] for step in steps}
        for sample in samples:
            a, b = map(int, sample["prompt"].strip().split("+"))
            text = sample["response"]
            tools = told.findall(text)
            for first, second, result in tools:
                self.assertEqual(int(first) + int(second), int(result))
            mask = sample["loss_mask"]
            own = mask[mask.index(1):]
            masked = sum(len(result) + 1 for _, _, result in tools)
            self.assertEqual(own.count(0), masked, text)  # one byte per token
            for kept, number in zip(mask, sample["logprobs"]):
                self.assertTrue(kept or number == 0)
            # a rule sees the whole response, tool text included
            found = re.findall(r"-?\d+(?:\.\d+)?", text) or ["nan"]
            right[sample["step"]].append(float(found[-1]) == a + b)
            self.assertEqual(sample["score"], right[sample["step"]][-1], text)
        for step, line in steps.items():
            self.assertEqual(len(right[step]), 64)
            self.assertAlmostEqual(line["tool/right"],
                                   sum(right[step]) / 64, places=5)

    def test_a_server_answers_the_turns_of_an_actor(self):
        self.tool_use("run.steps=2", *self.served("tool_use"))
        for line in self.metrics("tool_use").values():
            self.assertLess(line["rollout/engine_logprob_gap"], 1e-4)
            self.assertGreater(line["rollout/engine_update_gb"], 0)
        told = re.compile(r"calc (\d+)\+(\d+)=(\d+)\n", re.A)
        asked = 0
        for sample in self.samples("tool_use"):
            tools = told.findall(sample["response"])
            asked += len(tools)
            for first, second, result in tools:
                self.assertEqual(int(first) + int(second), int(result))
            mask = sample["loss_mask"]
            masked = sum(len(result) + 1 for _, _, result in tools)
            self.assertEqual(mask[mask.index(1):].count(0), masked)
        self.assertGreater(asked, 0)

    def test_first_conversations_are_scored_while_the_last_continue(self):
        self.tool_use("run.steps=1")
        slices = self.slices("tool_use")
        ends = [s["end"] for s in slices if s["name"] == "solve"
                and s["track"].startswith("device")]
        begins = [s["begin"] for s in slices if s["name"] == "score"
                  and s["track"].startswith("scorer")]
        self.assertLess(min(begins), max(ends))

    def test_the_same_conversations_under_another_plan_I1_I2(self):
        self.tool_use("run.steps=1")
        self.tool_use("run.steps=1", "run.name=one", "plan=single",
                      "cluster.workers_per_node=1",
                      "cluster.devices_per_node=1")
        calls = ["calls.solve={devices: 0-1, strategy: t2, instances: 2}",
                 "calls.score={devices: host}",
                 "calls.compare={devices: host}",
                 "calls.metrics={devices: host}",
                 "calls.actor_train={devices: 0-1, strategy: d2}"]
        (self.folder / "plan.yaml").write_text("\n".join(
            ["cluster: {nodes: 1, devices_per_node: 2, workers_per_node: 2}",
             "calls:", *("  " + call.removeprefix("calls.").replace("=", ": ", 1)
                         for call in calls)]))
        self.tool_use("run.steps=1", "run.name=tensor", "plan=plan.yaml")
        sharded = (self.folder / "plan.yaml").read_text().replace("t2", "d2z3")
        (self.folder / "sharded.yaml").write_text(sharded)
        self.tool_use("run.steps=1", "run.name=sharded", "plan=sharded.yaml")

        def said(name):
            return {s["sample"]: s["sequence_ids"] for s in self.samples(name)}

        self.assertEqual(said("tool_use"), said("one"))
        self.assertEqual(said("tool_use"), said("tensor"))
        self.assertEqual(said("tool_use"), said("sharded"))

    def test_recorded_conversations_train_alike_without_generation_I1a(self):
        self.tool_use("run.steps=2")
        recorded = self.run_folder("tool_use") / "samples.jsonl"
        self.tool_use("run.steps=2", "run.name=again", "plan=single",
                      f"run.replay={recorded}", "cluster.workers_per_node=1",
                      "cluster.devices_per_node=1")
        first, again = self.metrics("tool_use"), self.metrics("again")
        self.assertEqual(sorted(again), [1, 2])
        for step, line in first.items():
            for name in ("tool/asked", "tool/right"):
                self.assertEqual(line[name], again[step][name], name)
            for name in ("actor/loss", "actor/grad_norm"):
                self.assertAlmostEqual(line[name], again[step][name],
                                       delta=1e-4 * abs(line[name]) + 1e-6)
        speakers = {s["track"] for s in self.slices("again")}
        self.assertNotIn("solver", speakers)

        rows = read_rows(recorded)
        for row in rows:
            del row["keys"]
        write_rows(self.folder / "bare.jsonl", rows)
        wrong = self.tool_use("run.steps=2", "run.name=bare",
                              "run.replay=bare.jsonl", code=2)
        self.assertRegex(wrong.stderr, r"bare\.jsonl:1.*keys")

    def test_every_message_of_a_user_actor_has_two_ends(self):
        self.tool_use("run.steps=2")
        summary = json.loads(self.troupe(
            "trace", "summary", "runs/tool_use", "--json").stdout)
        self.assertEqual((summary["unmatched_arrows"],
                          summary["dropped_events"]), (0, 0))
        tracks = {}
        self.troupe("trace", "export", "runs/tool_use")
        file = self.run_folder("tool_use") / "trace.json"
        events = json.loads(file.read_text())["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
                 if e["ph"] == "M" and e["name"] == "thread_name"}
        for event in events:
            if event["ph"] == "s":
                track = names[event["pid"], event["tid"]]
                tracks[track] = tracks.get(track, 0) + 1
        turns = tracks["model solve"]      # one response each
        self.assertGreaterEqual(turns, 2 * 64)
        self.assertEqual(tracks["samples of solve"], 2 * 64)
        self.assertEqual(tracks["solver"], turns + 2 * 64)

    def test_a_leader_that_fails_is_named(self):
        failed = self.tool_use("run.steps=1", "rollout.max_new_tokens=2",
                               "rollout.kv_cache_gb=0.000000001", code=1)
        self.assertIn("does not fit the KV cache", failed.stderr)

    def test_plans_know_the_call(self):
        shown = self.program("tool_use", "plan simulate", "--json")
        calls = {task["call"] for task in json.loads(shown.stdout)["tasks"]}
        self.assertLessEqual({"solve", "compare", "actor_train"}, calls)


if __name__ == "__main__":
    unittest.main()
