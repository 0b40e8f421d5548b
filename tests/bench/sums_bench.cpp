// Collectives over devices, `--threads` of them in this process, as members of
// a dp group have them: NCCL where `--device gpu` gives each member a GPU of
// its own, else the host's transport. Of every run the time of the slowest
// member. Rates are nccl-tests' busbw: of all-reduce 2 (n - 1) / n of the bytes
// a second, of all-gather and reduce-scatter (n - 1) / n of those of all parts,
// of an exchange those that a member sends.
#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"
#include "net/collectives/stream_collectives.hpp"
#include "plans/cost/hardware.hpp"

#include "bench.hpp"
#include "device_group.hpp"
#include "prediction.hpp"
#include "random_engine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

namespace troupe::bench {
namespace {

enum class Operation : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  exchange,
  in_stream, ///< an all-reduce between kernels; GPUs with NCCL only
};
constexpr std::array operations{Operation::all_reduce, Operation::all_gather,
                                Operation::reduce_scatter, Operation::exchange,
                                Operation::in_stream};

/// Seconds of each run, by operation.
using Seconds = std::array<std::vector<double>, operations.size()>;

std::size_t index_of(Operation operation) {
  return static_cast<std::size_t>(operation);
}

/// Returns the key of the operation's rate.
const char* rate_name(Operation operation) {
  constexpr std::array names{"bus_gb_s", "all_gather_gb_s",
                             "reduce_scatter_gb_s", "exchange_gb_s",
                             "in_stream_gb_s"};
  return names.at(index_of(operation));
}

/// Returns the share of a block's bytes that count as sent by each of `ranks`.
double sent_share(Operation operation, double ranks) {
  const double others = (ranks - 1) / ranks;
  switch (operation) {
  case Operation::all_gather:
  case Operation::reduce_scatter:
    return others;
  case Operation::exchange:
    return 0.5;
  default:
    return 2 * others;
  }
}

/// A device of the group, on a thread of its own. All numbers of its block are
/// its rank + 1 before each call.
class SummingMember {
public:
  SummingMember(const Options& options, std::uint32_t rank,
                net::GroupRegistry& registry)
    : options_(options),
      dtype_(dtype_of(options)),
      backend_(backend_of(options, rank)),
      group_(device_group(options, spec_of(options, rank), registry)),
      block_(backend_.memory()) {}

  /// Returns the seconds of each run; checks what every call yields.
  Seconds run() {
    backend_.enter();
    floats_ = std::int64_t{options_.sizes.mib} << 18;
    data_ = block_.reserve(floats_);
    Seconds seconds;
    for (const Operation operation : operations)
      for (int i = -1; i < options_.runs; ++i) { // NCCL connects in the first
        if (operation == Operation::in_stream
            && group_->on_streams(data_) == nullptr)
          continue;
        backend_.fill(data_, floats_, number(group_->rank() + 1));
        backend_.wait();
        group_->barrier("bench");
        const double once = seconds_of(options_, [&] { call(operation); });
        check(operation);
        if (i >= 0)
          seconds[index_of(operation)].push_back(once);
      }
    group_->barrier("leave");
    return seconds;
  }

private:
  static net::GroupSpec spec_of(const Options& options, std::uint32_t rank) {
    net::GroupSpec spec{.name = "sums", .index = rank};
    spec.members.resize(static_cast<std::size_t>(options.threads));
    return spec;
  }

  /// Returns the float whose bytes are this number, or two in bf16.
  float number(std::uint32_t value) const {
    const auto exact = static_cast<float>(value);
    if (dtype_ == DType::f32)
      return exact;
    const std::uint32_t half = std::bit_cast<std::uint32_t>(exact) >> 16;
    return std::bit_cast<float>(half << 16 | half);
  }
  std::int64_t part_floats() const {
    return floats_ / group_->size();
  }
  std::size_t count_of(std::int64_t floats) const {
    return static_cast<std::size_t>(floats) * sizeof(float)
           / size_bytes(dtype_);
  }

  void call(Operation operation) {
    float* mine = data_ + group_->rank() * part_floats();
    const std::size_t part = count_of(part_floats());
    switch (operation) {
    case Operation::all_reduce:
      return group_->all_reduce_sum(data_, count_of(floats_), dtype_, "bench");
    case Operation::all_gather:
      return group_->all_gather(mine, data_, part, dtype_, "bench");
    case Operation::reduce_scatter:
      return group_->reduce_scatter_sum(data_, mine, part, dtype_, "bench");
    case Operation::exchange:
      return exchange();
    case Operation::in_stream:
      return sum_in_stream();
    }
  }
  /// Sends the first half of the block to the next member, which receives it
  /// in its second half.
  void exchange() {
    const std::uint32_t size = group_->size();
    const auto bytes = static_cast<std::size_t>(floats_ / 2) * sizeof(float);
    const net::SentPiece sent{.peer = (group_->rank() + 1) % size,
                              .data = reinterpret_cast<const std::byte*>(data_),
                              .bytes = bytes};
    const net::ReceivedPiece received{
      .peer = (group_->rank() + size - 1) % size,
      .data = reinterpret_cast<std::byte*>(data_ + floats_ / 2),
      .bytes = bytes};
    group_->exchange({.sent = {&sent, 1}, .received = {&received, 1}}, "bench");
  }
  void sum_in_stream() {
    auto* streams = group_->on_streams(data_);
    streams->all_reduce_sum(data_, count_of(floats_), dtype_, "bench",
                            net::StreamOrder::in_line);
    backend_.wait();
    streams->check();
  }

  /// Compares the ends of what the call has written.
  void check(Operation operation) const {
    const std::uint32_t size = group_->size();
    const std::uint32_t rank = group_->rank();
    const std::uint32_t sum = size * (size + 1) / 2;
    const std::int64_t part = part_floats();
    switch (operation) {
    case Operation::all_gather:
      for (std::uint32_t member = 0; member < size; ++member)
        check(member * part, (member + 1) * part, member + 1);
      return;
    case Operation::reduce_scatter:
      return check(rank * part, (rank + 1) * part, sum);
    case Operation::exchange:
      return check(floats_ / 2, floats_, (rank + size - 1) % size + 1);
    default:
      return check(0, floats_, sum);
    }
  }
  void check(std::int64_t first, std::int64_t end, std::uint32_t value) const {
    for (const std::int64_t at : {first, end - 1})
      if (*backend_.read(data_ + at, 1).floats() != number(value))
        throw std::runtime_error("a sum is wrong");
  }

  const Options& options_;
  DType dtype_;
  models::Backend& backend_;
  std::shared_ptr<net::Collectives> group_;
  models::AlignedFloats block_;
  std::int64_t floats_ = 0;
  float* data_ = nullptr;
};

/// Returns GB/s of each run, at the pace of the slowest member.
std::vector<double> bus_rates(Operation operation,
                              const std::vector<Seconds>& members, double gb) {
  const double sent
    = gb * sent_share(operation, static_cast<double>(members.size()));
  std::vector<double> rates;
  for (std::size_t i = 0; i < members[0][index_of(operation)].size(); ++i) {
    double slowest = 0;
    for (const auto& member : members)
      slowest = std::max(slowest, member[index_of(operation)][i]);
    rates.push_back(sent / slowest);
  }
  return rates;
}

} // namespace

nlohmann::json bench_sums(const Options& options) {
  const auto ranks = static_cast<std::uint32_t>(options.threads);
  net::GroupRegistry registry;
  std::vector<Seconds> seconds(ranks);
  together(ranks, registry, [&](std::uint32_t rank) {
    seconds[rank] = SummingMember(options, rank, registry).run();
  });
  const double gb = options.sizes.mib * 1024.0 * 1024.0 * 1e-9;
  const bool nccl = !seconds[0][index_of(Operation::in_stream)].empty();
  nlohmann::json document{
    {"ranks", ranks}, {"mib", options.sizes.mib}, {"nccl", nccl ? 1 : 0}};
  add_headline(document, rate_name(Operation::all_reduce),
               bus_rates(Operation::all_reduce, seconds, gb));
  for (const Operation operation : operations)
    if (operation != Operation::all_reduce
        && (operation != Operation::in_stream || nccl))
      document[rate_name(operation)]
        = summary(bus_rates(operation, seconds, gb))["median"];
  if (const KnownGpu* gpu = known_gpu(options, ranks); gpu && ranks > 1)
    document["predicted"]
      = 1e-9 * plans::load_hardware(gpu->hardware).intra_Bps;
  return document;
}

} // namespace troupe::bench
