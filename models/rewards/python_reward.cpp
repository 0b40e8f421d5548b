#include "models/rewards/python_reward.hpp"

#include "models/rewards/python_errors.hpp"

namespace troupe::models {

namespace {

// the last line on stderr becomes the error that users see
constexpr const char* shim = R"python(
import importlib.util, json, math, os, sys, traceback

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what the file prints is no answer
file, name = sys.argv[1:3]
sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
spec = importlib.util.spec_from_file_location("troupe_reward", file)
if spec is None:
    sys.exit(f"{file} is no Python file")
module = importlib.util.module_from_spec(spec)
sys.modules["troupe_reward"] = module
spec.loader.exec_module(module)
compute = getattr(module, name, None)
if not callable(compute):
    there = [key for key, part in vars(module).items()
             if getattr(part, "__module__", "") == "troupe_reward"
             and callable(part)]
    sys.exit(f"{file} has no function {name} (it has "
             f"{', '.join(there) or 'none'}); try reward.function")
code = getattr(compute, "__code__", None)
here = f"{file}:{code.co_firstlineno}" if code else file


def number(value, what):
    if isinstance(value, str) or not math.isfinite(float(value)):
        raise ValueError(f"expected {what} to be a number, got {value!r}")
    return float(value)


def answer_to(row):
    value = compute(row["data_source"], row["response"], row["ground_truth"],
                    row["extra_info"])
    if not isinstance(value, dict):
        return {"score": number(value, "the score")}
    extra = {key: number(part, key) for key, part in value.items()
             if key != "score" and isinstance(part, (bool, int, float))}
    return {"score": number(value["score"], "score"), "extra": extra}


print("ready", file=answers, flush=True)
for line in sys.stdin:
    row = json.loads(line)
    try:
        answer = answer_to(row)
    except Exception as error:
        traceback.print_exc()
        answer = {"error": trouble_of(error, here)}
    print(json.dumps({"id": row["id"], **answer}), file=answers, flush=True)
)python";

} // namespace

std::vector<std::string> python_reward_command(const std::string& file,
                                               const std::string& function) {
  return {"python3", "-c", python_errors() + shim, file, function};
}

} // namespace troupe::models
