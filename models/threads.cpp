#include "models/threads.hpp"

#include <ATen/Parallel.h>

namespace troupe::models {

void set_compute_threads(int num_threads) {
  at::set_num_threads(num_threads);
}

} // namespace troupe::models
