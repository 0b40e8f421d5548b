#include "actors/user/python_file.hpp"

#include "models/rewards/python_errors.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {

std::string python_file_loader(const std::string& needs) {
  return models::python_loader("about = json.loads(sys.argv[3])\n" + needs);
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
