//===- IdleState.h - What a program must hold between steps -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_IDLESTATE_H
#define ZERO_PASSES_PROVE_IDLESTATE_H

#include "passes/prove/Memory.h"

namespace zero::prove {

/// Parameters, state and copies of them have their old values when a step
/// begins; everything else is what nobody wrote. So it must be when a step is
/// over, which is what makes the next one mean the same.
class IdleState {
public:
  /// |symbols| are those of |program|.
  IdleState(Proof &proof, zrt::ProgramOp program,
            const mlir::SymbolTable &symbols, const Buckets &buckets,
            const MeshAxes &axes);

  const Memory &getMemory() const { return idle; }

  /// That buffers have the role and the memory they began with.
  void checkBuffers(mlir::Operation *transition, const Memory &memory);
  /// That nothing has changed where a step was not applied; but the loss scale,
  /// where |isSkipped|.
  void checkSkipped(mlir::Operation *transition, Memory &memory,
                    bool isSkipped);
  /// That replicas hold one number, and copies what they are copies of.
  void checkReplicas(mlir::Operation *transition, Memory &memory);

private:
  bool hasElements(mlir::StringAttr bucket) {
    return buckets.lookup(bucket).hasElements;
  }
  bool isParameters(zrt::BucketTableOp op);
  void readStates();
  void readCopy(zrt::BucketTableOp op, mlir::FlatSymbolRefAttr copy);
  void fillBuffers(const MeshAxes &axes);
  void fillSlots();

  Proof &proof;
  Algebra &algebra;
  zrt::ProgramOp program;
  const mlir::SymbolTable &symbols;
  const Buckets &buckets;
  Memory idle;
  struct Entry {
    std::string role;
    mlir::StringAttr bucket;
  };
  /// Buffers that live across steps.
  llvm::MapVector<mlir::StringAttr, Entry> lasting;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_IDLESTATE_H
