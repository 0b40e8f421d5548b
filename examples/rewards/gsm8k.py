"""A reward in Python: is the final number of the answer the row's?

    reward: {kind: python, file: examples/rewards/gsm8k.py}
    data:
      train: gsm8k_train.jsonl     # rows {"question": .., "answer": ".. #### 72"}
      fields: {prompt: "{question}\\nEnd with '#### <number>'.\\n", ground_truth: answer}

The signature is verl's; so is the strict reading of '#### <number>'. A score may
also be a mapping: its other numbers become metrics reward/NAME/mean.
"""
import re

NUMBER = re.compile(r"-?[0-9][0-9,]*(?:\.[0-9]+)?")


def final_number(text):
    """The number right behind the last '####', or None."""
    _, mark, rest = text.rpartition("####")
    found = NUMBER.match(rest.strip().lstrip("$")) if mark else None
    return float(found.group().replace(",", "")) if found else None


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    truth = final_number(ground_truth)
    if truth is None:  # a bare number, as verl's rows have it
        truth = float(ground_truth.replace(",", ""))
    answer = final_number(solution_str)
    return {"score": float(answer == truth), "formatted": answer is not None}
