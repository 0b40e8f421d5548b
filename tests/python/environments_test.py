"""examples/agents/*_env.py beside the real packages `verifiers` and OpenEnv: their
environments lead the samples of GRPO. `make environments` installs them."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import unittest

import package  # noqa: F401
from conversation_test import EXAMPLES, Talk
from support import SOURCE, until

AGENTS = EXAMPLES / "agents"
PYTHON = pathlib.Path(os.environ.get(
    "TROUPE_ENVIRONMENTS", SOURCE / ".deps/environments")) / "bin/python"
# the calculator behind an OpenEnv server: `python server.py PORT`
SERVER = r"""
import re, sys
import fastapi, uvicorn
from openenv.core.env_server.http_server import HTTPEnvServer
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

class Said(Action):
    message: str

class Told(Observation):
    message: str = ""

class Calculator(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    told = None

    def reset(self, seed=None, episode_id=None, **_):
        self.told = None
        return Told()

    def step(self, action, timeout_s=None, **_):
        asked = re.search(r"calc (\d+)\+(\d+)=$", action.message, re.A)
        if asked:
            self.told = int(asked[1]) + int(asked[2])
            return Told(message=f"{self.told}\n", reward=0.125)
        used = action.message.endswith(f"so {self.told}.")
        return Told(done=True, reward=float(used))

    @property
    def state(self):
        return State()

app = fastapi.FastAPI()
HTTPEnvServer(Calculator, Said, Told, max_concurrent_envs=16).register_routes(app)
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
"""


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@unittest.skipUnless(PYTHON.exists(), "no verifiers on this machine: make environments")
class Environments(Talk):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.learn("tool_use")

    def grpo(self, name, command, *overrides):
        """One step of examples/agents/calculator.yaml, as {sample: row}."""
        self.troupe(
            "train", AGENTS / "calculator.yaml", f"run.name={name}", "run.steps=1",
            "data.batch_size=4", "rollout.n=2", "agents.retries=0",
            "agents.concurrency=2", "agents.timeout_s=100", "reward.on_error=zero",
            "models.actor.path=data/runs/tool_use/latest/actor",
            "data.train=data/tool_use/prompts.jsonl",
            f"agents.command={command}", *overrides)
        return {row["sample"]: row for row in self.samples(name)}

    def test_verifiers_leads_the_tokens_of_the_plain_program(self):
        model = self.folder / "model"
        shutil.copytree(self.folder / "data/runs/tool_use/latest/actor", model)
        file = model / "tokenizer_config.json"
        plain = "{% for m in messages %}{{ m.content }}{% endfor %}"
        file.write_text(json.dumps(
            json.loads(file.read_text()) | {"chat_template": plain}))
        adapter = (f"{PYTHON} -B {AGENTS}/verifiers_env.py {AGENTS}/calculator_env.py "
                   """--args '{"rows": "data/tool_use/prompts.jsonl"}'""")
        subprocess.run(f"{adapter} --rows rows.jsonl", shell=True, check=True,
                       cwd=self.folder, timeout=100)
        ours = self.grpo("plain", f"{PYTHON} -B {AGENTS}/calculator.py")
        theirs = self.grpo("verifiers", adapter, "data.train=rows.jsonl",
                           f"models.actor.path={model}")
        self.assertEqual(len(theirs), 8)
        for sample, row in theirs.items():
            for key in ("sequence_ids", "loss_mask", "logprobs", "score"):
                self.assertEqual(row[key], ours[sample][key], (sample, key))

    def test_an_episode_of_openenv_is_a_session(self):
        server = self.folder / "server.py"
        server.write_text(SERVER)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen([PYTHON, "-B", server, str(port)])
        try:
            until(lambda: answers(port), "the OpenEnv server answers", 60)
            rows = self.grpo(
                "openenv",
                f"{PYTHON} -B {AGENTS}/openenv_env.py http://127.0.0.1:{port}")
        finally:
            process.kill()
            process.wait()
        self.assertEqual(self.metrics("openenv")[1]["agents/failed"], 0)
        asked = 0
        for row in rows.values():
            asked += row["response"].count("calc")
            self.assertIn(row["score"] % 0.125, (0,))
        self.assertGreater(asked, 0)
        self.assertGreater(max(row["score"] for row in rows.values()), 0)


if __name__ == "__main__":
    unittest.main()
