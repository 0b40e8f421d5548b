// The launches of models/gpu/kernels by g++, for programs that run on pretended
// GPUs (tests/gpu/CMakeLists.txt): where their .cu files include launch.cuh,
// they get that of host/.
#include "models/gpu/kernels/decode.cu"
#include "models/gpu/kernels/embeddings.cu"
#include "models/gpu/kernels/experts.cu"
#include "models/gpu/kernels/gated_units.cu"
#include "models/gpu/kernels/logits.cu"
#include "models/gpu/kernels/norms.cu"
#include "models/gpu/kernels/optimizer.cu"
#include "models/gpu/kernels/rotations.cu"
#include "models/gpu/kernels/rows.cu"
#include "models/gpu/kernels/sampling.cu"
