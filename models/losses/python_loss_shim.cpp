// The program of a process that computes a loss in Python.
#include "models/losses/python_loss.hpp"
#include "models/rewards/python_errors.hpp"

namespace troupe::models {

namespace {

// the last line on stderr becomes the error that users see
constexpr const char* needs_torch = R"python(
import inspect, math, mmap

try:
    import torch
except ImportError as error:
    sys.exit(f"{sys.executable} cannot import torch, which losses in Python need "
             f"({error}); try pip install torch")
torch.set_num_threads(1)  # the device's own threads compute beside it
)python";

constexpr const char* loss_shim = R"python(
try:
    inspect.signature(function).bind(None)
except TypeError as error:
    sys.exit(f"{here}: {name} gets the batch as its only argument: {error}")


class Batch:
    """The whole sequences of a micro-batch, packed: T tokens, N sequences."""

    def __init__(self, line, memory):
        for word in ("denominator", "tokens", "sequences"):
            setattr(self, word, line[word])
        self.offsets = part_of(memory, torch.int64, *line["offsets"])
        self._keys, self._outputs = {}, {}
        for word, place in line["inputs"].items():
            tensor = part_of(memory, torch.float32, *place)
            if word.startswith("key "):
                self._keys[word[4:]] = tensor
            elif word == "mask":
                self.mask = tensor
            else:
                self._outputs[word] = tensor.requires_grad_()
        for word, tensor in self._outputs.items():
            setattr(self, word, tensor)

    def __getitem__(self, key):
        if key not in self._keys:
            raise KeyError(f"{key}, which is not in the reads of the call "
                           f"({', '.join(self._keys)})")
        return self._keys[key]

    def __getattr__(self, word):  # only what is not there
        if word in ("logprobs", "entropy", "values", "scores"):
            raise AttributeError(f"the call has no {word} in its outputs")
        raise AttributeError(f"a batch has no {word}")

    def sums(self, values_T):
        """[N] sums of [T] numbers over each sequence."""
        lengths = self.offsets[1:] - self.offsets[:-1]
        of = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        return values_T.new_zeros(len(lengths)).index_add(0, of, values_T)


UNUSED = ("expected a loss that weights can change, got one that uses no output of "
          "the model, such as batch.logprobs")


def part_of(memory, dtype, begin, count):
    if count == 0:
        return torch.zeros(0, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=begin)


def finite(value, what):
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"expected {what} to be finite, got {number}")
    return number


def checked(result):
    """(loss, metrics) of what the function returned."""
    loss, metrics = result if isinstance(result, tuple) and len(result) == 2 else (
        result, {})
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        got = (f"a tensor of {loss.numel()} numbers; try its .sum() / "
               "batch.denominator" if isinstance(loss, torch.Tensor)
               else f"{loss!r:.80}")
        raise ValueError(f"expected a tensor of one number, or (loss, metrics), "
                         f"got {got}")
    if not loss.requires_grad:
        raise ValueError(UNUSED)
    if not isinstance(metrics, dict) or "loss" in metrics:
        raise ValueError("expected metrics as a dict of names other than loss, "
                         f"got {metrics!r:.80}")
    return loss.reshape(()), metrics


def compute(line):
    path, size = line["memory"]
    with open(path, "r+b") as shared:
        # what the function changes stays here; gradients are written for all
        memory = mmap.mmap(shared.fileno(), size, access=mmap.ACCESS_COPY)
        results = mmap.mmap(shared.fileno(), size, access=mmap.ACCESS_WRITE)
    batch = Batch(line, memory)
    loss, metrics = checked(function(batch))
    words = list(batch._outputs)
    grads = torch.autograd.grad(loss, [batch._outputs[word] for word in words],
                                allow_unused=True)
    used = {word: grad for word, grad in zip(words, grads) if grad is not None}
    if not used:
        raise ValueError(UNUSED)
    for word, grad in used.items():
        part_of(results, torch.float32, line["gradients"][word],
                grad.numel()).copy_(grad)
    return {"loss": finite(loss.detach(), "the loss"), "used": list(used),
            "metrics": {word: finite(value, word)
                        for word, value in metrics.items()}}


print("ready", file=answers, flush=True)
for text in sys.stdin:
    try:
        answer = compute(json.loads(text))
    except Exception as error:
        traceback.print_exc()
        answer = {"error": trouble_of(error, here)}
    print(json.dumps(answer), file=answers, flush=True)
)python";

} // namespace

std::vector<std::string> python_loss_command(const LossEntry& entry) {
  return {"python3", "-c", python_loader(needs_torch) + loss_shim,
          entry.python->file, entry.python->name};
}

} // namespace troupe::models
