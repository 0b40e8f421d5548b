// Precompiled for models: the words of all layers, tensors, vector instructions.
#include "cmake/precompiled/words.hpp"

#include <ATen/core/Tensor.h>
#include <immintrin.h>
