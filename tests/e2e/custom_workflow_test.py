"""Programs with user-defined workflows run like the built-in ones: user-defined actors,
functions, losses and settings, over two worker processes."""
import json
import subprocess
import unittest

from support import BUILD, TINY, Case

EXAMPLES = TINY.parent
PROGRAMS = BUILD / "examples"


class UserWorkflow(Case):
    def program(self, name, *arguments, code=0, seconds=90):
        """Runs build/examples/NAME as `self.troupe` runs build/troupe."""
        done = subprocess.run(
            [str(PROGRAMS / name), *map(str, arguments)], cwd=self.folder,
            env=self.environment, capture_output=True, text=True,
            timeout=seconds)
        self.assertEqual(done.returncode, code,
                         f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def samples(self, name):
        text = (self.run_folder(name) / "samples.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def best_of_n(self, *overrides):
        folder = EXAMPLES / "best_of_n"
        return ["train", folder / "best_of_n.yaml", "run.steps=3",
                "models.actor.path=data/base", "data.train=data/prompts.jsonl",
                "data.batch_size=8", "rollout.max_new_tokens=12",
                f"best_of_n.tool={folder}/is_kind.sh", *overrides]

    def hello(self, *overrides):
        return ["train", EXAMPLES / "hello_actor/hello.yaml", "run.steps=2",
                "models.actor.path=data/base", "data.train=data/prompts.jsonl",
                "data.batch_size=8", "rollout.max_new_tokens=12", *overrides]

    def test_a_user_actor_scores_and_a_user_loss_trains(self):
        self.program("hello_actor", *self.hello())
        steps = self.metrics("hello")
        self.assertEqual(sorted(steps), [1, 2])
        samples = self.samples("hello")
        for step, line in steps.items():
            own = [len(s["response"].encode()) for s in samples
                   if s["step"] == step]
            self.assertEqual(len(own), 8)
            self.assertAlmostEqual(line["hello/letters"],
                                   sum(own) / len(own), places=3)
            self.assertGreater(line["actor/grad_norm"], 0)

    def hello_placed(self, name, count, code=0):
        """A run of hello under a plan that places the counter like this."""
        (self.folder / "plan.yaml").write_text(f"""
cluster: {{nodes: 1, devices_per_node: 2, workers_per_node: 2}}
calls:
  actor_gen:   {{devices: 0-1, strategy: d2}}
  count:       {count}
  shortness:   {{devices: host}}
  metrics:     {{devices: host}}
  actor_train: {{devices: 0-1, strategy: d2}}
""")
        return self.program("hello_actor", *self.hello(
            f"run.name={name}", "plan=plan.yaml"), code=code)

    def counters(self, name):
        """{process: rows of its user-defined actors} of the run's trace."""
        self.troupe("trace", "export", f"runs/{name}")
        events = json.loads((self.run_folder(name) / "trace.json").read_text())
        found = {}
        for event in events["traceEvents"]:
            row = event.get("args", {}).get("name", "")
            if event.get("name") == "thread_name" and row.startswith("counter"):
                found.setdefault(event["pid"], set()).add(row)
        return list(found.values())

    def test_a_plan_places_user_actors_on_hosts_or_workers_I1(self):
        self.hello_placed("all", "{devices: host}")
        self.hello_placed("host", "{devices: host, instances: 1}")
        self.hello_placed("two", "{devices: workers, instances: 2}")
        self.assertEqual(self.counters("all"), [{"counter"}] * 2)
        self.assertEqual(self.counters("host"), [{"counter"}])
        self.assertEqual(self.counters("two"),
                         [{"counter", "counter 2"}] * 2)
        ours = self.metrics("all")
        for name in ("host", "two"):
            theirs = self.metrics(name)
            for step in ours:
                for metric in ("hello/letters", "actor/loss"):
                    self.assertEqual(ours[step][metric], theirs[step][metric])
            summary = json.loads(self.troupe(
                "trace", "summary", f"runs/{name}", "--json").stdout)
            self.assertEqual(summary["unmatched_arrows"], 0)
        wrong = self.hello_placed("wrong", "{devices: 0-1, strategy: d2}",
                                  code=3)
        self.assertIn("calls.count.devices: expected host, where functions run",
                      wrong.stderr)

    def test_best_of_n_asks_a_program_and_keeps_one_per_group(self):
        done = self.program("best_of_n", *self.best_of_n())
        steps = self.metrics("best_of_n")
        self.assertEqual(sorted(steps), [1, 2, 3])
        self.assertRegex(done.stdout, r"step 3/3 .*\| tool/score \d")
        words = ("kind", "fresh", "warm", "good", "happy")
        samples = self.samples("best_of_n")
        for step, line in steps.items():
            scores = [float(any(w in s["response"] for w in words))
                      for s in samples if s["step"] == step]
            self.assertEqual(len(scores), 32)
            self.assertEqual(scores, [s["keys"]["tool_score"][0]
                                      for s in samples if s["step"] == step])
            self.assertAlmostEqual(line["tool/score"],
                                   sum(scores) / len(scores), places=5)

    def test_a_user_actor_starts_on_each_finished_sample(self):
        # one response at a time: all but the last are there long before it
        self.program("best_of_n", *self.best_of_n(
            "rollout.max_sequences=1", "run.steps=2"))
        ends, handled = {}, {}
        for s in self.slices("best_of_n"):
            if s["name"] == "actor_gen" and s["track"].startswith("device"):
                ends.setdefault(s["step"], []).append(s["end"])
            if s["name"] == "run" and s["track"] == "checker":
                handled.setdefault(s["step"], []).append(s["end"])
        self.assertEqual((len(ends), sorted(handled)), (2, sorted(ends)))
        for step, times in handled.items():
            self.assertEqual(len(times), 32, f"each once in step {step}")
        self.assertGreater(sum(end < max(ends[step])
                               for step, times in handled.items()
                               for end in times), 0)

    def test_one_worker_gives_the_same_numbers_I1(self):
        self.program("hello_actor", *self.hello())
        self.program("hello_actor", *self.hello(
            "run.name=one", "cluster.workers_per_node=1",
            "cluster.devices_per_node=1", "plan=single"))
        two, one = self.metrics("hello"), self.metrics("one")
        for step in two:
            for name in ("hello/letters", "actor/loss"):
                self.assertAlmostEqual(two[step][name], one[step][name],
                                       delta=1e-4 * abs(one[step][name]))

    def test_carried_values_resume_I8(self):
        example = [EXAMPLES / "ema_reference/ema_reference.yaml",
                   "models.actor.path=data/base",
                   "data.train=data/prompts.jsonl", "rollout.max_new_tokens=12",
                   "models.actor.optimizer.schedule=constant",
                   "models.actor.optimizer.warmup=0"]
        for name, steps in (("whole", 4), ("parts", 2), ("parts", 4)):
            self.program("ema_reference", "train", *example,
                         f"run.name={name}", f"run.steps={steps}")
        whole, parts = self.metrics("whole"), self.metrics("parts")
        strength = 1
        for step, line in whole.items():
            now = line["ema_reference/strength"]
            self.assertIn(round(now / strength, 5), (1.25, 0.8), step)
            strength = now
            for key in ("ema_reference/strength", "actor/loss"):
                self.assertEqual(line[key], parts[step][key], (step, key))
        state = [json.loads((self.latest(name) / "state/run.json").read_text())
                 for name in ("whole", "parts")]
        self.assertEqual(*(s["carried_bits"] for s in state))

    def test_two_roles_train_on_the_debates_that_they_win(self):
        self.program("debate", "train", EXAMPLES / "debate/debate.yaml",
                     "run.steps=2", "models.a.path=data/base",
                     "data.train=data/prompts.jsonl", "data.batch_size=8",
                     "rollout.max_new_tokens=12")
        for line in self.metrics("debate").values():
            self.assertLessEqual(line["debate/a_won"] + line["debate/b_won"],
                                 1)
            self.assertIn("b/loss", line)

    def test_recorded_debates_keep_who_said_what_I1a(self):
        debate = ["train", EXAMPLES / "debate/debate.yaml", "run.steps=2",
                  "models.a.path=data/base", "data.train=data/prompts.jsonl",
                  "data.batch_size=8", "rollout.max_new_tokens=12"]
        self.program("debate", *debate)
        recorded = self.run_folder("debate") / "samples.jsonl"
        self.program("debate", *debate, "run.name=again",
                     f"run.replay={recorded}")
        first, again = self.metrics("debate"), self.metrics("again")
        for step, line in first.items():
            for name in ("debate/a_won", "debate/b_won", "a/loss", "b/loss"):
                self.assertEqual(line[name], again[step][name], name)

    def test_a_workflow_file_is_its_workflow_I8(self):
        calls = (TINY / "frozen_critic.yaml").read_text()
        calls = calls.replace("critic: {", "critic: {trained: true, ")
        calls += ("  critic_train: {train: critic, fn: ppo_critic_loss, "
                  "reads: [sequence_ids, loss_mask, values, returns]}\n")
        (self.folder / "graph.yaml").write_text(calls)
        self.troupe(*self.ppo("run.steps=2"))
        self.troupe(*self.ppo("run.steps=2", "run.name=file",
                              "workflow=graph.yaml"))
        ours, theirs = self.metrics("ppo"), self.metrics("file")
        for step in ours:
            for name in ("critic/score/mean", "actor/pg_loss",
                         "critic/vf_loss", "actor/grad_norm"):
                self.assertEqual(ours[step][name], theirs[step][name], name)

    def test_a_wrong_workflow_file_names_its_line(self):
        (self.folder / "graph.yaml").write_text(
            "roles: {actor: {trained: true}}\ncalls:\n"
            "  actor_gen: {generat: actor}\n")
        wrong = self.troupe(*self.ppo("workflow=graph.yaml"), code=2)
        self.assertIn("graph.yaml:3", wrong.stderr)
        self.assertIn("generate", wrong.stderr)

    def test_a_file_that_trains_a_role_twice_is_refused_I4(self):
        calls = (TINY / "frozen_critic.yaml").read_text()
        text = calls + "  again: {train: actor, fn: ppo_actor_loss}\n"
        (self.folder / "graph.yaml").write_text(text)
        wrong = self.troupe(*self.ppo("workflow=graph.yaml"), code=2)
        self.assertIn(f"graph.yaml:{text.count(chr(10))}: calls.again.train",
                      wrong.stderr)
        self.assertIn("actor, which actor_train trains", wrong.stderr)

    def test_user_settings_are_explained_and_checked(self):
        text = self.program("best_of_n", "explain", "best_of_n").stdout
        self.assertIn("deadline_ms: 5000", text)
        text = self.program("best_of_n", "explain", "workflow").stdout
        self.assertIn("best_of_n", text)
        wrong = self.program("best_of_n",
                             *self.best_of_n("best_of_n.deadlin_ms=3"), code=2)
        self.assertIn("best_of_n.deadline_ms", wrong.stderr)
        wrong = self.program("best_of_n",
                             *self.best_of_n("best_of_n.tool=null"), code=2)
        self.assertIn("best_of_n.tool", wrong.stderr)

    def test_hints_name_the_program(self):
        wrong = self.program("hello_actor", "train", "--colour", code=2)
        self.assertIn("try `hello_actor train --help`", wrong.stderr)

    def test_plans_know_the_calls(self):
        shown = self.program("best_of_n", "plan", "simulate", *self.best_of_n(
            "--json")[1:])
        names = {task["call"] for task in json.loads(shown.stdout)["tasks"]}
        self.assertLessEqual({"actor_gen", "check", "pick_best", "actor_train"},
                             names)

    def test_a_program_that_fails_is_named(self):
        failed = self.program(
            "best_of_n", *self.best_of_n("best_of_n.tool=/bin/false"), code=2)
        self.assertIn("/bin/false", failed.stderr)
        self.assertIn("checker", failed.stderr)

    def test_a_silent_user_actor_is_named_with_its_sample_I7(self):
        silent = self.program("best_of_n", *self.best_of_n(
            "best_of_n.tool=sleep 1000", "best_of_n.deadline_ms=600000",
            "cluster.own_actor_timeout_s=2"), code=1, seconds=60)
        self.assertRegex(silent.stderr,
                         r"user-defined actor checker in check of step 1: sample \d+: "
                         r"the actor has returned nothing for [23] s")
        self.assertIn("cluster.own_actor_timeout_s", silent.stderr)
        self.assertNotIn("of step 0", silent.stderr)

    def test_workers_of_another_program_lack_the_user_workflow(self):
        wrong = self.troupe(*self.best_of_n(), code=2)
        self.assertIn("workflow", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
