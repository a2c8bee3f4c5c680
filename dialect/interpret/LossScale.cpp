//===- LossScale.cpp - Runs the rule of a zero.loss_scale -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/LossScale.h"

#include "dialect/interpret/Optimizer.h"

#include <cmath>

using namespace mlir;
using namespace zero;

FailureOr<LossScale> LossScale::create(LossScaleOp op) {
  FailureOr<ScalarBody> body = ScalarBody::create(op.getUpdate().front());
  if (failed(body))
    return failure();
  return LossScale(op, std::move(*body));
}

std::vector<Number> LossScale::getInitial() {
  std::vector<Number> counters;
  for (double initial : op.getCounterInitial())
    counters.push_back({initial, 0});
  return counters;
}

std::optional<size_t> LossScale::findCounter(StringRef name) {
  return findName(op.getCounterNames(), name);
}

void LossScale::advance(const Calculator &calculator,
                        std::vector<Number> &counters, int verdict) {
  if (verdict > 1)
    return;
  std::vector<Number> arguments{{double(verdict), 0}};
  llvm::append_range(arguments, counters);
  std::vector<Number> next(counters.size());
  body.run(calculator, arguments, next);
  if (!std::isnormal(next[0].value) || next[0].value < 0)
    next[0] = counters[0];
  counters = std::move(next);
}
