//===- DeliverRows.cpp - The time of a call for a gradient ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/Programs.h"

using namespace mlir;
using namespace zero;
using namespace zero::bench;

/// Small gradients, so that the calls take the time and not memory.
static constexpr int64_t kGradients = 10000;
static constexpr int64_t kElements = 8;

bool zero::bench::runDeliverRows(const Options &options, std::vector<Row> &rows,
                                 std::string &message) {
  auto context = createContext();
  std::vector<int64_t> sizes(kGradients, kElements);
  OwningOpRef<ModuleOp> module =
      lowerStep(*context, getStepText(sizes, "bf16"), /*stage=*/0);
  if (!module)
    return false;
  auto work = [&](int32_t, zero_rt_step *step, std::string &error) {
    std::vector<uint16_t> data(kGradients * kElements, 0x3c00);
    std::vector<int32_t> parameters;
    std::vector<zero_rt_tensor> tensors;
    // In the order of a backward pass.
    for (int64_t i = kGradients - 1; i >= 0; --i) {
      parameters.push_back(i);
      tensors.push_back({sizeof(zero_rt_tensor), ZERO_RT_BF16,
                         ZERO_RT_SPACE_DEVICE, 0, kElements,
                         &data[i * kElements]});
    }
    bool ok = true;
    auto check = [&](zero_rt_status status) {
      if (status && ok)
        error = zero_rt_message();
      ok &= status == ZERO_RT_OK;
    };
    bool isOpen = false;
    Pair pair = interleave(
        options.rounds,
        [&] {
          if (isOpen)
            check(zero_rt_step_discard(step));
          check(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
          isOpen = true;
        },
        [&](int) {
          check(zero_rt_step_gradients(step, parameters.data(), tensors.data(),
                                       kGradients, nullptr, nullptr));
        },
        [&] {
          for (int64_t i = 0; i < kGradients; ++i)
            check(zero_rt_step_gradient(step, parameters[i], &tensors[i],
                                        nullptr, nullptr));
        });
    Row row;
    row.name = "deliver 10000 gradients at once";
    row.timeMs = pair.timeMs;
    row.reference = "one call each";
    row.referenceMs = pair.referenceMs;
    row.unit = "us each";
    row.value = pair.timeMs * 1000 / kGradients;
    row.goal = Row::Goal::atMost;
    row.limit = 0.15;
    rows.push_back(row);
    return ok;
  };
  return runRanks(*module, 1, work, message);
}
