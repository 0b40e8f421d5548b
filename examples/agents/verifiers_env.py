"""An environment of the package `verifiers` as an agent: a session is one rollout of
it, whose reward is that of its rubric.

    pip install verifiers==0.1.14                 # any with vf.Environment
    python3 examples/agents/verifiers_env.py ENV --rows rows.jsonl
    build/troupe train RUN.yaml data.train=rows.jsonl reward.kind=agents \\
        agents.command='python3 examples/agents/verifiers_env.py ENV'

ENV is the name of an installed environment, or a FILE.py with `load_environment`.
--rows writes its data set as rows: each has the prompt, for the record, and which row
of the environment it is. Arguments of load_environment: --args '{"difficulty": 2}'."""
import argparse
import asyncio
import importlib.util
import json
import os
import sys

import verifiers as vf
from verifiers.types import ClientConfig


def environment(name, arguments):
    """The environment of this name or file."""
    if not name.endswith(".py"):
        return vf.load_environment(name, **arguments)
    spec = importlib.util.spec_from_file_location("environment", name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load_environment(**arguments)


def text_of(prompt):
    """A prompt of messages, or a text, as text."""
    if isinstance(prompt, str):
        return prompt
    return "".join(message["content"] for message in prompt)


def write_rows(rows, file):
    with open(file, "w", encoding="utf-8") as out:
        for number, row in enumerate(rows):
            out.write(json.dumps({"prompt": text_of(row["prompt"]), "row": number}) + "\n")


async def run(env, row):
    """One rollout through the session's endpoint; its reward."""
    client = ClientConfig(api_base_url=os.environ["OPENAI_BASE_URL"],
                          api_key_var="OPENAI_API_KEY", max_retries=0)
    end = await env.run_rollout(row, client, "actor", {})
    if end.get("error"):
        raise RuntimeError(f"the environment failed: {end['error']}")
    return end["reward"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env", metavar="ENV")
    parser.add_argument("--rows", metavar="FILE", help="write its data set here and end")
    parser.add_argument("--args", type=json.loads, default={}, metavar="JSON")
    given = parser.parse_args()
    env = environment(given.env, given.args)
    rows = env.get_dataset()
    if given.rows:
        write_rows(rows, given.rows)
        return
    row = rows[int(json.loads(sys.stdin.readline())["row"])]
    print(json.dumps({"reward": float(asyncio.run(run(env, row)))}))


if __name__ == "__main__":
    main()
