// Identity of a program: the version, the linker's build id of the binary, and
// the names of what it has registered. A worker presents it when it joins; a
// run refuses one that differs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Returns "troupe 0.1.0 (build 1f3a..., registry 5d0c...)"; "build unknown"
/// for a binary that was linked without a build id.
std::string build_identity();

/// Returns a hash of names in any order, equal on every machine (FNV-1a).
std::uint64_t registry_hash(std::vector<std::string> names);

} // namespace troupe::runtime
