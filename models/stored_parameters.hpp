// Parameters and the tensors of checkpoints: most are one and the same, but a
// family may keep a matrix transposed, or several parameters in one tensor
// (GPT-2 does both).
#pragma once

#include "config/model_shape.hpp"
#include "models/safetensors.hpp"
#include "plans/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// Shape of the tensor that holds the parameter.
std::vector<std::int64_t> stored_shape(const ParameterShape& parameter);

/// The tensor that holds the parameter, or nullptr. Checkpoints of a bare model
/// leave the first word of names ("model.", "transformer.") out.
const StoredTensor* find_stored(const StoredWeights& weights,
                                const ParameterShape& parameter);
/// Whether `name` holds one of the parameters.
bool is_stored_name(const std::string& name,
                    const std::vector<ParameterShape>& parameters);

/// Rows row0 .. row1-1 and columns col0 .. col1-1 of the parameter as f32,
/// row-major, into `data`.
void read_stored_box(const StoredTensor& tensor,
                     const ParameterShape& parameter, std::int64_t row0,
                     std::int64_t row1, std::int64_t col0, std::int64_t col1,
                     float* data);

/// What a device holds, to its places in `plane`; zeros for tensors that are
/// not there. No other bytes of the files are touched.
void read_held_boxes(const StoredWeights& weights,
                     const std::vector<ParameterShape>& parameters,
                     const plans::Shard& held, float* plane);

/// One parameter's f32 values, row-major.
struct ParameterValues {
  const ParameterShape* parameter = nullptr;
  std::span<const std::byte> bytes;
};

/// Parameters as the tensors of a checkpoint.
class FileTensors {
public:
  /// The values must outlive this.
  FileTensors(const std::vector<ParameterValues>& values, DType stored);
  const std::vector<TensorToStore>& tensors() const {
    return tensors_;
  }

private:
  std::vector<std::vector<float>> rewritten_; ///< transposed or joined
  std::vector<TensorToStore> tensors_;
};

} // namespace troupe::models
