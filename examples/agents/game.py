"""A game for two: the model plays against this program, or against the model that
its argument names (duel.yaml). Both take 1 to 3 stones from a pile in turn; who
takes the last one wins, an invalid move loses. The other's moves are read by the
model, not trained on."""
import http.client
import json
import os
import random
import re
import sys
import urllib.parse

BASE = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
           "Content-Type": "application/json"}


def complete(text, **model):
    connection = http.client.HTTPConnection(BASE.hostname, BASE.port)
    connection.request("POST", BASE.path + "/completions",
                       json.dumps({"prompt": text, "max_tokens": 8, **model}),
                       HEADERS)
    reply = connection.getresponse()
    body = json.load(reply)
    if reply.status != 200:
        raise RuntimeError(body["error"]["message"])
    return body["choices"][0]["text"]


def take(text, left, said):
    """The transcript and the pile after a move, None after an invalid one; the
    referee counts."""
    move = re.fullmatch(r"take ([123])\n", said)
    if not move or int(move[1]) > left:
        return text, None
    left -= int(move[1])
    return text + said + (f"left {left}\n" if left else ""), left


def play(task, reply):
    """1 if the model wins, 0 if it loses, -1 for an invalid move."""
    text, left = task, int(task.split()[1])
    while True:
        text, left = take(text, left, complete(text))
        if not left:
            return 1 if left == 0 else -1
        text, left = take(text, left, reply(text, left))
        if not left:
            return 0 if left == 0 else 1


def main():
    row = json.loads(sys.stdin.readline())
    # the same game again for the same sample: nothing here rolls other dice
    dice = random.Random(os.environ["TROUPE_SAMPLE"] + row["prompt"])

    def reply(text, left):
        if len(sys.argv) > 1:
            return complete(text, model=sys.argv[1])
        return f"take {dice.randint(1, min(3, left))}\n"

    print(json.dumps({"reward": play(row["prompt"], reply)}))


if __name__ == "__main__":
    main()
