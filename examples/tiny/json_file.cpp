#include "examples/tiny/json_file.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>

namespace tiny {

void write_bytes(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out)
    throw std::runtime_error(file.string() + ": cannot write");
}

void write_json(const std::filesystem::path& file,
                const nlohmann::ordered_json& value) {
  write_bytes(file, value.dump(2) + "\n");
}

} // namespace tiny
