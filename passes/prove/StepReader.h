//===- StepReader.h - Reads a step in the zero dialect ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_STEPREADER_H
#define ZERO_PASSES_PROVE_STEPREADER_H

#include "passes/prove/StepSemantics.h"

#include "mlir/IR/SymbolTable.h"

#include <map>

namespace zero::prove {

/// An array value. One number describes all elements of a parameter. A value of
/// a bucket has one number per member.
struct Array {
  mlir::StringAttr source; // a parameter or a bucket
  llvm::SmallVector<Number, 1> members;
};

/// A loss scale or schedule, and its counters in this step.
struct Rule {
  CounterRule op;
  llvm::SmallVector<std::string> roles;
  llvm::SmallVector<Number> counters;
};

/// Reads the ops of a step one by one, and computes a number for each result.
class StepReader {
public:
  StepReader(Proof &proof, StepOp step)
      : proof(proof), algebra(proof.algebra), step(step),
        symbols(step->getParentOfType<mlir::ModuleOp>()),
        mesh(symbols.lookup<MeshOp>(step.getMeshAttr().getAttr())) {}

  std::optional<StepSemantics> run();

private:
  bool read(mlir::Operation &op);
  bool readMicroBatches(MicroBatchesOp op);
  void readBackward(BackwardOp op);
  bool readScalar(mlir::Operation &op);
  /// |a| with tokens and the loss scale set to 1.
  Expr withoutScales(Expr a);
  /// Replaces |number|, the number of |input|, by its sum over the ranks of
  /// |op|. Addends travel as the reduce dtype of |op|.
  template <typename OpT>
  void sumAsSent(OpT op, mlir::Value input, Number &number);
  void readReduce(ReduceOp op);
  void multiply(Number &number, const Number &factor);
  void readScale(mlir::Value output, mlir::Value input, const Number &factor);
  /// The sum over the elements of all ranks if |isWhole|, else over those of
  /// one.
  Number getSumSquares(mlir::ValueRange inputs, bool isWhole);
  /// Checks that |group| is updated when |own| says so.
  void checkOwnOutcome(mlir::Operation *op, GroupOp group, mlir::Value own);
  bool readPrepare(PrepareOp op);
  bool readUpdate(UpdateOp op);
  bool readUpdateBucket(UpdateBucketOp op);
  void readAssign(AssignOp op);
  Rule getRule(mlir::FlatSymbolRefAttr symbol);
  bool readSchedule(ReadScheduleOp op);
  /// Computes the new counters of a loss scale or schedule.
  bool advance(mlir::FlatSymbolRefAttr symbol);
  bool update(mlir::Operation *op, OptimizerOp optimizer,
              mlir::StringAttr parameter, Number gradient,
              llvm::ArrayRef<Number> scalars);
  mlir::FailureOr<llvm::SmallVector<Number>>
  prepare(OptimizerOp optimizer, GroupOp op, llvm::ArrayRef<Number> hyper);
  void finish(ReturnOp op);

  Array &copy(mlir::Value from, mlir::Value to) {
    return arrays[to] = arrays.lookup(from);
  }
  llvm::SmallVector<mlir::StringAttr> getMembers(mlir::StringAttr source);
  /// The max of a clip, an argument or a constant.
  Number readMax(mlir::Value max, std::optional<llvm::APFloat> constant) {
    return max ? scalar(max)
               : makeSource(algebra,
                            algebra.constant(constant->convertToDouble()));
  }
  Number scalar(mlir::Value value) {
    Number number = scalars.lookup(value);
    return number.expr ? number : Number{algebra.undefined("no scalar")};
  }
  /// The axes over which |value| has this kind of placement.
  AxisSet getAxes(mlir::Value value, PlacementKind kind) {
    return semantics.axes.getSet(
        llvm::cast<ValueType>(value.getType()).getAxes(kind));
  }

  /// The axes of the pipeline stages of |value|.
  AxisSet getStages(mlir::Value value) {
    return semantics.axes.getSet(
        llvm::cast<ValueType>(value.getType()).getStageAxes());
  }

  Proof &proof;
  Algebra &algebra;
  StepOp step;
  mlir::SymbolTable symbols;
  MeshOp mesh;
  StepSemantics semantics;
  llvm::DenseMap<mlir::Value, Array> arrays;
  llvm::DenseMap<mlir::Value, Number> scalars;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Number>> vectors;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::StringAttr>>
      membersOf;
  /// Results of updates by update, whether there are master weights, and
  /// operands.
  using UpdateKey =
      std::tuple<mlir::Operation *, bool, std::vector<Number::Key>>;
  std::map<UpdateKey, llvm::SmallVector<Number>> updates;
  /// The parameter group of each parameter.
  llvm::DenseMap<mlir::StringAttr, GroupOp> groupOf;
  llvm::DenseMap<mlir::Operation *, Expr> deliveredTotals;
  mlir::Value outcome;
  bool isLogical = false;
  /// The schedules that the step reads.
  llvm::SmallVector<mlir::FlatSymbolRefAttr> schedules;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_STEPREADER_H
