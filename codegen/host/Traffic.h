//===- Traffic.h - What a rank sends, copies and computes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_TRAFFIC_H
#define ZERO_CODEGEN_HOST_TRAFFIC_H

#include "codegen/host/Tables.h"

#include "llvm/Support/JSON.h"

namespace zero {

/// The collectives of a rank that have one op, one set of axes and one type.
struct CollectiveTotal {
  llvm::StringRef op; // "reduce_scatter"
  mlir::ArrayAttr axes;
  int64_t dtype = 0; // of what travels first: the addends, or the slices
  int64_t ranks = 1; // that take part
  /// Of adjacent ranks in which they are, from a multiple of it on.
  int64_t span = 1;
  int64_t among = 1; // all ranks
  int64_t count = 0;
  int64_t bytes = 0;     // of the whole buffers
  int64_t bytesSent = 0; // by each rank in a ring
};

/// What one rank does when one event happens.
struct Traffic {
  std::vector<CollectiveTotal> collectives;
  int64_t allReduces = 0;
  int64_t scalarAllReduces = 0;
  int64_t reduceScatters = 0;
  int64_t allGathers = 0;
  int64_t bytesSent = 0;
  int64_t bytesCopied = 0; // between spaces
  /// Of kernels, without those that take an arriving gradient.
  int64_t launches = 0;
  int64_t bytesOfKernels[2] = {}; // read and written, by space

  llvm::json::Object toJson() const;
  llvm::json::Array collectivesToJson() const;
  llvm::json::Object kernelsToJson() const;
};

/// Adds what one rank does in |call|.
void addTraffic(zrt::RuntimeCall call, const Tables &tables,
                mlir::SymbolTableCollection &symbols, Traffic &traffic);

/// The traffic of all handlers that |event| runs in |state|.
Traffic countTraffic(zrt::ProgramOp program, const Tables &tables,
                     llvm::StringRef state, zrt::Event event);

/// The traffic of unsharding each unit once.
Traffic countUnits(zrt::ProgramOp program, const Tables &tables);

/// The traffic of unsharding units again in a backward pass. Those that a
/// caller keeps from the forward pass are left out.
Traffic countUnitsAgain(zrt::ProgramOp program, const Tables &tables);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_TRAFFIC_H
