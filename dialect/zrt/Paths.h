//===- Paths.h - The order in which a protocol runs handlers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A path of the protocol leads from one state to the next by an event other
// than an arrival. Arrivals and closed buckets stand on the path out of the
// state in which they happen.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_PATHS_H
#define ZERO_DIALECT_ZRT_PATHS_H

#include "dialect/zrt/ZrtDialect.h"

#include <vector>

namespace zrt {

/// One run of a handler.
struct PathStep {
  HandlerOp handler;
  /// The bucket of the gradient that arrives; null where none does.
  mlir::FlatSymbolRefAttr arriving;
  /// Whether the handler may not run: gradients may be missing, and ranks of
  /// another pipeline stage do not close the bucket.
  bool isOptional = false;
};

struct Path {
  mlir::StringAttr from, to;
  Event event;
  std::vector<PathStep> steps;
};

/// All paths of |program|. On the way from a state with arrivals, gradients of
/// a bucket arrive at the earliest and at the latest time: as soon as the
/// bucket is open, and right before it is closed. In between only memory of
/// other buckets is touched (`sequence_c4`).
std::vector<Path> enumeratePaths(ProgramOp program);

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_PATHS_H
