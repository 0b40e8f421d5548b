#include "net/collectives/nccl_collectives.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "net/collectives/nccl_call.hpp"
#include "net/collectives/nccl_exchange.hpp"
#include "net/collectives/nccl_group.hpp"
#include "net/collectives/nccl_streams.hpp"
#include "net/collectives/piece_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace troupe::net {

namespace {

class NcclCollectives final : public Collectives {
public:
  NcclCollectives(const NcclMember& member, const NcclLibrary& library)
    : member_(member),
      library_(library),
      group_({.who = fmt::format("NCCL, rank {}", member.host->rank()),
              .device = member.device,
              .progress_deadline = member.progress_deadline,
              .failure_of_others = [this] { return member_.host->failure(); }},
             library) {
    const auto why_not = why_no_nccl(member.offers);
    has_nccl_ = why_not.empty();
    TROUPE_CHECK(member.offers.size() == size(),
                 member.group + ": not one offer a member");
    TROUPE_CHECK(!has_nccl_ || library.why_not.empty(),
                 member.group + ": NCCL was offered: " + library.why_not);
    if (rank() == 0)
      log_transport(why_not);
  }
  ~NcclCollectives() override {
    abort({Errc::peer_lost, fmt::format("NCCL, rank {}", rank()),
           "left the group", ""});
  }
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  std::uint32_t rank() const noexcept override {
    return member_.host->rank();
  }
  std::uint32_t size() const noexcept override {
    return member_.host->size();
  }

  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char* name) override {
    if (!uses_nccl(data))
      return member_.host->all_reduce_sum(data, count, dtype, name);
    run(name, {GroupOperation::all_reduce, data, data, count, dtype});
  }
  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) override {
    if (!uses_nccl(all))
      return member_.host->all_gather(mine, all, count, dtype, name);
    run(name, {GroupOperation::all_gather, mine, all, count, dtype});
  }
  void reduce_scatter_sum(const void* all, void* mine, std::size_t count,
                          DType dtype, const char* name) override {
    if (!uses_nccl(all))
      return member_.host->reduce_scatter_sum(all, mine, count, dtype, name);
    run(name, {GroupOperation::reduce_scatter, all, mine, count, dtype});
  }
  void broadcast(void* data, std::size_t count, DType dtype, std::uint32_t root,
                 const char* name) override {
    if (!uses_nccl(data))
      return member_.host->broadcast(data, count, dtype, root, name);
    run(name, {GroupOperation::broadcast, data, data, count, dtype, root});
  }
  void exchange(const Pieces& pieces, const char* name) override {
    compare_calls();
    if (!has_nccl_)
      return member_.host->exchange(pieces, name);
    const auto is_on_gpu = [&](const auto& piece) {
      return piece.bytes == 0 || library_.on_gpu(piece.data);
    };
    const PieceTable table(*member_.host, pieces,
                           std::ranges::all_of(pieces.sent, is_on_gpu)
                             && std::ranges::all_of(pieces.received, is_on_gpu),
                           name);
    if (!table.all_on_gpu())
      return member_.host->exchange(pieces, name);
    ending_all_on_failure([&] {
      join();
      exchange_over_nccl(group_, library_, pieces, {rank(), size()}, name);
    });
  }
  void barrier(const char* name) override {
    compare_calls();
    member_.host->barrier(name);
  }
  StreamCollectives* on_streams(const void* data) override {
    if (!has_nccl_ || !library_.on_gpu(data))
      return nullptr;
    ending_all_on_failure([&] { join(); });
    return &*streams_;
  }

  std::optional<Failure> failure() override {
    return member_.host->failure();
  }
  void abort(const Failure& failure) noexcept override {
    member_.host->abort(failure); // before others see an error of NCCL
    group_.abort(failure);
  }

private:
  /// All members make the same calls. One whose memory is not where the
  /// others' is meets them in another call of the host's group, which names
  /// both.
  bool uses_nccl(const void* pointer) {
    compare_calls();
    return has_nccl_ && library_.on_gpu(pointer);
  }

  void log_transport(std::string_view why_not) const {
    if (why_not.empty())
      log::net.info(
        fmt::format("{}: NCCL between {} GPUs", member_.group, size()));
    else
      log::net.warn(fmt::format("{}: numbers of GPUs go through the host: {}",
                                member_.group, why_not));
  }

  /// Compares what members called on streams since they met, which is now.
  void compare_calls() {
    if (streams_)
      streams_->compare_new();
  }

  /// Joins in the first call on GPU memory; rank 0 makes the unique id.
  void join() {
    if (group_.has_joined())
      return;
    NcclId id{};
    if (rank() == 0)
      group_.check(library_.groups.get_id(&id), "making a group");
    member_.host->broadcast(&id, sizeof id / sizeof(std::int32_t), DType::i32,
                            0, "name of an NCCL group");
    group_.join(id, {rank(), size()});
    streams_.emplace(
      NcclStreams::Spec{.who = fmt::format("NCCL, rank {}", rank()),
                        .device = member_.device,
                        .place = {rank(), size()},
                        .progress_deadline = member_.progress_deadline,
                        .thread_stream = member_.thread_stream,
                        .abort = [this](const Failure& why) { abort(why); }},
      *member_.host, group_, library_);
  }

  /// Waits for all members, then starts the call and waits for its stream.
  void run(const char* name, const NcclCall& call) {
    nccl_type(call.dtype); // throws before anything has begun
    ending_all_on_failure([&] {
      member_.host->barrier(name);
      join();
      group_.run(name, [&](NcclCommunicator communicator, CudaStream stream) {
        return start_nccl_call(library_, call, {rank(), size()}, communicator,
                               stream);
      });
    });
  }

  /// A member that fails ends the group, so that no other waits for it.
  template <class Body>
  void ending_all_on_failure(const Body& body) {
    try {
      body();
    } catch (const FailureError& error) {
      abort(error.failure());
      throw;
    }
  }

  const NcclMember member_;
  const NcclLibrary& library_;
  bool has_nccl_ = false; ///< all members, and a GPU each
  NcclGroup group_;
  std::optional<NcclStreams> streams_; ///< once the group has joined
};

} // namespace

std::shared_ptr<Collectives> make_nccl_collectives(const NcclMember& member,
                                                   const NcclLibrary& library) {
  return std::make_shared<NcclCollectives>(member, library);
}

} // namespace troupe::net
