#include "actors/user/python_file.hpp"

#include "models/rewards/python_errors.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {

std::string python_file_loader(const std::string& needs) {
  return models::python_errors() + R"python(
import importlib.util, json, os, sys, traceback

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what the file prints is no answer
file, name = sys.argv[1:3]
about = json.loads(sys.argv[3])
)python" + needs
         + R"python(
sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
spec = importlib.util.spec_from_file_location("troupe_functions", file)
module = importlib.util.module_from_spec(spec)
sys.modules["troupe_functions"] = module
spec.loader.exec_module(module)
function = getattr(module, name, None)
code = getattr(function, "__code__", None)
here = f"{file}:{code.co_firstlineno}" if code else file
if not callable(function):
    sys.exit(f"{file} has no function {name}")
)python";
}

nlohmann::json keys_json(const std::vector<KeyInfo>& keys) {
  constexpr const char* types[] = {"f32", "i32", "u8", "text"};
  auto list = nlohmann::json::array();
  for (const auto& key : keys)
    list.push_back({key.name, types[static_cast<std::size_t>(key.type)],
                    key.per == Per::sample ? "sample" : "token"});
  return list;
}

} // namespace troupe::actors
