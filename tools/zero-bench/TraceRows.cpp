//===- TraceRows.cpp - A step that writes a trace, and one that does not --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/Programs.h"

#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace zero;
using namespace zero::bench;

/// As many parameters as GPT-2 small has.
static constexpr int64_t kParameters = 148;

namespace {
/// A step whose gradients are delivered one by one.
struct Delivered {
  Delivered(zero_rt_step *step, int64_t elements)
      : step(step), data(kParameters * elements, 0x3c00) {
    for (int64_t i = 0; i < kParameters; ++i)
      tensors.push_back({sizeof(zero_rt_tensor), ZERO_RT_BF16,
                         ZERO_RT_SPACE_DEVICE, 0, elements,
                         &data[i * elements]});
  }
  /// False, with |message|, on an error.
  bool run(std::string &message) {
    double rate = 1e-3;
    zero_rt_status status =
        zero_rt_step_begin_backward(step, ZERO_RT_HINT_LAST);
    for (int32_t i = kParameters; !status && i-- > 0;)
      status = zero_rt_step_gradient(step, i, &tensors[i], nullptr, nullptr);
    if (!status)
      status = zero_rt_step_apply(step, &rate, 1, nullptr);
    if (status)
      message = zero_rt_message();
    return !status;
  }
  zero_rt_step *step;
  std::vector<uint16_t> data;
  std::vector<zero_rt_tensor> tensors;
};

struct TemporaryFolder {
  TemporaryFolder() {
    error = llvm::sys::fs::createUniqueDirectory("zero-bench", path);
  }
  ~TemporaryFolder() {
    if (!error)
      llvm::sys::fs::remove_directories(path);
  }
  llvm::SmallString<128> path;
  std::error_code error;
};
} // namespace

bool zero::bench::runTraceRows(const Options &options, std::vector<Row> &rows,
                               std::string &message) {
  TemporaryFolder folder;
  if (folder.error) {
    message = "cannot create a temporary folder: " + folder.error.message();
    return false;
  }
  auto context = createContext();
  // The whole has as many elements as a kernel.
  int64_t elements = options.elements / kParameters;
  OwningOpRef<ModuleOp> module = lowerStep(
      *context,
      getStepText(std::vector<int64_t>(kParameters, elements), "bf16"),
      /*stage=*/0);
  if (!module)
    return false;
  auto compare = [&](zero_rt_step *plain, zero_rt_step *traced,
                     std::string &error) {
    Delivered without(plain, elements), with(traced, elements);
    bool ok = true;
    Pair pair = interleave(
        options.rounds, [] {}, [&](int) { ok &= with.run(error); },
        [&] { ok &= without.run(error); });
    Row row;
    row.name = "a step with a trace";
    row.timeMs = pair.timeMs;
    row.reference = "the same without";
    row.referenceMs = pair.referenceMs;
    row.unit = "time / reference";
    row.value = pair.ratio;
    row.goal = Row::Goal::atMost;
    row.limit = 1.05;
    rows.push_back(row);
    return ok;
  };
  auto withTrace = [&](int32_t, zero_rt_step *plain, std::string &error) {
    auto both = [&](int32_t, zero_rt_step *traced, std::string &inner) {
      return compare(plain, traced, inner);
    };
    return runRanks(*module, 1, both, error, folder.path.c_str());
  };
  return runRanks(*module, 1, withTrace, message);
}
