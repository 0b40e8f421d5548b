#include "models/parallel/plane_memory.hpp"

#include "config/base/error.hpp"

#include <cstring>
#include <utility>

namespace troupe::models {

PlaneMemory::PlaneMemory(std::int64_t size, const net::BlockMemory* memory,
                         Sharing sharing)
  : size_(size),
    memory_(memory),
    host_sharing_(sharing.host) {
  device_ = memory_ != nullptr ? net::PageBlock(size_bytes(), *memory_)
                               : net::PageBlock(size_bytes(), sharing.device);
  move_to(Where::device);
}

PlaneMemory::~PlaneMemory() {
  net::finish_copy(copy_);
}

bool PlaneMemory::copies_beside_kernels() const {
  return memory_ != nullptr && memory_->copies != nullptr;
}

void PlaneMemory::offload() {
  if (where_ != Where::device)
    return;
  if (host_.data() == nullptr) {
    host_ = net::PageBlock(size_bytes(), host_sharing_);
    if (memory_ != nullptr)
      lock_ = net::PageLock(*memory_, {host_.data(), size_bytes()});
  }
  if (!host_is_current_)
    copy_to_host();
  host_is_current_ = true;
  leave_device(Where::host);
}

void PlaneMemory::reload() {
  if (where_ == Where::device)
    return;
  TROUPE_CHECK(where_ == Where::host, "a dropped plane has no values");
  return_to_device();
  copy_to_device();
}

void PlaneMemory::drop() {
  host_is_current_ = false;
  leave_device(Where::nowhere);
}

void PlaneMemory::expect() {
  host_is_current_ = false;
  return_to_device();
}

void PlaneMemory::changed() {
  if (where_ == Where::device)
    host_is_current_ = false;
}

float* PlaneMemory::data() const {
  if (!std::exchange(kernels_wait_, true))
    copy_->before_kernels();
  return reinterpret_cast<float*>(device_.data());
}

const net::PageBlock& PlaneMemory::newest() const {
  if (where_ == Where::host)
    return published();
  static_cast<void>(data()); // the host's copies are in the order of kernels
  return device_;
}

const net::PageBlock& PlaneMemory::published() const {
  if (host_.data() == nullptr)
    return device_;
  if (copy_)
    copy_->wait();
  return host_;
}

void PlaneMemory::copy_to_host() {
  if (copies_beside_kernels()) {
    copy_ = memory_->copies->start_read(device_.data(), host_.data(),
                                        size_bytes(), copy_.get());
    memory_->copies->keep(device_.data(), *copy_);
  } else if (memory_ != nullptr) {
    memory_->read(device_.data(), host_.data(), size_bytes());
  } else {
    std::memcpy(host_.data(), device_.data(), size_bytes());
  }
}

void PlaneMemory::copy_to_device() {
  if (copies_beside_kernels()) {
    copy_ = memory_->copies->start_write(host_.data(), device_.data(),
                                         size_bytes(), copy_.get());
    memory_->copies->keep(device_.data(), *copy_);
    kernels_wait_ = false;
  } else if (memory_ != nullptr) {
    memory_->write(host_.data(), device_.data(), size_bytes());
  } else {
    std::memcpy(device_.data(), host_.data(), size_bytes());
  }
}

void PlaneMemory::move_to(Where there) {
  where_ = there;
  charge_.set(there == Where::device ? size_bytes() : 0);
}

void PlaneMemory::leave_device(Where there) {
  kernels_wait_ = true; // for nothing
  if (memory_ != nullptr)
    device_ = {};
  else
    device_.release_pages();
  move_to(there);
}

void PlaneMemory::return_to_device() {
  if (device_.data() == nullptr)
    device_ = net::PageBlock(size_bytes(), *memory_);
  move_to(Where::device);
}

} // namespace troupe::models
