//===- BucketBuffers.h - Buffers of a bucket --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_BUCKETBUFFERS_H
#define ZERO_PASSES_LOWER_BUCKETBUFFERS_H

#include "passes/lower/ProgramBuilder.h"

#include "llvm/ADT/MapVector.h"

namespace zero {

/// A collective that sums gradients over ranks.
struct GradientSum {
  mlir::Location loc; // the location of the op that becomes this collective
  mlir::ArrayAttr axes;
  bool scatters = false; // into |reduced|; else in place
};

/// The buffers of one bucket.
struct BucketBuffers {
  BucketOp op;
  OptimizerOp optimizer;
  ValueType gradientType; // the gradient of one backward pass
  /// The sum of several backward passes that stay as they arrive; else null.
  ValueType accumulatorType;
  ScaleAttr prescaled;   // what the caller multiplied gradients by
  ValueType reducedType; // null if the reduction stays in place
  ValueType ownedType;   // the slice that is updated, in the space of the state
  ValueType keptType;    // what a rank keeps of the parameters between steps
  mlir::Type storageType;
  mlir::Type reduceDtype;      // null: addends travel in their own type
  bool summedInLoop = false;   // the reduction in the loop adds to |reduced|
  mlir::ArrayAttr scatterAxes; // the axes of the reduction in the loop, or null
  mlir::LocationAttr scatterLoc;
  /// Collectives after the loop that may run as soon as a gradient is whole.
  /// Apply may run more.
  llvm::SmallVector<GradientSum, 2> sums;
  bool isSummedAtApply = false;
  bool isAssigned = false; // every replica receives the update
  /// No gradient is complete before the end of a backward pass, or a bucket is
  /// not closed before.
  bool isOpenToTheEnd = false;

  mlir::FlatSymbolRefAttr gradient;
  mlir::FlatSymbolRefAttr accumulator;  // null without an accumulator type
  mlir::FlatSymbolRefAttr reduced;      // null if the reduction stays in place
  mlir::FlatSymbolRefAttr reduceBuffer; // null without a reduce dtype
  mlir::FlatSymbolRefAttr parameters;
  mlir::FlatSymbolRefAttr unsharded; // null if each rank keeps all parameters
  mlir::FlatSymbolRefAttr master;    // may be the parameters themselves
  mlir::FlatSymbolRefAttr staging;   // updated parameters on the host, or null
  llvm::SmallVector<mlir::Attribute> states;
  mlir::FlatSymbolRefAttr whole; // one segment

  bool isSharded() const {
    return !ownedType.getAxesOfDim(ownedType.getShape().size() - 1).empty();
  }
  bool isOffloaded() const { return ownedType.isOnHost(); }
  /// Whether each rank keeps a slice of the parameters.
  bool keepsSlices() const {
    return !keptType.getAxesOfDim(keptType.getShape().size() - 1).empty();
  }
  /// Whether the sum over |axes| may be taken before apply, in a backward pass
  /// that the caller hints is the last.
  bool maySumEarly(mlir::ArrayAttr axes) const;
  /// The buffer to which the update writes new parameters.
  mlir::FlatSymbolRefAttr getUpdated() const {
    if (!isOffloaded() || keptType.isOnHost())
      return parameters;
    return staging ? staging : master;
  }
  /// The buffer that keeps its contents from one backward pass to the next.
  mlir::FlatSymbolRefAttr getAccumulator() const {
    if (accumulator)
      return accumulator;
    return summedInLoop ? reduced : gradient;
  }
};

/// Buckets by name, in the order in which their gradients are expected.
using BucketMap = llvm::MapVector<mlir::StringAttr, BucketBuffers>;

/// The buffer that a reduction of |addends|, a buffer of |bucket|, reads:
/// itself, or a copy in the reduce dtype. Appends the copy to |calls|.
mlir::FlatSymbolRefAttr prepareAddends(ProgramBuilder &program,
                                       HandlerBuilder &calls,
                                       const BucketBuffers &bucket,
                                       mlir::FlatSymbolRefAttr addends);

/// Creates the buffers, the bucket table and the state of |bucket|.
void declareBucket(ProgramBuilder &program, BucketBuffers &bucket);

/// Gives buffers of buckets that are never in use together one memory, as large
/// as the largest of them. These buffers are gradients, of which |kOpenBuckets|
/// are open, or copies in the reduce dtype. Each pipeline stage has memory of
/// its own. A gradient that is open to the end of the backward pass has its own
/// memory, so that no gradient waits for it.
void shareBucketMemory(ProgramBuilder &program, BucketMap &buckets,
                       mlir::FlatSymbolRefAttr BucketBuffers::*buffer);

} // namespace zero

#endif // ZERO_PASSES_LOWER_BUCKETBUFFERS_H
