// convert: a model folder, saved again with another type or shard size.
#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/hf/merge_adapters.hpp"
#include "models/hf/peft_folder.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/commands/command_session.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <memory>
#include <optional>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

struct ConvertOptions : CommandOptions {
  ModelOptions model;
  std::string out;
  std::string base; ///< of adapters; "": what they name
  std::string dtype = "auto";
  std::string max_shard_size = "5GB";
};

/// Parses "5GB", "200MB", "1GiB", "4096" to bytes.
std::optional<std::uint64_t> parse_bytes(const std::string& text) {
  double number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || !(number > 0))
    return std::nullopt;
  const std::string unit(end, last);
  const std::pair<const char*, double> units[]
    = {{"", 1},     {"B", 1},        {"KB", 1e3},     {"MB", 1e6},
       {"GB", 1e9}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  for (const auto& [name, factor] : units)
    if (unit == name && number * factor >= 1 && number * factor < 0x1p63)
      return static_cast<std::uint64_t>(number * factor);
  return std::nullopt;
}

std::uint64_t shard_bytes(const ConvertOptions& options) {
  const auto bytes = parse_bytes(options.max_shard_size);
  if (!bytes)
    throw ConfigError({.place = {"command line", 0},
                       .path = "--max-shard-size",
                       .expected = "a size such as 5GB or 200MB",
                       .got = "'" + options.max_shard_size + "'",
                       .hint = ""});
  return *bytes;
}

DType target_type(const ConvertOptions& options, const ModelShape& shape) {
  if (options.dtype == "bf16")
    return DType::bf16;
  if (options.dtype == "fp16")
    return DType::f16;
  if (options.dtype == "fp32")
    return DType::f32;
  return shape.stored_dtype;
}

void check_target(const fs::path& out) {
  std::error_code ignored;
  if (!fs::exists(out, ignored))
    return;
  if (!fs::is_directory(out, ignored) || !fs::is_empty(out, ignored))
    throw ConfigError({.place = {"command line", 0},
                       .path = "--out",
                       .expected = "a new or empty folder",
                       .got = "'" + out.string() + "'",
                       .hint = "another name"});
}

void print_saved(const ConvertOptions& options, const ModelShape& shape,
                 DType type) {
  print_note(
    options,
    fmt::format("{}: {} parameters as {}, {}", options.out,
                count_text(static_cast<double>(num_parameters(shape))),
                to_string(type),
                bytes_text(static_cast<double>(weight_bytes(shape, type)))));
}

/// Adds the adapters of --model to the weights of the model that they adapt.
int merge(const ConvertOptions& options) {
  const fs::path base
    = options.base.empty()
        ? models::read_peft_config(options.model.model).base_model
        : options.base;
  models::require_model_folder(base, "--base");
  const auto shape = read_model_shape(base);
  const auto type = target_type(options, shape);
  models::StoreOptions store;
  store.max_shard_bytes = shard_bytes(options);
  models::merge_adapters(base, options.model.model, options.out, type, store);
  print_saved(options, shape, type);
  return static_cast<int>(ExitCode::done);
}

int convert(const ConvertOptions& options) {
  const auto max_shard_bytes = shard_bytes(options);
  check_target(options.out);
  if (models::is_peft_folder(options.model.model))
    return merge(options);
  const auto shape = open_shape(options.model);
  const auto type = target_type(options, shape);
  CommandSession session("convert", options.model, shape, options.out);
  const auto outcome
    = session.run_convert({.dtype = type, .max_shard_bytes = max_shard_bytes});
  if (outcome.code != ExitCode::done)
    return static_cast<int>(outcome.code);
  session.keep_model();
  print_saved(options, shape, type);
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_convert(CLI::App& app, CommandRun& chosen) {
  auto* command
    = app.add_subcommand("convert", "Load a model and save it again, adapters "
                                    "merged into their model");
  auto options = std::make_shared<ConvertOptions>();
  add_model_options(*command, options->model);
  command->add_option("--out", options->out, "Folder to make")
    ->type_name("DIR")
    ->required();
  command
    ->add_option("--base", options->base,
                 "Model of the adapters in --model; without it, the one that "
                 "they name")
    ->type_name("DIR");
  command
    ->add_option("--dtype", options->dtype,
                 "Type of the saved tensors; auto: as they are")
    ->check(CLI::IsMember({"auto", "fp32", "bf16", "fp16"}))
    ->capture_default_str();
  command
    ->add_option("--max-shard-size", options->max_shard_size,
                 "Largest file, such as 5GB or 200MB")
    ->capture_default_str();
  add_quiet_option(*command, *options);
  command->callback(
    [options, &chosen] { chosen = [options] { return convert(*options); }; });
}

} // namespace troupe::runtime
