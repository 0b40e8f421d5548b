"""A text environment in the form that others share (reset, step, done): rooms
in a row, one with a treasure. The model walks; the environment says where it
is, which is read by the model and not trained on."""
import http.client
import json
import os
import sys
import urllib.parse

BASE = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
           "Content-Type": "application/json"}
ROOMS, MOST_STEPS = 6, 6


class Rooms:
    """An environment: reset(row) -> text, step(action) -> text, reward, done."""

    def reset(self, row):
        self.treasure, self.room = row["treasure"], row["room"]
        self.steps = 0
        return row["prompt"]

    def step(self, action):
        self.steps += 1
        move = {"go left\n": -1, "go right\n": 1}.get(action)
        if move is None:
            return "", -0.5, True
        self.room = min(max(self.room + move, 1), ROOMS)
        if self.room == self.treasure:
            return "found", 1.0 - 0.05 * self.steps, True
        return f"room {self.room}\n", 0.0, self.steps == MOST_STEPS


def complete(text):
    connection = http.client.HTTPConnection(BASE.hostname, BASE.port)
    connection.request("POST", BASE.path + "/completions",
                       json.dumps({"prompt": text, "max_tokens": 10}), HEADERS)
    reply = connection.getresponse()
    body = json.load(reply)
    if reply.status != 200:
        raise RuntimeError(body["error"]["message"])
    return body["choices"][0]["text"]


def main():
    rooms = Rooms()
    text, total, done = rooms.reset(json.loads(sys.stdin.readline())), 0.0, False
    while not done:
        action = complete(text)
        seen, reward, done = rooms.step(action)
        text += action + seen
        total += reward
    print(json.dumps({"reward": total}))


if __name__ == "__main__":
    main()
