//===- Actions.h - The actions of a rank in a step --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_ACTIONS_H
#define ZERO_DIALECT_INTERPRET_ACTIONS_H

#include "dialect/interpret/Array.h"
#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include <functional>

namespace zero {

/// A parameter, its place in a bucket, and the table of the bucket.
struct PlacedParameter {
  ParameterOp op;
  BucketOp bucket;
  zrt::BucketTableOp table;
  Range range;
  int64_t padEnd = 0;

  /// Whether the caller reads it while its unit is unsharded, and not else.
  bool isSharded() const {
    zrt::BucketTableOp op = table;
    return static_cast<bool>(op.getUnshardedAttr());
  }
};

/// One action of the host of a rank.
struct Action {
  enum class Kind {
    call,   ///< a call of the program
    note,   ///< a change of the rank's state between two calls
    poison, ///< fills memory, so that a read of it shows
    /// From now on the caller may write to the gradient view of |parameter|.
    lend,
    /// The caller writes the gradient of |parameter|, before it arrives and
    /// when the caller has it back.
    write,
    /// `apply` begins. The caller reads parameters no more.
    apply,
    /// From now on the caller reads the parameters in the bucket of
    /// |parameter|.
    read,
    /// The caller reads the parameters of |unit|, which is unsharded.
    readUnit,
  };
  Kind kind = Kind::call;
  mlir::Operation *call = nullptr;
  std::function<void()> note = {};
  /// The parameter whose gradient arrives, for calls of `arrive` handlers.
  const PlacedParameter *parameter = nullptr;
  /// The unit, for calls of its handlers.
  zrt::UnitTableOp unit = nullptr;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_ACTIONS_H
