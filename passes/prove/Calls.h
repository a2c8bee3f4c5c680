//===- Calls.h - The effects of calls on memory -----------------*- C++ -*-===//
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

/// Runs calls over symbols. zero_rt/calls.def describes the call of each name.
/// An effect that cannot be right on any rank is reported at the call.
class Calls {
public:
  /// |symbols| are those of |program|.
  Calls(Proof &proof, zrt::ProgramOp program, const mlir::SymbolTable &symbols,
        const Buckets &buckets, StepSemantics &semantics);

  void run(mlir::Operation *call, Memory &memory);
  /// Comes before the calls of a transition.
  void begin() { hostSlots.clear(); }
  /// Reports elements and pads that are wrong if a gradient did not arrive. No
  /// later call can correct them.
  void settleAbsent(mlir::Operation *op, Memory &memory);

  /// The bucket whose gradients arrive, for zrt.pack; null if there is none.
  zrt::BucketTableOp arriving = nullptr;
  /// Whether a backward pass is open or being closed.
  bool inBackward = false;
  bool looksAtOpen = false; // some call has looked at inBackward
  /// Whether apply runs. No further gradient arrives then.
  bool inApply = false;
  /// Buffers whose memory arriving gradients may write at the same time.
  llvm::SmallDenseSet<mlir::StringAttr> filling;
  /// The numbers that this rank sent to ranks that may have made another number
  /// of backward passes.
  std::vector<Expr> sent;
  /// All numbers that this rank sent in apply.
  std::vector<Expr> sentInApply;
  /// The committed outcome and its call, which is null if there is none.
  Number outcome;
  mlir::Operation *committed = nullptr;
  /// The conditions in apply.
  Conditions conditions;
  /// The scalar slots as this transition copied them to the host.
  llvm::DenseMap<std::pair<mlir::StringAttr, int64_t>, Number> hostSlots;

  zrt::BucketTableOp getArrivals(mlir::FlatSymbolRefAttr bucket) {
    return arrivals.lookup(bucket.getAttr());
  }

private:
  /// Runs |op|. There is one function for each call.
  template <typename OpT> void runOp(OpT op) = delete;
  void send(Expr number, AxisSet set, AxisSet meets);
  void send(const Contents &contents, AxisSet set);
  /// A parameter of |bucket|; null of a frozen one. All members arrive alike,
  /// and are summed alike.
  const ParameterSemantics *findMember(mlir::StringAttr bucket);
  /// The sums of |contents| over |set|, in a buffer of |sumType|.
  Pieces sumOverOwners(const Contents &contents, Precision sumType,
                       AxisSet set);
  /// The precision of elements of |buffer|.
  Precision getPrecision(mlir::FlatSymbolRefAttr buffer);
  void reduceScatter(mlir::Operation *op, const zrt::Exchange &exchange,
                     AxisSet set);

  // Every call accesses memory by these functions.

  /// The contents that |call| reads. Reports a read that is not allowed.
  Contents &read(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol);
  /// The contents that |call| writes. Buffers that share the memory lose their
  /// contents.
  Contents &write(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol,
                  mlir::StringAttr bucket);
  /// The same if only owners over |owners| write. Other ranks keep their
  /// contents.
  Contents &writeOwned(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol,
                       mlir::StringAttr bucket, AxisSet owners);
  /// Reports |contents| that do not distinguish owners over |owners|.
  bool requireOwners(mlir::Operation *call, const Contents &contents,
                     AxisSet owners);
  /// Buffers that share the memory of |contents| lose their contents.
  void overwrite(Contents &contents);
  /// The contents of a buffer that a call may change.
  Contents &get(mlir::FlatSymbolRefAttr symbol);
  Contents &require(mlir::Operation *call, mlir::FlatSymbolRefAttr symbol);
  Number &getSlot(mlir::FlatSymbolRefAttr slots, int64_t index) {
    return memory->slots[{slots.getAttr(), index}];
  }

  /// A scalar of a kernel on the host or elsewhere: on the host it is what
  /// `copy_scalars` left there.
  Number getScalar(bool isOnHost, mlir::FlatSymbolRefAttr slots, int64_t index);
  Number &writeSlot(mlir::Operation *call, mlir::FlatSymbolRefAttr slots,
                    int64_t index);
  Number makeCount(Expr count);

  // Arrivals (ArrivalCalls.cpp).

  void reportRole(zrt::PackOp op, const Contents &contents);
  void settleAbsent(mlir::Operation *call, Contents &contents);

  // Launches (Launch.cpp).

  struct LaunchedKernel;
  mlir::FailureOr<llvm::SmallVector<Number>>
  evaluateKernel(LaunchedKernel &kernel, llvm::ArrayRef<Number> arrays,
                 llvm::ArrayRef<Number> scalars);
  struct LaunchedElements;
  mlir::FailureOr<LaunchedElements>
  launchOn(LaunchedKernel &kernel, llvm::ArrayRef<const Piece *> operands,
           size_t row);
  bool launchOver(LaunchedKernel &kernel, bool onOwner,
                  std::vector<Pieces> &written, Pieces &addends);
  /// Finds the axes whose owners the operands of a launch distinguish.
  bool findOwners(zrt::LaunchOp op, llvm::ArrayRef<Contents *> operands,
                  AxisSet &owners);
  Number sumOverBucket(mlir::StringAttr bucket, const Pieces &addends,
                       AxisSet owners);
  /// Whether the scalar slot of the sum of |op| is 0 on pipeline stages that do
  /// not run |op|.
  bool isZeroElsewhere(zrt::LaunchOp op);

  Proof &proof;
  Algebra &algebra;
  zrt::ProgramOp program;
  const Buckets &buckets;
  StepSemantics &semantics;
  Memory *memory = nullptr;
  const mlir::SymbolTable &symbols;
  llvm::DenseMap<mlir::StringAttr, zrt::BucketTableOp> arrivals; // by bucket
  /// The buffers whose memory others share.
  llvm::DenseSet<mlir::StringAttr> shared;
  mlir::SymbolTableCollection places;
  /// The ops that write each scalar slot.
  SlotWriters writers;
  /// Results of kernels by kernel and arguments; failure: the body is not
  /// known.
  /// What it is launched on, with how that was computed.
  using KernelKey =
      std::pair<mlir::Operation *,
                std::vector<std::tuple<Number::Key, uint64_t,
                                       std::optional<double>, double>>>;
  std::map<KernelKey, mlir::FailureOr<llvm::SmallVector<Number>>> evaluated;
};

/// The number of additions of |kernel| if it adds and converts numbers, and
/// does nothing else.
std::optional<unsigned> countAdditions(zrt::KernelOp kernel);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_CALLS_H
