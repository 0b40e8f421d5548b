"""A game for two: the model plays against this program. Both take 1 to 3 stones
from a pile in turn; who takes the last one wins, an invalid move loses. The
program's moves are read by the model, not trained on."""
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


def complete(text):
    connection = http.client.HTTPConnection(BASE.hostname, BASE.port)
    connection.request("POST", BASE.path + "/completions",
                       json.dumps({"prompt": text, "max_tokens": 8}), HEADERS)
    reply = connection.getresponse()
    body = json.load(reply)
    if reply.status != 200:
        raise RuntimeError(body["error"]["message"])
    return body["choices"][0]["text"]


def take(text, left, stones):
    """The transcript and the pile after a move; the referee counts."""
    left -= stones
    return text + (f"left {left}\n" if left else ""), left


def play(task, opponent):
    """1 if the model wins, 0 if it loses, -1 for an invalid move."""
    text, left = task, int(task.split()[1])
    while True:
        said = complete(text)
        move = re.fullmatch(r"take ([123])\n", said)
        if not move or int(move[1]) > left:
            return -1
        text, left = take(text + said, left, int(move[1]))
        if left == 0:
            return 1
        stones = opponent.randint(1, min(3, left))
        text, left = take(text + f"take {stones}\n", left, stones)
        if left == 0:
            return 0


def main():
    row = json.loads(sys.stdin.readline())
    # the same game again for the same sample: nothing here rolls other dice
    opponent = random.Random(os.environ["TROUPE_SAMPLE"] + row["prompt"])
    print(json.dumps({"reward": play(row["prompt"], opponent)}))


if __name__ == "__main__":
    main()
