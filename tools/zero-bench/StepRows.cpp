//===- StepRows.cpp - A whole step against separate passes ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/Programs.h"
#include "tools/zero-bench/References.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::bench;

namespace {
/// Unscale, norm, clip, AdamW and cast, one pass over memory each.
struct SeparatePasses {
  explicit SeparatePasses(int64_t n) : g(n), p(n), m(n), v(n), out(n) {
    std::fill(p.data(), p.data() + n, 0.5f);
    std::fill(v.data(), v.data() + n, 1e-4f);
  }
  void run(const uint16_t *gradient) {
    int64_t n = g.size();
    unscale(gradient, 1.0f, g.data(), n);
    double norm = std::sqrt(sumSquares(g.data(), n));
    clip(g.data(), float(std::min(1.0, 1.0 / (norm + 1e-6))), n);
    adamW(g.data(), p.data(), m.data(), v.data(),
          {1 - 1e-4f, -1e-3f, 0.9f, 0.1f, 0.999f, 1e-3f, 1.0f, 1e-8f}, n);
    castToBf16(p.data(), out.data(), n);
  }
  Pages<float> g, p, m, v;
  Pages<uint16_t> out;
};
} // namespace

static bool check(zero_rt_status status, std::string &message) {
  if (status)
    message = zero_rt_message();
  return status == ZERO_RT_OK;
}

bool zero::bench::runStepRows(const Options &options, std::vector<Row> &rows,
                              std::string &message) {
  auto context = createContext();
  OwningOpRef<ModuleOp> module =
      lowerStep(*context, getStepText({options.elements}, "bf16"), /*stage=*/0);
  if (!module)
    return false;
  SeparatePasses passes(options.elements);
  auto work = [&](int32_t, zero_rt_step *step, std::string &error) {
    bool ok = true;
    zero_rt_tensor slot = {};
    slot.struct_size = sizeof(slot);
    auto begin = [&] {
      double beta = 0;
      ok &=
          check(zero_rt_step_begin_backward(step, ZERO_RT_HINT_LAST), error) &&
          check(zero_rt_step_gradient_slot(step, 0, nullptr, &slot, &beta),
                error);
    };
    begin();
    if (!ok)
      return false;
    // The backward pass writes the gradient where it belongs; both read it
    // there.
    uint32_t random = 1;
    auto *gradient = static_cast<uint16_t *>(slot.data);
    for (int64_t i = 0; i < options.elements; ++i) {
      random = random * 1664525 + 1013904223;
      gradient[i] = uint16_t((random >> 16 & 0x807f) | 0x3c00); // about 1e-2
    }
    ok &= check(zero_rt_step_discard(step), error);
    Pair pair = interleave(
        options.rounds, [] {},
        [&](int) {
          double rate = 1e-3;
          begin();
          ok &= check(zero_rt_step_gradient_ready(step, 0, nullptr), error) &&
                check(zero_rt_step_apply(step, &rate, 1, nullptr), error);
        },
        [&] { passes.run(gradient); });
    Row row;
    row.name = "whole step, one rank";
    row.timeMs = pair.timeMs;
    row.reference = "unscale, norm, clip, adam, cast";
    row.referenceMs = pair.referenceMs;
    row.unit = "speed-up";
    row.value = 1 / pair.ratio;
    row.goal = Row::Goal::atLeast;
    row.limit = 1.5;
    rows.push_back(row);
    return ok;
  };
  return runRanks(*module, 1, work, message);
}
