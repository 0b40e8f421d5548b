// Blocks of the pretended GPUs. Memory of a GPU is memory of the host that can
// be touched only while work runs; managed and pinned memory can be touched
// always. A freed address is not used again: who touches it is named.
#pragma once

#include "standin.hpp"

#include <cstddef>
#include <map>
#include <string>

namespace troupe::standin {

enum class Kind { device, managed, pinned, locked, opened };

struct Block {
  std::size_t size_bytes = 0;
  Kind kind = Kind::device;
  int device = 0;
  int file = -1;           ///< memory of a GPU: what another process may map
  bool is_on_host = false; ///< managed pages that were moved to the host
};

class Memory {
public:
  /// Takes a block; null if the GPU has less free. Managed memory may exceed
  /// what is free, up to twice the GPU, as drivers allow.
  void* take(std::size_t size_bytes, Kind kind, int device);
  /// Maps memory of a GPU of another process.
  void* open(int file, std::size_t size_bytes, int device);
  /// Gives a block back; false if there is none at this address.
  bool give(void* data);
  /// Makes memory that the program has a block of pinned memory; false if a
  /// part of it is one.
  bool lock(void* data, std::size_t size_bytes, int device);
  bool unlock(void* data);

  std::size_t taken(int device) const;
  /// Returns the block that contains the address, or null.
  const Block* find(const void* data) const;
  /// Returns the first byte of the block that contains the address, or null.
  const void* start_of(const void* data) const;
  void move_pages(const void* data, bool to_host);

  /// Checks what work accesses; says what is wrong and returns false if a range
  /// is not in live memory.
  bool may_access(const Work& work);
  /// Says what is at an address that may not be touched; empty: not ours.
  std::string describe(const void* data) const;

  void begin_access();
  void end_access();

private:
  void protect(bool is_open) const;

  std::map<const char*, Block> blocks_;
  std::map<const char*, Block> freed_;
  std::size_t accessing_ = 0;
};

Memory& memory();

/// Opens memory of GPUs while work runs.
class DeviceAccess {
public:
  DeviceAccess() {
    memory().begin_access();
  }
  ~DeviceAccess() {
    memory().end_access();
  }
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

} // namespace troupe::standin
