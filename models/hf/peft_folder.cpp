#include "models/hf/peft_folder.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/io/mapped_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::models {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* peft_config_name = "adapter_config.json";
constexpr const char* peft_weights_name = "adapter_model.safetensors";

[[noreturn]] void refuse_peft(const fs::path& folder, const std::string& key,
                              const std::string& expected,
                              const std::string& got) {
  throw ConfigError(
    {.place = {(folder / peft_config_name).string(), 0},
     .path = key,
     .expected = expected,
     .got = got,
     .hint = "adapters that Troupe or PEFT's LoraConfig wrote"});
}

json read_peft_json(const fs::path& folder) {
  const MappedFile file(folder / peft_config_name);
  const json config = json::parse(file.text(), nullptr, /*throws=*/false);
  if (!config.is_object())
    refuse_peft(folder, "", "a JSON object", "something else");
  return config;
}

/// Throws for variants of LoRA that compute something else.
void require_plain_lora(const fs::path& folder, const json& config) {
  if (config.value("peft_type", "") != "LORA")
    refuse_peft(folder, "peft_type", "LORA",
                config.value("peft_type", "nothing"));
  for (const char* key : {"use_dora", "use_rslora", "fan_in_fan_out"})
    if (config.contains(key) && config[key] == true)
      refuse_peft(folder, key, "false", "true");
  for (const char* key : {"rank_pattern", "alpha_pattern"})
    if (config.contains(key) && !config[key].empty())
      refuse_peft(folder, key, "no pattern", config[key].dump());
  if (config.value("bias", "none") != "none")
    refuse_peft(folder, "bias", "none", config.value("bias", ""));
}

json peft_json(const ModelShape& shape, const std::string& base_model) {
  json config;
  config["base_model_name_or_path"] = base_model;
  config["peft_type"] = "LORA";
  config["task_type"] = shape.scalar_head ? "SEQ_CLS" : "CAUSAL_LM";
  config["r"] = shape.lora.rank;
  config["lora_alpha"] = shape.lora.alpha;
  config["lora_dropout"] = 0.0;
  config["target_modules"] = shape.lora.targets;
  config["modules_to_save"]
    = shape.scalar_head ? json(json::array({"score"})) : json();
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["inference_mode"] = true;
  config["init_lora_weights"] = true;
  config["use_rslora"] = false;
  config["use_dora"] = false;
  return config;
}

} // namespace

bool is_peft_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / peft_config_name, ignored);
}

PeftConfig read_peft_config(const fs::path& folder) {
  const json config = read_peft_json(folder);
  require_plain_lora(folder, config);
  PeftConfig read;
  try {
    read.base_model = config.value("base_model_name_or_path", "");
    read.lora.rank = config.at("r").get<std::int64_t>();
    read.lora.alpha = config.at("lora_alpha").get<double>();
    read.lora.targets
      = config.at("target_modules").get<std::vector<std::string>>();
  } catch (const json::exception& error) {
    refuse_peft(folder, "", "r, lora_alpha and a list of target_modules",
                error.what());
  }
  if (read.lora.rank <= 0)
    refuse_peft(folder, "r", "a rank of at least 1",
                std::to_string(read.lora.rank));
  return read;
}

StoredWeights open_peft_weights(const fs::path& folder,
                                const ModelShape& shape) {
  StoredWeights stored = StoredWeights::open_file(folder / peft_weights_name);
  for (const ParameterShape& parameter : adapters(shape))
    check_stored_parameter(stored.at(parameter.file_name()), parameter);
  return stored;
}

void save_peft_folder(const fs::path& folder, const ModelShape& shape,
                      const std::string& base_model,
                      std::vector<TensorToStore> tensors,
                      const HfFolderOptions& options) {
  make_model_folder(folder);
  const Sync sync = options.store.sync;
  for (TensorToStore& tensor : tensors)
    tensor.stored = options.stored;
  write_safetensors(folder / peft_weights_name, tensors, options.store);
  copy_tokenizer_files(options.source, folder, sync);
  replace_file(folder / peft_config_name,
               peft_json(shape, base_model).dump(2) + "\n", sync);
}

} // namespace troupe::models
