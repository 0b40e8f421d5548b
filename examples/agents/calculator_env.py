"""The calculator of calculator.py as an environment of `verifiers`, for verifiers_env.py:
the model may ask it before it answers."""
import json
import re

import verifiers as vf
from datasets import Dataset

MOST_QUESTIONS = 3


def said(state):
    """The model's last words."""
    return state["trajectory"][-1]["completion"][-1].content or ""


def right(completion, answer):
    """1 if the conversation ends with the answer."""
    found = re.search(r"so (\d+)\.$", completion[-1].content or "", re.A)
    return float(bool(found) and found[1] == answer)


class Calculator(vf.MultiTurnEnv):
    async def env_response(self, messages, state, **_):
        a, b = re.search(r"calc (\d+)\+(\d+)=$", said(state), re.A).groups()
        return [{"role": "user", "content": f"{int(a) + int(b)}\n"}]

    @vf.stop
    async def asks_no_more(self, state):
        return bool(state["trajectory"]) and (
            state["trajectory"][-1]["is_truncated"]
            or not re.search(r"calc \d+\+\d+=$", said(state), re.A))


def load_environment(rows="runs/tool_data/prompts.jsonl"):
    with open(rows, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return Calculator(
        max_turns=MOST_QUESTIONS, rubric=vf.Rubric(funcs=[right]),
        dataset=Dataset.from_list([
            {"prompt": [{"role": "user", "content": row["prompt"]}],
             "answer": row["ground_truth"]} for row in rows]))
