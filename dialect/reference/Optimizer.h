//===- Optimizer.h - Runs the two bodies of a zero.optimizer ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_REFERENCE_OPTIMIZER_H
#define ZERO_DIALECT_REFERENCE_OPTIMIZER_H

#include "dialect/reference/ScalarBody.h"
#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// What lives across steps for one parameter.
struct ParameterState {
  ParameterOp op;
  std::vector<Number> values; // in storage type
  std::vector<Number> master; // empty if the values are the master copy
  std::vector<std::pair<std::string, std::vector<Number>>> states;

  std::vector<Number> &getMaster() { return master.empty() ? values : master; }
};

/// An optimizer that is ready to run.
class OptimizerRunner {
public:
  static mlir::FailureOr<OptimizerRunner> create(OptimizerOp op);

  /// Runs `prepare` on hyperparameters and |counters|; returns the counters'
  /// next values and the scalars.
  std::pair<std::vector<Number>, std::vector<Number>>
  prepare(const Calculator &calculator, llvm::ArrayRef<Number> hyper,
          llvm::ArrayRef<Number> counters) const;

  /// Updates |parameter| with |gradient|, which is of type |gradientType|.
  void update(const Calculator &calculator, llvm::ArrayRef<Number> gradient,
              mlir::Type gradientType, llvm::ArrayRef<Number> scalars,
              ParameterState &parameter) const;

  /// Gives |parameter| a master copy and state, at zero.
  void initialize(ParameterState &parameter) const;

  OptimizerOp getOp() const { return op; }

private:
  mutable OptimizerOp op;
  ScalarBody prepareBody;
  ScalarBody updateBody;
};

} // namespace zero

#endif // ZERO_DIALECT_REFERENCE_OPTIMIZER_H
