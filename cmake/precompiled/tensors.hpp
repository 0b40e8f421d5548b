// Precompiled for models: the words of all libraries, tensors, vector
// instructions.
#include <ATen/core/Tensor.h>

#include "cmake/precompiled/words.hpp"
#include <immintrin.h>
