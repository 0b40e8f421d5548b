// Precompiled for actors, runtime and programs over them: words, tensors, CAF.
#include <ATen/core/Tensor.h>
#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "cmake/precompiled/words.hpp"
