"""GRPO of a card by TRL with vLLM in the same process, beside `troupe-bench grpo`: seconds
from the start of one generation to that of the next, with `minibatches` optimizer steps
between them, bf16, no reference model, the length of a response as its reward.

    trl_vllm.py --card qwen3_0.6b [--cards FILE] [--iterations N] [--memory SHARE] --out DIR

The model has the card's shape and random weights. As in troupe-bench, hidden feature 0 is
a constant with which the head keeps pad and end from being drawn, so that every response
has the card's length. Needs a GPU, trl and vllm; prints a line of JSON."""
import argparse
import json
import os
import pathlib
import random
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_DISABLED", "true")
# pylint: disable=wrong-import-position
import torch
import trl
import vllm
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config,
                          Qwen3ForCausalLM, TrainerCallback)

PAD, END = 0, 1
WARM_UP = 2  # iterations: graphs, kernels that are loaded
ROWS = 512


def tokenizer_of(vocabulary):
    words = {"<pad>": PAD, "<eos>": END, "<unk>": 2}
    words.update({f"t{i}": i for i in range(3, vocabulary)})
    tokenizer = Tokenizer(models.WordLevel(vocab=words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>",
                                   eos_token="<eos>", unk_token="<unk>", padding_side="left")


def write_model(folder, shape):
    torch.manual_seed(1)
    given = {key: value for key, value in shape.items() if key != "model_type"}
    config = Qwen3Config(**given, pad_token_id=PAD, eos_token_id=END, bos_token_id=None)
    model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weights[0].zero_()
            if name.endswith("embed_tokens.weight"):
                weights[:, 0] = 1.0
                weights[PAD, 0] = weights[END, 0] = -1.0
    model.save_pretrained(folder)
    tokenizer_of(shape["vocab_size"]).save_pretrained(folder)


def prompts_of(vocabulary, length):
    draw = random.Random(7)
    return Dataset.from_list([
        {"prompt": " ".join(f"t{draw.randrange(3, vocabulary)}" for _ in range(length))}
        for _ in range(ROWS)])


def settings_of(asked, sizes):
    samples = sizes["prompts"] * sizes["group"]
    of_a_step = samples // sizes["minibatches"]
    at_once = min(of_a_step, asked.samples_at_once)
    return trl.GRPOConfig(
        output_dir=str(asked.out / "trl_vllm"), report_to="none", save_strategy="no",
        disable_tqdm=True, logging_steps=10**9, bf16=True, gradient_checkpointing=False,
        per_device_train_batch_size=at_once, gradient_accumulation_steps=of_a_step // at_once,
        steps_per_generation=samples // at_once, num_generations=sizes["group"],
        num_iterations=1, max_completion_length=sizes["new_tokens"], temperature=1.0, top_p=1.0,
        beta=0.0, learning_rate=1e-6,
        max_steps=(WARM_UP + asked.iterations) * sizes["minibatches"], use_vllm=True,
        vllm_mode="colocate", vllm_gpu_memory_utilization=asked.memory)


class Marks(TrainerCallback):
    """The time after the last optimizer step of each iteration."""

    def __init__(self, steps):
        self.steps, self.seconds = steps, []

    def mark(self):
        torch.cuda.synchronize()
        self.seconds.append(time.perf_counter())

    def on_train_begin(self, *_, **__):
        self.mark()

    def on_step_end(self, _, state, *__, **___):
        if state.global_step % self.steps == 0:
            self.mark()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=pathlib.Path,
                        default=pathlib.Path(__file__).parents[1] / "bench/cards.json")
    parser.add_argument("--card", default="qwen3_0.6b")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--memory", type=float, default=0.4, help="of the GPU, for vLLM")
    parser.add_argument("--samples-at-once", type=int, default=16, help="of a micro-batch")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    card = json.loads(asked.cards.read_text())["cards"][asked.card]
    sizes, shape = card["grpo"], card["model"]
    folder = asked.out / "trl_vllm_model"
    write_model(folder, shape)
    lengths, marks = [], Marks(sizes["minibatches"])

    def reward(completion_ids, **_):
        lengths.extend(map(len, completion_ids))
        return [float(len(ids)) for ids in completion_ids]

    trainer = trl.GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16),
        reward_funcs=reward, args=settings_of(asked, sizes),
        train_dataset=prompts_of(shape["vocab_size"], sizes["prompt_len"]),
        processing_class=tokenizer_of(shape["vocab_size"]), callbacks=[marks])
    trainer.train()
    if set(lengths) != {sizes["new_tokens"]}:
        raise SystemExit(f"responses of {min(lengths)} to {max(lengths)} tokens")
    took = [end - begin for begin, end in zip(marks.seconds, marks.seconds[1:])][WARM_UP:]
    print(json.dumps({"bench": "trl_vllm", "card": asked.card, "trl": trl.__version__,
                      "vllm": vllm.__version__, "n": len(took),
                      "sequences": sizes["prompts"] * sizes["group"],
                      "s_per_iter": statistics.median(took), "s_per_iter_min": min(took),
                      "s_per_iter_max": max(took)}))


if __name__ == "__main__":
    main()
