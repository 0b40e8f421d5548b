// Host bodies of the kernels of models/gpu/kernels: a launch on a pretended GPU
// computes what the CPU form of the same source computes.
#include "models/gpu/kernels/adamw_step.hpp"
#include "models/gpu/kernels/add_rows.hpp"
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/decode_append.hpp"
#include "models/gpu/kernels/decode_attend.hpp"
#include "models/gpu/kernels/draw_token.hpp"
#include "models/gpu/kernels/embed_tokens.hpp"
#include "models/gpu/kernels/expert_unit_backward.hpp"
#include "models/gpu/kernels/gated_unit.hpp"
#include "models/gpu/kernels/join_attention.hpp"
#include "models/gpu/kernels/join_experts.hpp"
#include "models/gpu/kernels/load_excess.hpp"
#include "models/gpu/kernels/logit_gradient.hpp"
#include "models/gpu/kernels/logit_parts.hpp"
#include "models/gpu/kernels/qk_norm.hpp"
#include "models/gpu/kernels/rms_norm.hpp"
#include "models/gpu/kernels/rms_norm_backward.hpp"
#include "models/gpu/kernels/rotation.hpp"
#include "models/gpu/kernels/route_backward.hpp"
#include "models/gpu/kernels/scatter_rows.hpp"
#include "models/gpu/kernels/sort_experts.hpp"
#include "models/gpu/kernels/squared_norm.hpp"

#include "standin.hpp"
#include <dlfcn.h>

#include <typeinfo>

namespace troupe::models::gpu {

/// Has the name under which nvcc registers the kernel of models/gpu/kernels/
/// launch.cuh, which is declared alike.
template <class Body>
__attribute__((visibility("default"), noinline)) void run_body(Body) {
  asm volatile("");
}

} // namespace troupe::models::gpu

namespace troupe::standin {

namespace {

using namespace models;
using namespace models::gpu;

template <class Body>
bool give_body() {
  Dl_info kernel{};
  if (::dladdr(reinterpret_cast<const void*>(&run_body<Body>), &kernel) == 0
      || kernel.dli_sname == nullptr)
    return false;
  // by nvcc's name, and by that of host/models/gpu/kernels/launch.cuh
  for (const char* name : {kernel.dli_sname, typeid(Body).name()})
    set_kernel_body(name, [](void** args, Grid grid) {
      const Body body = *static_cast<const Body*>(args[0]);
      const std::int64_t blocks = grid.blocks.x;
      return [body, blocks] { run_on_host(body, blocks); };
    });
  return true;
}

template <template <class> class... Kernels>
bool give_bodies() {
  return ((give_body<Kernels<float>>() && give_body<Kernels<Bf16>>()) && ...);
}

template <class... Types>
bool give_embeddings() {
  return ((give_body<EmbedTokens<float, Types>>()
           && give_body<EmbedTokens<Bf16, Types>>())
          && ...);
}

template <class... Units>
bool give_units() {
  return ((give_body<GatedUnit<Units, float>>()
           && give_body<GatedUnit<Units, Bf16>>()
           && give_body<GatedUnitBackward<Units, float>>()
           && give_body<GatedUnitBackward<Units, Bf16>>()
           && give_body<ExpertUnitBackward<Units, float>>()
           && give_body<ExpertUnitBackward<Units, Bf16>>())
          && ...);
}

[[maybe_unused]] const bool all_given
  = give_bodies<RmsNorm, RmsNormBackward, HeadNorm, HeadNormBackward, Rotate,
                LogitParts, LogitGradient, DrawToken, DecodeAppend,
                DecodeAttend, JoinAttention>()
    && give_units<Silu, Gelu, GeluTanh>() && give_embeddings<float, Bf16>()
    && give_body<AddRows>() && give_body<AdamwStep>() && give_body<RunSquares>()
    && give_body<JoinSquares>() && give_body<JoinLogitParts>()
    && give_body<ChooseExperts>() && give_body<RouteBackward>()
    && give_body<SortExperts>() && give_body<LoadExcess>()
    && give_body<JoinExperts<float, float>>()
    && give_body<JoinExperts<Bf16, float>>()
    && give_body<JoinExperts<Bf16, Bf16>>()
    && give_body<ScatterRows<float, float>>()
    && give_body<ScatterRows<Bf16, float>>()
    && give_body<ScatterRows<Bf16, Bf16>>();

} // namespace

} // namespace troupe::standin
