// Sources of the numbers of a hardware file, and the sentence printed with
// every prediction made from them: a user must see whether anything was
// measured on the hardware that the prediction is about.
#pragma once

#include "plans/cost/hardware.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::plans {

enum class SourceKind {
  measured,   ///< on the machine that the file is named after
  fitted,     ///< to measurements of whole steps
  data_sheet, ///< possibly times a share that kernels reach
  assumed,
  given, ///< by the user's file, without a source
};
inline constexpr std::size_t num_source_kinds = 5;

/// Returns e.g. "data sheet".
const char* to_string(SourceKind kind);

/// Returns the kind from the first word of a source: measured, fitted, spec,
/// assumed; a number without a source has the name of the file there.
SourceKind kind_of_source(std::string_view source);

/// Number of entries of a hardware file by kind of source.
struct SourceCounts {
  std::array<std::uint32_t, num_source_kinds> of = {};
  std::uint32_t operator[](SourceKind kind) const {
    return of[static_cast<std::size_t>(kind)];
  }
};
SourceCounts count_sources(const Hardware& hardware);

/// Returns whether `troupe profile` wrote the file on the machine that it
/// describes.
bool is_profiled(const Hardware& hardware);

/// Returns e.g. "predicted for h100x8, never measured on this hardware: of its
/// numbers 10 from data sheets, 14 assumed"; for a100x8, whose constants follow
/// published measurements, "fitted to published measurements (21 numbers)"
/// instead.
std::string basis_of(const Hardware& hardware);

} // namespace troupe::plans
