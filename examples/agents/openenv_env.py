"""An environment behind an OpenEnv server as an agent: a session is one episode.

    pip install 'openenv-core[core]==0.2.1'
    build/troupe train RUN.yaml reward.kind=agents \\
        agents.command='python3 examples/agents/openenv_env.py http://127.0.0.1:8000 \\
                        --action message --observation echoed_message'

--action is the field of an action that gets the model's words, --observation the field of
an observation that the model reads. The reward is the sum of the episode's. The row's
prompt comes before the first observation; a column `seed` is passed to the reset."""
import argparse
import http.client
import json
import os
import sys
import urllib.parse

from openenv.core.generic_client import GenericEnvClient

BASE = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
           "Content-Type": "application/json"}


def complete(text):
    """The model's next words after `text`, and why they end."""
    connection = http.client.HTTPConnection(BASE.hostname, BASE.port)
    connection.request("POST", BASE.path + "/completions",
                       json.dumps({"prompt": text}), HEADERS)
    reply = connection.getresponse()
    body = json.load(reply)
    if reply.status != 200:
        raise RuntimeError(body["error"]["message"])
    return body["choices"][0]["text"], body["choices"][0]["finish_reason"]


def play(env, row, given):
    """An episode; the sum of its rewards."""
    seed = {"seed": row["seed"]} if "seed" in row else {}
    state = env.reset(**seed)
    text = row["prompt"] + str(state.observation[given.observation])
    total = state.reward or 0
    for _ in range(given.most_turns):
        if state.done:
            break
        said, finish = complete(text)
        state = env.step({given.action: said})
        total += state.reward or 0
        text += said + str(state.observation[given.observation])
        if finish == "length":
            break
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--action", default="message", metavar="FIELD")
    parser.add_argument("--observation", default="message", metavar="FIELD")
    parser.add_argument("--most-turns", type=int, default=32, metavar="N")
    given = parser.parse_args()
    row = json.loads(sys.stdin.readline())
    with GenericEnvClient(base_url=given.url) as env:
        print(json.dumps({"reward": float(play(env, row, given))}))


if __name__ == "__main__":
    main()
