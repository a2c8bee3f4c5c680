//===- Optimizer.h - Runs the bodies of a zero.optimizer --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_OPTIMIZER_H
#define ZERO_DIALECT_INTERPRET_OPTIMIZER_H

#include "dialect/interpret/Array.h"
#include "dialect/interpret/ScalarBody.h"
#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// The arrays that one application of an optimizer reads and writes.
struct UpdateArrays {
  const Array &gradient;
  Array &master;
  llvm::MutableArrayRef<Array *> states;
};

/// The index of |name| in |names|, or nothing.
std::optional<size_t> findName(mlir::ArrayAttr names, llvm::StringRef name);

class Optimizer {
public:
  static mlir::FailureOr<Optimizer> create(OptimizerOp op);

  OptimizerOp getOp() const { return op; }
  const Format &getMasterFormat() const { return *master; }
  llvm::ArrayRef<const Format *> getStateFormats() const { return states; }
  /// The index of a state by its name, or nothing.
  std::optional<size_t> findState(llvm::StringRef name);
  std::optional<size_t> findCounter(llvm::StringRef name);
  std::vector<Number> getInitialCounters();

  /// Runs `prepare`: the scalars of the update. Counters advance where the step
  /// is |applied|.
  std::vector<Number> prepare(const Calculator &calculator,
                              llvm::ArrayRef<Number> hyper,
                              std::vector<Number> &counters, bool applied);

  /// Runs `update` for the elements of |range|. |scalars| are those of
  /// `prepare`, in f64.
  void update(const Calculator &calculator, Range range, UpdateArrays arrays,
              llvm::ArrayRef<Number> scalars);

private:
  Optimizer(OptimizerOp op, ScalarBody prepareBody, ScalarBody updateBody);

  OptimizerOp op;
  ScalarBody prepareBody;
  ScalarBody updateBody;
  const Format *master;
  llvm::SmallVector<const Format *> states;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_OPTIMIZER_H
