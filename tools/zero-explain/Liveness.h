//===- Liveness.h - When buffers hold what is still read --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_EXPLAIN_LIVENESS_H
#define ZERO_TOOLS_ZERO_EXPLAIN_LIVENESS_H

#include "dialect/zrt/MemoryUses.h"
#include "tools/zero-explain/Timeline.h"

#include "llvm/ADT/MapVector.h"

namespace zero {

/// Follows the memory of a program, call by call.
class Liveness {
public:
  Liveness(const StageProgram &stage, const zrt::ProgramSymbols &symbols);

  /// |call| runs during |span|, for a gradient of |arriving| or for none.
  void add(zrt::RuntimeCall call, mlir::FlatSymbolRefAttr arriving, Span span);
  /// The buffers with what is alive of them in a step that ends at |finish|.
  std::vector<TimedBuffer> finish(double finish);

private:
  struct Memory {
    TimedBuffer buffer;
    bool isAlways = false;   // alive
    bool isOnDemand = false; // alive from `allocate` to `release`
    bool wasRead = true;     // since the last write
  };

  void order(mlir::FlatSymbolRefAttr buffer, Span span);

  const zrt::ProgramSymbols &symbols;
  llvm::MapVector<mlir::StringAttr, Memory> memories;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_EXPLAIN_LIVENESS_H
