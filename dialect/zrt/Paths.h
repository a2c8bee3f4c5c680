//===- Paths.h - The order in which a protocol runs handlers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A path of the protocol leads from one state to the next by an event that is
// not an arrival. Arrivals, and the buckets that they close, are on the path
// that leaves their state.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_PATHS_H
#define ZERO_DIALECT_ZRT_PATHS_H

#include "dialect/zrt/ZrtDialect.h"

#include <vector>

namespace zrt {

/// One run of a handler. Ranks of pipeline stages without the bucket that
/// arrives or is closed do not run it.
struct PathStep {
  HandlerOp handler;
  /// If the handler unshards a unit: the handler that reshards it, and runs
  /// next. In between the caller reads the unit. Else null.
  HandlerOp reshard;
  /// The unit, or null.
  UnitTableOp unit;
  /// The bucket of the gradient that arrives, or null.
  mlir::FlatSymbolRefAttr arriving;
  /// The bucket that the handler closes, or null.
  mlir::FlatSymbolRefAttr closed;
  /// Whether the handler may not run: gradients may be missing, or ranks of
  /// another pipeline stage do not close the bucket, and callers need not
  /// unshard.
  bool isOptional = false;

  /// The handlers that run, in their order.
  llvm::SmallVector<HandlerOp, 2> getHandlers() const {
    return reshard ? llvm::SmallVector<HandlerOp, 2>{handler, reshard}
                   : llvm::SmallVector<HandlerOp, 2>{handler};
  }
};

struct Path {
  mlir::StringAttr from, to;
  Event event;
  std::vector<PathStep> steps;
};

/// All paths of |program|. A path that leaves a state with arrivals has each
/// gradient of a bucket twice: as soon as the bucket is open, and right before
/// the bucket is closed. Between these times only memory of other buckets is
/// touched.
///
/// Units are unsharded and resharded at any time in a state that allows it, and
/// other calls may run in between. They touch no memory that arrivals and
/// sequences touch (the proof checks it). So a path from the state to itself,
/// and each path behind its arrivals, has each unit: what runs before a unit
/// has ordered least on the first, and what runs after a unit on the second.
std::vector<Path> enumeratePaths(ProgramOp program);

/// Calls |walk| for each of |paths| whose state |from| is reached, which
/// |initial| is. |walk| returns whether more is known of the state that the
/// path leads to. A path is walked again after each change of the state that it
/// leaves, so what is known of a state must not grow for ever.
void walkPaths(llvm::ArrayRef<Path> paths, mlir::StringAttr initial,
               llvm::function_ref<bool(const Path &)> walk);

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_PATHS_H
