"""A pool of programs that take sessions from a run elsewhere, and play the
calculator as examples/agents/calculator.py does:

    build/troupe train examples/agents/calculator.yaml \\
      agents.command=outside agents.port=8000
    python3 examples/agents/pool.py http://127.0.0.1:8000/v1 \\
      runs/calculator/.agents_token 8

Any program on any machine that reaches the port can stand here: it asks for a
session, leads it with any client of OpenAI's protocol, and ends it."""
import http.client
import json
import pathlib
import re
import sys
import threading
import urllib.parse


def post(url, key, body):
    """The status and the JSON of an answer; no JSON for 204."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=600)
    connection.request("POST", at.path, json.dumps(body),
                       {"Authorization": "Bearer " + key,
                        "Content-Type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    return reply.status, json.loads(text) if text else None


def solve(session):
    """The transcript of one sum: the model may ask the calculator first."""
    text = session["row"]["prompt"]
    for _ in range(3):
        status, reply = post(session["base_url"] + "/completions",
                             session["key"], {"prompt": text})
        if status != 200:
            raise RuntimeError(reply["error"]["message"])
        choice = reply["choices"][0]
        text += choice["text"]
        question = re.search(r"calc (\d+)\+(\d+)=$", text, re.A)
        if not question or choice["finish_reason"] == "length":
            break
        text += f"{int(question[1]) + int(question[2])}\n"
    return text


def lead(session):
    """Leads a session and ends it, also where that fails."""
    try:
        answer = re.search(r"so (\d+)\.$", solve(session), re.A)
        right = bool(answer) and answer[1] == session["row"]["ground_truth"]
        end = {"reward": float(right)}
    except RuntimeError as error:
        print(f"sample {session['sample']}: {error}", file=sys.stderr)
        end = {"failed": True}
    post(session["base_url"] + "/sessions/end", session["key"], end)


def take_sessions(url, token):
    """Leads one session after another until the run closes its port."""
    try:
        status = 204
        while status in (200, 204):  # 204: none waits now
            status, session = post(url + "/sessions", token, {})
            if status == 200:
                lead(session)
        print(session["error"]["message"], file=sys.stderr)
    except (OSError, http.client.HTTPException):
        pass


if __name__ == "__main__":
    secret = pathlib.Path(sys.argv[2]).read_text().strip()
    for _ in range(int(sys.argv[3])):
        threading.Thread(target=take_sessions, args=(sys.argv[1], secret)).start()
