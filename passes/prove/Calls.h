//===- Calls.h - What the calls of a program do to its memory ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_CALLS_H
#define ZERO_PASSES_PROVE_CALLS_H

#include "passes/prove/Memory.h"
#include "passes/prove/Slots.h"

#include <map>

namespace zero::prove {

/// Runs calls over symbols. Each function says what zero_rt/calls.def says of
/// the call of that name. What cannot be right on any rank is reported at the
/// call.
class Calls {
public:
  /// |symbols| are those of |program|.
  Calls(Proof &proof, zrt::ProgramOp program, const mlir::SymbolTable &symbols,
        const Buckets &buckets, StepSemantics &semantics);

  void run(mlir::Operation *call, Memory &memory);
  /// No further call can make up for a gradient that did not arrive.
  void settleAbsent(mlir::Operation *op, Memory &memory);

  /// The bucket whose gradients arrive, for zrt.pack; null: none do.
  zrt::BucketTableOp arriving = nullptr;
  /// Whether a backward pass is open or being closed.
  bool inBackward = false;
  /// Whether apply runs: all that arrives is known.
  bool inApply = false;
  /// Buffers with memory that arrivals may write into meanwhile.
  llvm::SmallDenseSet<mlir::StringAttr> filling;
  /// What this rank gave to collectives with ranks that may have made another
  /// number of backward passes.
  std::vector<Expr> sent;
  /// What was committed, and where; null if nothing was.
  Expr outcome = nullptr;
  mlir::Operation *committed = nullptr;

  zrt::BucketTableOp getArrivals(mlir::FlatSymbolRefAttr bucket) {
    return arrivals.lookup(bucket.getAttr());
  }

private:
  void launch(zrt::LaunchOp op);
  void runScalars(zrt::RunScalarsOp op);
  void send(const Contents &contents, AxisSet set);
  /// What a buffer of |sumType| gets of the sums of |contents| over |set|.
  Pieces sumOverOwners(const Contents &contents, Precision sumType,
                       AxisSet set);
  /// What elements of |buffer| can hold.
  Precision getPrecision(mlir::FlatSymbolRefAttr buffer);
  void allReduce(zrt::AllReduceOp op);
  void allGather(zrt::AllGatherOp op);
  void reduceScatter(mlir::Operation *op, mlir::FlatSymbolRefAttr source,
                     mlir::FlatSymbolRefAttr target, AxisSet set,
                     bool accumulate);
  void copy(zrt::CopyOp op);
  void keepOnRoot(zrt::KeepOnRootOp op);

  // Accesses, which every call makes through these.

  /// What |call| reads; reports what it must not read.
  Contents &read(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol);
  /// What |call| writes; others that share its memory hold nothing from now on.
  Contents &write(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol,
                  mlir::StringAttr bucket);
  /// The same where only owners over |owners| write: the others keep what they
  /// have.
  Contents &writeOwned(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol,
                       mlir::StringAttr bucket, AxisSet owners);
  /// Reports that |contents| are not told apart by owners over |owners|.
  bool requireOwners(mlir::Operation *call, const Contents &contents,
                     AxisSet owners);
  /// Whatever shares the memory of |contents| holds nothing from now on.
  void overwrite(Contents &contents);
  Contents &require(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol);
  Number &getSlot(mlir::FlatSymbolRefAttr slots, int64_t index) {
    return memory->slots[{slots.getAttr(), index}];
  }

  Number &writeSlot(mlir::Operation *call, mlir::FlatSymbolRefAttr slots,
                    int64_t index);

  // Arrivals (ArrivalCalls.cpp).

  void pack(zrt::PackOp op);
  void reportRole(zrt::PackOp op, const Contents &contents);
  void fillMissing(zrt::FillMissingOp op);
  void settleAbsent(mlir::Operation *call, Contents &contents);

  // Launches (Launch.cpp).

  struct LaunchedKernel;
  mlir::FailureOr<llvm::SmallVector<Number>>
  evaluateKernel(LaunchedKernel &kernel, llvm::ArrayRef<Number> arrays,
                 llvm::ArrayRef<Number> scalars);
  bool launchOver(LaunchedKernel &kernel, bool onOwner,
                  std::vector<Pieces> &written, Pieces &addends);
  /// Whose slices a launch works on: the owners that its operands are told
  /// apart by.
  bool findOwners(zrt::LaunchOp op, llvm::ArrayRef<Contents *> operands,
                  AxisSet &owners);
  Number sumOverBucket(mlir::StringAttr bucket, const Pieces &addends,
                       AxisSet owners);
  /// Whether the slot that |op| sums into is 0 on the pipeline stages that it
  /// does not run on.
  bool isZeroElsewhere(zrt::LaunchOp op);

  Proof &proof;
  Algebra &algebra;
  zrt::ProgramOp program;
  const Buckets &buckets;
  StepSemantics &semantics;
  Memory *memory = nullptr;
  const mlir::SymbolTable &symbols;
  llvm::DenseMap<mlir::StringAttr, zrt::BucketTableOp> arrivals; // by bucket
  /// Buffers, by the one whose memory they share; that one is among them.
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::StringAttr, 1>>
      sharers;
  mlir::SymbolTableCollection places;
  /// What writes each slot.
  SlotWriters writers;
  /// What kernels made of which arguments.
  using KernelKey = std::pair<mlir::Operation *, std::vector<Number::Key>>;
  std::map<KernelKey, llvm::SmallVector<Number>> evaluated;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_CALLS_H
