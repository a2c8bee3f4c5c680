//===- ScalarBody.h - Runs a region of scalar math --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_REFERENCE_SCALARBODY_H
#define ZERO_DIALECT_REFERENCE_SCALARBODY_H

#include "dialect/reference/Number.h"

#include "mlir/IR/Block.h"

namespace zero {

/// A block of arith and math ops, ready to run once per element.
class ScalarBody {
public:
  /// Runs an op that is no scalar math, such as a load of a slot.
  using OtherFn = llvm::function_ref<void(
      mlir::Operation &, llvm::DenseMap<mlir::Value, Number> &)>;

  /// Emits a diagnostic at the first op that is neither scalar math nor, with
  /// |allowSlots|, an access to a slot.
  static mlir::FailureOr<ScalarBody> create(mlir::Block &block,
                                            bool allowSlots = false);

  /// What the terminator yields when the block's arguments are |arguments|.
  std::vector<Number> run(const Calculator &calculator,
                          llvm::ArrayRef<Number> arguments,
                          OtherFn other = nullptr) const;

private:
  mlir::Block *block = nullptr;
};

} // namespace zero

#endif // ZERO_DIALECT_REFERENCE_SCALARBODY_H
