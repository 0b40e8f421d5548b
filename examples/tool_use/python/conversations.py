"""The conversations of workflow.yaml: what the program beside it does in C++."""
import re

QUESTION = re.compile(r"calc (\d{1,4})\+(\d{1,4})=\Z", re.ASCII)


async def solve(model, sample):
    """A loop of turns; the samples of a batch run concurrently."""
    questions = 0
    turn = await model.extend(sample)
    while asked := QUESTION.search(turn):
        questions += 1
        sample.append(f"{int(asked[1]) + int(asked[2])}\n")  # loss_mask 0
        turn = await model.extend(sample)
    sample["asked"] = questions > 0
