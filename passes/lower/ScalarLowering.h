//===- ScalarLowering.h - Lowers scalars to slots and programs --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_SCALARLOWERING_H
#define ZERO_PASSES_LOWER_SCALARLOWERING_H

#include "passes/lower/ProgramBuilder.h"

namespace zero {

/// The scalar slot of a scalar.
struct Slot {
  mlir::FlatSymbolRefAttr slots;
  int64_t index = 0;
};

/// Collects scalar math in a zrt.scalars until a call reads its results. Every
/// scalar value of the step gets a scalar slot.
class ScalarLowering {
public:
  ScalarLowering(ProgramBuilder &program, HandlerBuilder &handler, MeshOp mesh,
                 Slot backwards)
      : program(program), handler(handler), mesh(mesh), backwards(backwards) {}

  /// Lowers |op| if it is scalar math.
  bool lower(mlir::Operation *op);
  void lowerPrepare(PrepareOp op, OptimizerOp optimizer, Slot counters);
  /// |result| is the value of a schedule.
  void lowerReadSchedule(mlir::Value result, ScheduleOp schedule,
                         Slot counters);
  /// Replaces |counters| by the counters of the next step if |outcome| is 0 or
  /// 1.
  void lowerAdvance(mlir::Value outcome, CounterRule rule, Slot counters);

  /// Records that |scalar| is already in |slot|.
  void place(mlir::Value scalar, Slot slot) { slotOf[scalar] = slot; }
  /// Records that |scalar| is in the slot of |other|.
  void placeLike(mlir::Value scalar, mlir::Value other) {
    place(scalar, slotOf.lookup(other));
  }
  /// Copies |scalar| to |slot|.
  void store(mlir::Value scalar, Slot slot);
  void storeConstant(double value, Slot slot);
  /// Copies |slot| to |result|. Later writes of |slot| do not change |result|.
  void defineCopy(mlir::Value result, Slot slot);
  /// |result| is the sum of |partials|: of the sums of their halves, and so on.
  /// Its error grows with the logarithm of their number, and few addends are
  /// in many sums, which the proof all reads.
  void defineSum(mlir::Value result, llvm::ArrayRef<Slot> partials);
  /// |result| is the square of the number in |slot|.
  void defineSquare(mlir::Value result, Slot slot);
  /// Runs the collected math. Slots are valid from here on.
  void flush();

  /// Whether the math changes counters, which live across steps.
  bool changesCounters() const { return !kept.empty(); }
  /// Appends a call to |calls| that gives all counters their old values.
  void restoreCounters(HandlerBuilder &calls);

private:
  mlir::OpBuilder &body();
  mlir::Value get(mlir::Value scalar);
  mlir::Value load(Slot slot);
  mlir::Value addAll(llvm::ArrayRef<Slot> partials, mlir::Location loc);
  void storeNumber(mlir::Value number, Slot slot);
  /// Keeps |old|, the values of |counters| before they change.
  void keepCounters(llvm::ArrayRef<mlir::Value> old, Slot counters);
  void define(mlir::Value scalar, mlir::Value number);
  mlir::Value constant(double value);
  llvm::SmallVector<mlir::Value> loadAll(Slot first, size_t count);
  /// Inlines |block| with |arguments|, and returns the yielded values.
  llvm::SmallVector<mlir::Value> inlineBody(mlir::Block &block,
                                            mlir::ValueRange arguments);
  /// Returns |result| if gradients can be divided by |number|: |number| is
  /// positive and has an inverse. Else returns |instead|.
  mlir::Value replaceUnlessDivisor(mlir::Value number, mlir::Value instead,
                                   mlir::Value result);
  mlir::Value evaluate(FactorOp op);
  mlir::Value evaluate(OutcomeOp op);
  mlir::Value evaluate(GroupOutcomeOp op);

  ProgramBuilder &program;
  HandlerBuilder &handler;
  MeshOp mesh;
  Slot backwards;
  llvm::DenseMap<mlir::Value, Slot> slotOf;
  /// Counters, slots that keep their old values, and how many there are.
  struct Kept {
    Slot counters;
    Slot old;
    size_t count;
  };
  llvm::SmallVector<Kept> kept;
  /// The open scalar program, and the scalars that it has loaded or computed.
  std::optional<mlir::OpBuilder> open;
  zrt::ScalarsOp openProgram;
  llvm::DenseMap<mlir::Value, mlir::Value> registers;
};

} // namespace zero

#endif // ZERO_PASSES_LOWER_SCALARLOWERING_H
