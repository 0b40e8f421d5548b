"""Agents from outside: programs that lead the samples of GRPO over an endpoint
like OpenAI's; tokens as they were said, rewards, failures (examples/agents)."""
import re
import sys
import unittest

from conversation_test import EXAMPLES, Talk

CLIENT = r"""
import http.client, json, os, sys, time, urllib.parse
base = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])

def ask(path, body, key=os.environ["OPENAI_API_KEY"]):
    connection = http.client.HTTPConnection(base.hostname, base.port)
    connection.request("POST", base.path + path, json.dumps(body),
                       {"Authorization": "Bearer " + key})
    reply = connection.getresponse()
    return reply.status, reply.read().decode()

row = json.loads(sys.stdin.readline())
sample = int(os.environ["TROUPE_SAMPLE"])
"""


# one step of 8 samples of the calculator's rows, on one device
SMALL = ["run.steps=1", "data.batch_size=4", "rollout.n=2", "plan=single",
         "cluster.devices_per_node=1", "cluster.workers_per_node=1"]


class AgentRuns(Talk):
    LANGUAGES = ["tool_use"]

    @classmethod
    def setUpClass(cls):
        """Models of their examples' languages."""
        super().setUpClass()
        for language in cls.LANGUAGES:
            cls.learn(language)

    def arguments(self, example, *overrides, program=None):
        """Words of a run of examples/agents/EXAMPLE.yaml."""
        language = {"calculator": "tool_use", "game": "self_play",
                    "treasure": "agents"}[example]
        program = program or EXAMPLES / "agents" / f"{example}.py"
        return ["train", EXAMPLES / "agents" / f"{example}.yaml",
                f"models.actor.path=data/runs/{language}/latest/actor",
                f"data.train=data/{language}/prompts.jsonl",
                f"agents.command={sys.executable} -B {program}", *overrides]

    def agent(self, example, *overrides, code=0, program=None):
        return self.troupe(
            *self.arguments(example, *overrides, program=program), code=code)

    def program(self, text):
        """A program of the test's, after the client's lines."""
        file = self.folder / "agent.py"
        file.write_text(CLIENT + text)
        return file

    def small(self, text, *overrides, code=0):
        return self.agent("calculator", *SMALL, "agents.retries=0", *overrides,
                          program=self.program(text), code=code)

    def said(self, name):
        return {(s["step"], s["sample"]):
                (s["sequence_ids"], s["loss_mask"], s["score"])
                for s in self.samples(name)}


class Agents(AgentRuns):
    LANGUAGES = ["tool_use", "self_play", "agents"]  # rooms have their own data

    # -- the examples --------------------------------------------------------

    def test_the_calculator_is_asked_more_and_more(self):
        self.agent("calculator")
        first, last = self.rise("calculator", "critic/score/mean")
        self.assertGreater(last, first + 0.15)
        told = re.compile(r"calc (\d+)\+(\d+)=(\d+)\n", re.A)
        asked = 0
        for sample in self.samples("calculator"):
            a, b = map(int, sample["prompt"].strip().split("+"))
            text = sample["response"]
            tools = told.findall(text)
            asked += len(tools)
            for one, other, result in tools:
                self.assertEqual(int(one) + int(other), int(result))
            mask = sample["loss_mask"]
            own = mask[mask.index(1):]
            masked = sum(len(result) + 1 for _, _, result in tools)
            self.assertEqual(own.count(0), masked, text)  # one byte per token
            for kept, number in zip(mask, sample["logprobs"]):
                self.assertTrue(kept or number == 0)
            answer = re.search(r"so (\d+)\.$", text, re.A)
            right = bool(answer) and int(answer[1]) == a + b
            self.assertEqual(sample["score"], right, text)
        self.assertGreater(asked, 50)
        for line in self.metrics("calculator").values():
            self.assertGreaterEqual(line["agents/turns"], 1)
            self.assertEqual((line["agents/failed"], line["agents/retries"],
                              line["agents/unused_turns"]), (0, 0, 0))

    def test_a_game_and_an_environment_are_played_to_their_ends(self):
        self.agent("game", "run.steps=3")
        for sample in self.samples("game"):
            self.assertIn(sample["score"], (-1, 0, 1))
        self.agent("treasure", "run.steps=3")
        for sample in self.samples("treasure"):
            self.assertLessEqual(sample["score"], 1)
            if sample["response"].endswith("found"):
                self.assertGreater(sample["score"], 0)
            self.assertRegex(sample["prompt"], r"treasure \d room \d\n")

    def duel(self, *overrides):
        """A run of examples/agents/duel.yaml."""
        player = "data/runs/self_play/latest/actor"
        return self.troupe(
            "train", EXAMPLES / "agents/duel.yaml", "run.steps=2",
            f"models.actor.path={player}", f"models.opponent.path={player}",
            "data.train=data/self_play/prompts.jsonl",
            f"agents.command={sys.executable} -B {EXAMPLES}/agents/game.py opponent",
            *overrides)

    def own_moves(self, text):
        """The number of the player's moves between the referee's lines; the opponent
        has every second one."""
        moves = [line for line in text.split("\n") if line and line[:5] != "left "]
        return (len(moves) + 1) // 2

    def test_a_frozen_opponent_is_asked_by_name_and_not_trained_I1_I2(self):
        player = self.folder / "data/runs/self_play/latest/actor"
        weights = {file: file.read_bytes() for file in player.glob("*.safetensors")}
        self.assertTrue(weights)
        self.duel()
        replies = 0
        for sample in self.samples("duel"):
            self.assertIn(sample["score"], (-1, 0, 1))
            text, mask = sample["response"], sample["loss_mask"]
            for kept, number in zip(mask, sample["logprobs"]):
                self.assertTrue(kept or number == 0)
            runs = sum(now > before for before, now in zip([0, *mask], mask))
            self.assertEqual(runs, self.own_moves(text), text)
            replies += text.count("take") // 2
        self.assertGreater(replies, 10)
        for line in self.metrics("duel").values():
            self.assertEqual((line["agents/failed"], line["agents/unused_turns"]),
                             (0, 0))
        self.assertFalse((self.run_folder("duel") / "latest/opponent").exists())
        for file, before in weights.items():
            self.assertEqual(file.read_bytes(), before)
        self.duel("run.name=one", "plan=single", "cluster.workers_per_node=1",
                  "cluster.devices_per_node=1", "agents.concurrency=3")
        self.assertEqual(self.said_with("duel"), self.said_with("one"))

    def test_models_are_listed_and_strangers_among_them_refused(self):
        self.small(r"""
status, text = ask("/models", {})
assert [m["id"] for m in json.loads(text)["data"]] == ["actor", "opponent"], text
status, text = ask("/completions", {"prompt": row["prompt"], "model": "nobody"})
assert status == 404 and "model_not_found" in text, text
status, text = ask("/completions", {"prompt": row["prompt"], "max_tokens": 3,
                   "model": "opponent"})
body = json.loads(text)
assert status == 200 and body["model"] == "opponent", text
status, text = ask("/completions", {"prompt": row["prompt"]
                   + body["choices"][0]["text"], "max_tokens": 3})
assert json.loads(text)["model"] == "actor", text
print(json.dumps({"reward": 1}))
""", "agents.with=[opponent]")
        for sample in self.samples("calculator"):
            self.assertRegex("".join(map(str, sample["loss_mask"])), r"^0+1+$")

    def test_agents_lead_the_generation_of_a_workflow_file(self):
        def said(*overrides):
            self.agent("calculator", "run.steps=2", "run.resume=fresh",
                       "algorithm.kl_in=loss", *overrides)
            return [(s["sequence_ids"], s["score"], s["logprobs"])
                    for s in self.samples("calculator")]

        self.assertEqual(
            said(), said(f"workflow={EXAMPLES}/workflows/grpo.yaml"))

    def test_the_same_sessions_under_another_plan_I1_I2(self):
        self.agent("calculator", "run.steps=2")
        self.agent("calculator", "run.steps=2", "run.name=one", "plan=single",
                   "cluster.workers_per_node=1", "cluster.devices_per_node=1",
                   "agents.concurrency=3")
        self.assertEqual(self.said("calculator"), self.said("one"))
        first, one = self.metrics("calculator"), self.metrics("one")
        for step, line in first.items():
            self.assertAlmostEqual(
                line["actor/grad_norm"], one[step]["actor/grad_norm"],
                delta=1e-4 * abs(line["actor/grad_norm"]) + 1e-6)

    # -- the endpoint --------------------------------------------------------

    def test_branches_are_answered_and_the_last_is_trained_on(self):
        self.small(r"""
status, text = ask("/completions", {"prompt": row["prompt"], "n": 2,
                   "max_tokens": 4, "logprobs": 1, "return_token_ids": True})
body = json.loads(text)
assert status == 200, text
one, _ = body["choices"]
assert len(one["token_ids"]) == len(one["logprobs"]["token_logprobs"])
status, text = ask("/completions", {"prompt": body["prompt_token_ids"]
                   + one["token_ids"] + body["prompt_token_ids"],
                   "max_tokens": 3, "stream": True})
assert text.endswith("data: [DONE]\n\n"), text
print(json.dumps({"reward": 1}))
""")
        line = self.metrics("calculator")[1]
        self.assertEqual((line["agents/turns"], line["agents/failed"]), (3, 0))
        self.assertEqual(line["agents/unused_turns"], 8)
        for sample in self.samples("calculator"):
            mask = "".join(map(str, sample["loss_mask"]))
            prompt = mask.index("1")
            self.assertRegex(mask, rf"^0{{{prompt}}}1+0{{{prompt}}}1+$")

    def test_strangers_and_mistakes_get_a_sentence(self):
        self.small(r"""
status, text = ask("/completions", {"prompt": "a"}, key="guessed")
assert status == 401 and "OPENAI_API_KEY" in text, text
status, text = ask("/chat/completions", {"messages": [{"role": "user",
                   "content": "hi"}]})
assert status == 400 and "chat template" in text, text
status, text = ask("/completions", {"prompt": "a", "stop": ["never"]})
assert status == 400 and "rollout.stop" in text, text
status, text = ask("/completions", {"prompt": row["prompt"]})
assert status == 200, text
status, text = ask("/reward", {"reward": 0.25})
assert status == 200, text
""")
        self.assertEqual({sample["score"] for sample in
                          self.samples("calculator")}, {0.25})

    # -- servers -------------------------------------------------------------

    def over_a_server(self, *overrides, fault=""):
        """Three steps of the calculator over a stand-in of vLLM's server."""
        self.environment |= {"VLLM_STAND_IN": fault,
                             "VLLM_STAND_IN_COUNT": str(self.folder / "count")}
        return self.agent("calculator", "run.steps=3", *self.served("tool_use"),
                          *overrides)

    def check_served(self, line):
        """Log-probabilities are those of the step's weights, as our engine
        computes them before the first turn, and as training does."""
        self.assertLess(line["rollout/engine_logprob_gap"], 1e-4)
        self.assertLess(line["training/rollout_probs_diff_mean"], 1e-4)
        self.assertGreater(line["rollout/engine_update_gb"], 0)

    def said_with(self, name):
        return [(s["step"], s["sample"], s["sequence_ids"], s["score"])
                for s in self.samples(name)]

    def test_a_server_answers_the_turns_with_the_weights_of_each_version(self):
        self.over_a_server()
        lines = self.metrics("calculator")
        self.assertEqual(max(lines), 3)
        for line in lines.values():
            self.check_served(line)
            self.assertEqual((line["agents/failed"], line["agents/retries"],
                              line["agents/unused_turns"]), (0, 0, 0))
        self.assertGreater(max(line["agents/turns"] for line in lines.values()), 1)
        told = re.compile(r"calc (\d+)\+(\d+)=(\d+)\n", re.A)
        asked = 0
        for sample in self.samples("calculator"):
            tools = told.findall(sample["response"])
            asked += len(tools)
            for one, other, result in tools:
                self.assertEqual(int(one) + int(other), int(result))
            mask = sample["loss_mask"]
            masked = sum(len(result) + 1 for _, _, result in tools)
            self.assertEqual(mask[mask.index(1):].count(0), masked)
        self.assertGreater(asked, 0)

    def test_the_turns_that_a_dead_server_owes_are_asked_again(self):
        self.over_a_server("run.steps=2")
        self.assertGreater((self.folder / "count").stat().st_size, 9)
        (self.folder / "count").unlink()
        self.over_a_server("run.steps=2", "run.name=dies", fault="die_at:9")
        lines = self.metrics("dies").values()
        self.assertEqual(sum(line["rollout/engine_restarts"] for line in lines), 1)
        self.assertEqual(sum(line["agents/failed"] for line in lines), 0)
        self.assertEqual(self.said_with("dies"), self.said_with("calculator"))

    # -- failures ------------------------------------------------------------

    FAILS_ONCE = r"""
mark = f"failed_{sample}"
if sample % 4 == 0 and not os.path.exists(mark):
    open(mark, "w").close()
    raise KeyError("no such thing")
ask("/completions", {"prompt": row["prompt"], "max_tokens": 4})
print(json.dumps({"reward": 2}))
"""

    def test_a_failed_session_is_run_again(self):
        self.small(self.FAILS_ONCE, "agents.retries=1")
        line = self.metrics("calculator")[1]
        self.assertEqual((line["agents/failed"], line["agents/retries"]),
                         (0, 2))
        self.assertEqual(line["critic/score/mean"], 2)

    def test_one_that_fails_for_good_is_counted_and_its_group_goes_on(self):
        self.small(self.FAILS_ONCE, "reward.on_error=zero")
        line = self.metrics("calculator")[1]
        self.assertEqual((line["agents/failed"], line["reward/errors"]), (2, 2))
        self.assertEqual([sample["score"] for sample in
                          self.samples("calculator")],
                         [0, 2, 2, 2, 0, 2, 2, 2])

    def test_or_ends_the_run_with_its_last_words(self):
        done = self.small(self.FAILS_ONCE, code=2)
        self.assertRegex(done.stderr, r"sample \d: the program ended with exit "
                                      r"code 1: KeyError: 'no such thing'")

    def test_a_late_program_is_killed(self):
        self.small(r"""
ask("/completions", {"prompt": row["prompt"], "max_tokens": 4})
if sample == 3:
    time.sleep(1000)
print(json.dumps({"reward": 1}))
""", "agents.timeout_s=2", "reward.on_error=skip")
        line = self.metrics("calculator")[1]
        self.assertEqual(line["agents/failed"], 1)
        scores = [sample["score"] for sample in self.samples("calculator")]
        self.assertEqual(scores, [1, 1, 1, None, 1, 1, 1, 1])

    def test_a_sandbox_is_before_the_command(self):
        self.small(r"""
ask("/completions", {"prompt": row["prompt"], "max_tokens": 4})
print(json.dumps({"reward": float(os.environ["INSIDE"])}))
""", "agents.sandbox=env INSIDE=7")
        self.assertEqual({sample["score"] for sample in
                          self.samples("calculator")}, {7})


if __name__ == "__main__":
    unittest.main()
