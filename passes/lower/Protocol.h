//===- Protocol.h - Buffers of a bucket and when they are used --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_PROTOCOL_H
#define ZERO_PASSES_LOWER_PROTOCOL_H

#include "passes/lower/ProgramBuilder.h"

#include "llvm/ADT/MapVector.h"

namespace zero {

/// A collective that sums gradients over ranks.
struct GradientSum {
  mlir::Location loc; // of what asks for it
  mlir::ArrayAttr axes;
  bool scatters = false; // to |reduced|, else in place
};

/// What one bucket is kept in.
struct BucketBuffers {
  BucketOp op;
  OptimizerOp optimizer;
  ValueType gradientType; // what one backward pass leaves
  ValueType reducedType;  // null if the reduction stays in place
  ValueType ownedType;    // what is updated: placement and space of the state
  mlir::Type storageType;
  mlir::Type reduceDtype;      // that addends travel as; null: as they are
  bool summedInLoop = false;   // backward passes are, into |reduced|
  mlir::ArrayAttr scatterAxes; // of the reduction in the loop, or null
  mlir::LocationAttr scatterLoc;
  /// Behind the loop, as soon as a gradient is whole; more may follow at apply.
  llvm::SmallVector<GradientSum, 2> sums;
  bool isSummedAtApply = false;
  bool isAssigned = false; // every replica receives the update

  mlir::FlatSymbolRefAttr gradient;
  mlir::FlatSymbolRefAttr reduced;      // null if the reduction stays in place
  mlir::FlatSymbolRefAttr reduceBuffer; // null if addends travel as they are
  mlir::FlatSymbolRefAttr parameters;
  mlir::FlatSymbolRefAttr master; // the parameters, if these are it
  mlir::FlatSymbolRefAttr
      staging; // the update's parameters on the host, or null
  llvm::SmallVector<mlir::Attribute> states;
  mlir::FlatSymbolRefAttr whole; // one segment

  bool isSharded() const {
    return !ownedType.getAxesOfDim(ownedType.getShape().size() - 1).empty();
  }
  bool isOffloaded() const { return ownedType.isOnHost(); }
  /// What the update writes as new parameters.
  mlir::FlatSymbolRefAttr getUpdated() const {
    if (!isOffloaded())
      return parameters;
    return staging ? staging : master;
  }
  /// What outlives a backward pass when there are several.
  mlir::FlatSymbolRefAttr getAccumulator() const {
    return summedInLoop ? reduced : gradient;
  }
};

/// By name, in the order in which their gradients are expected.
using BucketMap = llvm::MapVector<mlir::StringAttr, BucketBuffers>;

/// What a reduction of the gradient of |bucket| reads: that, or the copy that
/// travels, which |calls| makes first.
mlir::FlatSymbolRefAttr prepareAddends(ProgramBuilder &program,
                                       HandlerBuilder &calls,
                                       const BucketBuffers &bucket);

/// Creates the buffers, arrivals and state of |bucket|.
void declareBucket(ProgramBuilder &program, BucketBuffers &bucket);

/// Creates the handlers of the backward passes and the automaton. |finish| runs
/// when all backward passes are closed and summed as the buckets' |sums| say.
void buildProtocol(ProgramBuilder &program, BucketMap &buckets,
                   mlir::FlatSymbolRefAttr finish);

} // namespace zero

#endif // ZERO_PASSES_LOWER_PROTOCOL_H
