// troupe::testing::run: runs a program as its users start it, in a folder that
// holds all it needs, and reads what it left there.
#include "config/model/model_shape.hpp"
#include "net/base/descriptor.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/commands/random_model.hpp"
#include "runtime/launch/run_program.hpp"

#include "troupe/testing.hpp"
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>
#include <utility>

namespace troupe::testing {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* errors_file = "stderr.txt";
constexpr const char* run_name = "test";

ModelShape tiny_shape(bool scalar_head) {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = runtime::byte_tokens;
  shape.hidden_size = 16;
  shape.num_layers = 2;
  shape.num_heads = 2;
  shape.num_kv_heads = 2;
  shape.head_dim = 8;
  shape.intermediate_size = 32;
  shape.max_positions = 1024;
  shape.scalar_head = scalar_head;
  return shape;
}

void write_inputs(const fs::path& folder) {
  tiny_model(folder / "model");
  tiny_model(folder / "scorer", /*scalar_head=*/true);
  std::ofstream prompts(folder / "prompts.jsonl");
  for (int i = 0; i < 64; ++i)
    prompts << Json{{"prompt", fmt::format("What is {} + 1? ", i)},
                    {"ground_truth", std::to_string(i + 1)}}
                 .dump()
            << '\n';
}

/// Returns the command line: options that apply before the user's arguments,
/// and some after them.
std::vector<std::string> command(const fs::path& program,
                                 const fs::path& settings,
                                 const std::vector<std::string>& words) {
  std::vector<std::string> all{fs::absolute(program).string(),
                               "train",
                               fs::absolute(settings).string(),
                               "data.train=prompts.jsonl",
                               "cluster.nodes=1",
                               "cluster.devices_per_node=2",
                               "cluster.workers_per_node=2"};
  all.insert(all.end(), words.begin(), words.end());
  all.emplace_back("run.dir=runs");
  all.push_back(fmt::format("run.name={}", run_name));
  return all;
}

/// Returns the exit code, as a shell does; nothing if it was killed. Of the
/// program's output only the errors are kept.
std::optional<int> run_in(const fs::path& folder,
                          std::vector<std::string> words,
                          std::chrono::seconds deadline) {
  const net::Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  net::ChildSpec child{.name = words[0],
                       .argv = std::move(words),
                       .working_folder = folder,
                       .output_file = errors_file,
                       .output = nowhere.get()};
  const auto exit = runtime::run_program(std::move(child), deadline);
  if (!exit)
    return std::nullopt;
  return exit->signal == 0 ? exit->code : 128 + exit->signal;
}

/// Adds a number, a text, or a list of one of them; lists of tokens are left
/// out.
void add_value(Row& row, const std::string& name, const Json& value) {
  if (value.is_array() && value.size() == 1)
    return add_value(row, name, value[0]);
  if (value.is_number())
    row.numbers[name] = value.get<double>();
  else if (value.is_string())
    row.texts[name] = value.get<std::string>();
}

std::vector<Row> read_rows(const fs::path& file) {
  std::vector<Row> rows;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    Row& row = rows.emplace_back();
    const Json document = Json::parse(line);
    for (const auto& [name, value] : document.items()) {
      if (name != "keys") {
        add_value(row, name, value);
        continue;
      }
      for (const auto& [key, user] : value.items())
        add_value(row, key, user);
    }
  }
  return rows;
}

} // namespace

void tiny_model(const fs::path& folder, bool scalar_head) {
  const auto scratch = runtime::scratch_folder("troupe-testing-");
  runtime::write_byte_tokenizer(scratch.path());
  runtime::write_random_model(folder, tiny_shape(scalar_head), scratch.path(),
                              scalar_head ? 2 : 1);
}

Run run(const fs::path& program, const fs::path& settings,
        const std::vector<std::string>& words, std::chrono::seconds deadline) {
  const auto scratch = runtime::scratch_folder("troupe-testing-");
  const auto& folder = scratch.path();
  write_inputs(folder);
  const auto code = run_in(folder, command(program, settings, words), deadline);
  const auto run_folder = folder / "runs" / run_name;
  Run left{.errors = runtime::read_file(folder / errors_file)};
  if (!code)
    throw std::runtime_error(fmt::format("{} did not end within {} s\n{}",
                                         program.string(), deadline.count(),
                                         left.errors));
  left.code = *code;
  left.metrics = read_rows(run_folder / "metrics.jsonl");
  left.samples = read_rows(run_folder / "samples.jsonl");
  return left;
}

} // namespace troupe::testing
