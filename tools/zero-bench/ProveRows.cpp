//===- ProveRows.cpp - How long a proof takes -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/Programs.h"

#include "passes/prove/Prove.h"
#include "tools/driver/Driver.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>

using namespace mlir;
using namespace zero;
using namespace zero::bench;

/// What zero-compile adds to compiling without a proof: the logical step is
/// read, and the scheduled one, on one core; the best of three, in seconds.
static bool timeProof(int64_t parameters, int64_t ranks, double &seconds,
                      std::string &message) {
  auto context = createContext();
  auto logical = parseSourceString<ModuleOp>(
      getStepText(getSizes(parameters), "bf16"), context.get());
  LowerOptions options;
  options.mesh = "dp=" + std::to_string(ranks);
  options.until = std::string("logical");
  if (!logical || failed(lower(*logical, options)))
    return false;
  OwningOpRef<ModuleOp> scheduled = logical->clone();
  options.stage = 2;
  options.until = std::string("scheduled");
  if (failed(lower(*scheduled, options)))
    return false;
  seconds = 1e9;
  for (int round = 0; round < 3; ++round) {
    bool isProved = false;
    double time = measure([&] {
      ProvedStep step(*logical);
      isProved = step.isProved() && step.isSameAs(*scheduled);
    });
    if (!isProved) {
      message = "a step of the benchmark is not proved";
      return false;
    }
    seconds = std::min(seconds, time / 1000);
  }
  return true;
}

bool zero::bench::runProveRows(const Options &options, std::vector<Row> &rows,
                               std::string &message) {
  const double limits[] = {0.1, 1, 5};
  for (int64_t ranks : {4, 1024})
    for (size_t i = 0; i < options.compileParameters.size(); ++i) {
      int64_t parameters = options.compileParameters[i];
      Row row;
      row.name = "prove " + std::to_string(parameters) + ", " +
                 std::to_string(ranks) + " ranks";
      if (!timeProof(parameters, ranks, row.value, message))
        return false;
      row.timeMs = row.value * 1000;
      row.unit = "s";
      row.goal = Row::Goal::atMost;
      row.limit = limits[i];
      rows.push_back(row);
    }
  return true;
}
