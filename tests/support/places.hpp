// Paths of files that tests and benchmarks share: the golden data and the
// source tree. The only object that contains absolute paths of a build, so that
// the others are the same in every tree and come from the compiler cache.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::support {

/// Returns $TROUPE_SHARED, else `shared` beside the source tree.
std::filesystem::path shared_folder();
/// Returns $TROUPE_SOURCE, else the source tree: programs that were carried to
/// another machine (tests/gpu/bundle.sh) have a folder with what they read.
std::filesystem::path source_folder();

/// Returns true if golden tests read the folder beside the source tree
/// (TROUPE_TEST_GOLDEN=shared) instead of the source tree's own.
bool second_opinion();
/// The folder of golden data: tests/golden/data, or golden/ of shared_folder()
/// for the second opinion.
std::filesystem::path golden_folder();
/// "problems" or "pairs" as JSON lines in the manner of GSM8K; real ones for
/// the second opinion.
std::filesystem::path golden_rows(const std::string& kind);

} // namespace troupe::support
