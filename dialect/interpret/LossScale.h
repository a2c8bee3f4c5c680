//===- LossScale.h - Runs the rule of a zero.loss_scale ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_LOSSSCALE_H
#define ZERO_DIALECT_INTERPRET_LOSSSCALE_H

#include "dialect/interpret/ScalarBody.h"
#include "dialect/zero/ZeroDialect.h"

namespace zero {

class LossScale {
public:
  static mlir::FailureOr<LossScale> create(LossScaleOp op);

  std::vector<Number> getInitial();
  /// The index of a counter by its name, or nothing.
  std::optional<size_t> findCounter(llvm::StringRef name);
  /// What |counters| are after a step with this verdict.
  void advance(const Calculator &calculator, std::vector<Number> &counters,
               int verdict);

private:
  LossScale(LossScaleOp op, ScalarBody body) : op(op), body(std::move(body)) {}

  LossScaleOp op;
  ScalarBody body;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_LOSSSCALE_H
