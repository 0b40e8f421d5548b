// Requests to servers that generate and their answers, whatever they speak:
// token ids in; token ids, log-probabilities and weight versions out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::models {

/// One response to be generated.
struct ServerRequest {
  std::string id; ///< for the server's log
  std::vector<std::int32_t> prompt_ids;
  std::int64_t max_new_tokens = 0;
  /// Tokens at the end of the prompt that count as the response's already, for
  /// the least number of new ones.
  std::int64_t num_begun = 0;
  std::uint64_t seed = 0;
};

/// Tokens [begin, end) of a response and the version that drew them.
struct ServerVersionSpan {
  std::string version;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const ServerVersionSpan&) const = default;
};

struct ServerAnswer {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs; ///< as many
  bool stopped = false;        ///< by an end token, which is the last
  std::vector<ServerVersionSpan> versions;
};

/// A tensor in a memory file that a server is to take.
struct SentTensor {
  std::string name;
  std::string dtype; ///< as safetensors files name it
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;
  std::string sum; ///< models/servers/tensor_sum.hpp
};

/// The port where a server that cannot read our memory reads the file
/// (net/transport/byte_offer.hpp).
struct SentOverTcp {
  std::string host;
  std::uint16_t port = 0;
  std::string token;
  std::string certificate;     ///< PEM that it must see; empty: not encrypted
  std::uint64_t num_bytes = 0; ///< of the file
};

} // namespace troupe::models
