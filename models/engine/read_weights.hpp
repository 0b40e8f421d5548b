// Reading of the weights that a device holds from a model's files into their
// plane, as it stores them: fp32 masters, or without masters what kernels read,
// rounded on the host in bounded memory.
#pragma once

namespace troupe::models {

struct LocalModel;
class Parameters;
class StoredWeights;

/// Reads all weights of `part`; zeros for tensors that are missing. Throws
/// ConfigError naming file and tensor.
void read_weights(const StoredWeights& stored, const LocalModel& part,
                  Parameters& parameters);

} // namespace troupe::models
