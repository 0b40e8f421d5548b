"""An agent with a tool: the model may ask a calculator before it answers.
Started once per sample by examples/agents/calculator.yaml; any program that
reads OPENAI_BASE_URL and OPENAI_API_KEY can stand here, in any language."""
import http.client
import json
import os
import re
import sys
import urllib.parse

BASE = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
           "Content-Type": "application/json"}
MOST_QUESTIONS = 3


def complete(text):
    """The model's next words after `text`, and why they end."""
    connection = http.client.HTTPConnection(BASE.hostname, BASE.port)
    connection.request("POST", BASE.path + "/completions",
                       json.dumps({"prompt": text}), HEADERS)
    reply = connection.getresponse()
    body = json.load(reply)
    if reply.status != 200:
        raise RuntimeError(body["error"]["message"])
    choice = body["choices"][0]
    return choice["text"], choice["finish_reason"]


def solve(task):
    """The transcript of one sum."""
    text = task
    for _ in range(MOST_QUESTIONS):
        said, finish = complete(text)
        text += said
        question = re.search(r"calc (\d+)\+(\d+)=$", text, re.A)
        if not question or finish == "length":
            break
        a, b = map(int, question.groups())
        text += f"{a + b}\n"  # the tool: read by the model, not trained on
    return text


def main():
    row = json.loads(sys.stdin.readline())
    text = solve(row["prompt"])
    answer = re.search(r"so (\d+)\.$", text, re.A)
    right = bool(answer) and answer[1] == row["ground_truth"]
    print(json.dumps({"reward": float(right)}))


if __name__ == "__main__":
    main()
