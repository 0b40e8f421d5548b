#include "net/collectives/staged_collectives.hpp"

#include "net/base/host_copy.hpp"
#include "net/collectives/host_exchange.hpp"

#include <utility>

namespace troupe::net {

namespace {

class StagedCollectives final : public Collectives {
public:
  StagedCollectives(std::shared_ptr<Collectives> host,
                    const BlockMemory& memory)
    : host_(std::move(host)),
      memory_(memory) {}

  std::uint32_t rank() const noexcept override {
    return host_->rank();
  }
  std::uint32_t size() const noexcept override {
    return host_->size();
  }

  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char* name) override {
    const auto staged = change(data, count, dtype, OldContent::needed);
    host_->all_reduce_sum(staged.bytes().data(), count, dtype, name);
    staged.put_back();
  }
  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) override {
    if (!memory_.owns(all)) // `mine` may be a part of it
      return host_->all_gather(mine, all, count, dtype, name);
    const auto own = read(mine, count, dtype);
    const auto staged = change(all, count * size(), dtype, OldContent::ignored);
    host_->all_gather(own.bytes().data(), staged.bytes().data(), count, dtype,
                      name);
    staged.put_back();
  }
  void reduce_scatter_sum(const void* all, void* mine, std::size_t count,
                          DType dtype, const char* name) override {
    if (!memory_.owns(all))
      return host_->reduce_scatter_sum(all, mine, count, dtype, name);
    const auto staged = read(all, count * size(), dtype);
    const auto own = change(mine, count, dtype, OldContent::ignored);
    host_->reduce_scatter_sum(staged.bytes().data(), own.bytes().data(), count,
                              dtype, name);
    own.put_back();
  }
  void broadcast(void* data, std::size_t count, DType dtype, std::uint32_t root,
                 const char* name) override {
    const bool is_root = rank() == root;
    const auto staged = change(
      data, count, dtype, is_root ? OldContent::needed : OldContent::ignored);
    host_->broadcast(staged.bytes().data(), count, dtype, root, name);
    if (!is_root)
      staged.put_back();
  }
  void exchange(const Pieces& pieces, const char* name) override {
    exchange_over_gathers(*host_, pieces, &memory_, name);
  }
  void barrier(const char* name) override {
    host_->barrier(name);
  }
  std::optional<Failure> failure() override {
    return host_->failure();
  }
  void abort(const Failure& failure) noexcept override {
    host_->abort(failure);
  }

private:
  const BlockMemory* memory_of(const void* data) const {
    return memory_.owns(data) ? &memory_ : nullptr;
  }
  HostRead read(const void* data, std::size_t count, DType dtype) const {
    return {memory_of(data), data, count * size_bytes(dtype)};
  }
  HostWrite change(void* data, std::size_t count, DType dtype,
                   OldContent old) const {
    return {memory_of(data), data, count * size_bytes(dtype), old};
  }

  std::shared_ptr<Collectives> host_;
  const BlockMemory& memory_;
};

} // namespace

std::shared_ptr<Collectives>
make_staged_collectives(std::shared_ptr<Collectives> host,
                        const BlockMemory& memory) {
  return std::make_shared<StagedCollectives>(std::move(host), memory);
}

} // namespace troupe::net
