//===- IdleState.h - Memory between steps -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_IDLESTATE_H
#define ZERO_PASSES_PROVE_IDLESTATE_H

#include "passes/prove/Memory.h"

#include "dialect/zrt/MemoryUses.h"

namespace zero::prove {

/// Why a step is not applied. The outcome is a choice of the program in a step
/// that is skipped or refused. A step that is discarded has none.
enum class NotApplied { discarded, refused, skipped };

/// The memory of a program between steps. Parameters, state and their copies
/// have values, and everything else is undefined. A step must leave memory in
/// this form, so that the next step means the same.
class IdleState {
public:
  /// |symbols| are those of |program|.
  IdleState(Proof &proof, zrt::ProgramOp program,
            const mlir::SymbolTable &symbols, const Buckets &buckets,
            const MeshAxes &axes);

  const Memory &getMemory() const { return idle; }

  /// Checks that buffers have their initial roles and memory.
  void checkBuffers(mlir::Operation *transition, const Memory &memory);
  /// Checks that a step that is not applied changes nothing. Exception: the
  /// loss scale and schedules may change in a step that is skipped.
  void checkNotApplied(mlir::Operation *transition, Memory &memory,
                       NotApplied how);
  /// Checks that what the caller reads in |state| is what the step before left.
  /// Where the step |isMeasured| the caller reads parameters alone.
  void checkReadable(mlir::Operation *op, mlir::StringAttr state,
                     Memory &memory, bool isMeasured);
  /// Checks that the unsharded buffer of |part| holds its parameters, whole and
  /// on all ranks, in the type in which |unit| says that they travel.
  void checkUnsharded(zrt::UnitTableOp unit, const zrt::UnitPart &part,
                      Memory &memory);
  /// Checks that only handlers of apply write what the caller reads before it:
  /// parameters and state, and scalars but for those that `measure` computes.
  /// Only these handlers, and those of measure and of units, read parameters
  /// and master weights, which the caller may change until then.
  void checkAccesses();
  /// Makes all of |memory| undefined but |kept| and what lives across steps.
  /// |why| follows its description in messages.
  void forgetOthers(const llvm::DenseSet<mlir::StringAttr> &kept,
                    Memory &memory, llvm::StringRef why);
  /// Checks that a step that is applied changes no frozen parameters.
  void checkFrozen(mlir::Operation *transition, Memory &memory);
  /// Checks that replicas hold one number, and that a copy equals its source.
  void checkReplicas(mlir::Operation *transition, Memory &memory);
  /// Checks the same bit by bit: what holds one number was computed in one way
  /// on all ranks, and on all paths that ranks may take, of which |known| is
  /// the memory behind another one, or the same memory. A parameter is its
  /// master weight, rounded once: so the runtime finds those that the caller
  /// changed.
  void checkWays(mlir::Operation *transition, const Memory &memory,
                 const Memory &known);

private:
  struct Entry {
    std::string role;
    mlir::StringAttr bucket;
  };
  bool hasElements(mlir::StringAttr bucket) {
    return buckets.lookup(bucket).hasElements;
  }
  /// Whether several ranks hold each element of |buffer|.
  bool hasReplicas(zrt::BufferOp buffer);
  bool isParameters(zrt::BucketTableOp op);
  /// Checks that lasting memory holds its old numbers |where| a step is not
  /// applied.
  void checkUnchanged(mlir::Operation *op, const llvm::Twine &where,
                      Memory &memory);
  /// The same of counters and the like.
  void checkScalars(mlir::Operation *op, const llvm::Twine &where,
                    Memory &memory, NotApplied how);
  /// Checks that |contents| are the old numbers of |entry|, rounded to
  /// |traveledAs| if that is narrower than they are. |wrong| describes in a
  /// message that they are not.
  void checkHolds(mlir::Operation *op, const Contents &contents,
                  const Entry &entry, const llvm::Twine &wrong,
                  mlir::Type traveledAs = {});
  void readStates();
  void readCopy(zrt::BucketTableOp op, mlir::FlatSymbolRefAttr copy);
  void fillBuffers();
  void fillSlots();

  Proof &proof;
  Algebra &algebra;
  zrt::ProgramOp program;
  const mlir::SymbolTable &symbols;
  const Buckets &buckets;
  Memory idle;
  const MeshAxes &axes;
  /// Buffers that live across steps.
  llvm::MapVector<mlir::StringAttr, Entry> lasting;
  /// State, and slots that no call writes.
  llvm::DenseSet<std::pair<mlir::StringAttr, int64_t>> lastingSlots;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_IDLESTATE_H
