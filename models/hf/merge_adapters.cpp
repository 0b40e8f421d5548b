#include "models/hf/merge_adapters.hpp"

#include "config/model/model_shape.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/hf/peft_folder.hpp"
#include "models/hf/stored_parameters.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::models {

namespace {

std::vector<float> read_whole(const StoredTensor& tensor,
                              const ParameterShape& parameter) {
  std::vector<float> values(static_cast<std::size_t>(parameter.num_elements()));
  read_stored_box(tensor, parameter, 0, parameter.rows, 0, parameter.cols,
                  values.data());
  return values;
}

/// Adds scale B A; W is [out, in], A [rank, in], B [out, rank].
void add_product(std::vector<float>& w, const std::vector<float>& a,
                 const std::vector<float>& b, std::int64_t rank, double scale) {
  const std::size_t in = a.size() / static_cast<std::size_t>(rank);
  const auto r = static_cast<std::size_t>(rank);
  for (std::size_t out = 0; out < w.size() / in; ++out)
    for (std::size_t k = 0; k < r; ++k) {
      const auto factor = static_cast<float>(scale * b[out * r + k]);
      float* row = w.data() + out * in;
      const float* narrow = a.data() + k * in;
      for (std::size_t i = 0; i < in; ++i)
        row[i] += factor * narrow[i];
    }
}

/// The adapters of a PEFT folder by the names of parameters.
class AdapterFile {
public:
  AdapterFile(const std::filesystem::path& folder, const ModelShape& shape)
    : lora_(shape.lora),
      stored_(open_peft_weights(folder, shape)) {
    for (auto& parameter : adapters(shape))
      by_name_.emplace(parameter.name, std::move(parameter));
  }

  /// Returns the weight with its adapter added, or what is trained in its
  /// place.
  std::vector<float> merged(const ParameterShape& parameter,
                            const StoredTensor& base) const {
    if (const auto whole = by_name_.find(parameter.name);
        whole != by_name_.end())
      return read(whole->second);
    auto weight = read_whole(base, parameter);
    const auto a = by_name_.find(lora_a_name(parameter.name));
    if (parameter.vector || a == by_name_.end())
      return weight;
    add_product(weight, read(a->second),
                read(by_name_.at(lora_b_name(parameter.name))), lora_.rank,
                lora_.scale());
    return weight;
  }

private:
  std::vector<float> read(const ParameterShape& parameter) const {
    return read_whole(stored_.at(parameter.file_name()), parameter);
  }

  LoraShape lora_;
  StoredWeights stored_;
  std::map<std::string, ParameterShape> by_name_;
};

} // namespace

void merge_adapters(const std::filesystem::path& base,
                    const std::filesystem::path& adapters,
                    const std::filesystem::path& out, DType stored,
                    const StoreOptions& store) {
  ModelShape shape = read_model_shape(base);
  shape.lora = read_peft_config(adapters).lora;
  const AdapterFile file(adapters, shape);
  const StoredWeights weights = open_model_weights(base, shape);
  const auto list = parameters(shape);
  std::vector<std::vector<float>> merged;
  std::vector<ParameterValues> values;
  for (const ParameterShape& parameter : list) {
    merged.push_back(file.merged(parameter, *find_stored(weights, parameter)));
    values.push_back({&parameter, std::as_bytes(std::span(merged.back()))});
  }
  const FileTensors files(values, stored);
  HfFolderOptions options;
  options.store = store;
  options.stored = stored;
  options.source = adapters;
  save_hf_folder(out, shape, files.tensors(), options);
}

} // namespace troupe::models
