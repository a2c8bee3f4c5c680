//===- StepInterpreter.h - Runs a zero.step, op by op -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of the logical and the sharded phase. Every value of the IR
// is one array per rank: a replicated value is the same array D times, a
// partial value is its addends, and a sharded value is the slices of the ranks.
// The phases differ in the place of gradients, parameters and state.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_STEPINTERPRETER_H
#define ZERO_DIALECT_INTERPRET_STEPINTERPRETER_H

#include "dialect/interpret/Array.h"
#include "dialect/interpret/Counters.h"
#include "dialect/interpret/Optimizer.h"
#include "dialect/interpret/Ranks.h"
#include "dialect/interpret/Window.h"

#include "llvm/ADT/MapVector.h"

namespace zero {

class StepInterpreter : public Interpreter {
public:
  StepInterpreter(StepOp step, Arithmetic arithmetic)
      : step(step), calculator(arithmetic) {}

  int64_t getNumRanks() override { return ranks.size(); }
  mlir::FailureOr<StepResult>
  apply(llvm::ArrayRef<RankInputs> perRank) override;
  mlir::LogicalResult discard(llvm::ArrayRef<RankInputs> perRank) override;
  double getLossScale() override {
    mlir::FlatSymbolRefAttr scale = step.getLossScaleAttr();
    return scale ? getRule(scale).read(calculator, /*rank=*/0).value : 1;
  }

  /// Reads the tables of the module and allocates state. Emits a diagnostic at
  /// an op that is not supported.
  mlir::LogicalResult initialize();

protected:
  // Functions that a phase defines.

  virtual mlir::LogicalResult initializeState() = 0;
  /// The gradients of |source| in the current backward pass. Ranks that do not
  /// make this backward pass have empty arrays.
  virtual PerRank deliver(mlir::FlatSymbolRefAttr source,
                          const Format &format) = 0;
  /// Evaluates an op that only this phase has.
  virtual mlir::LogicalResult evaluateOwn(mlir::Operation &op) = 0;
  /// Ends the step after all ops and returns the outcome.
  virtual mlir::FailureOr<Outcome> finish() = 0;

  // Functions that both phases share.

  mlir::LogicalResult evaluate(mlir::Operation &op);
  void evaluateMicroBatches(MicroBatchesOp op);
  void evaluateReduce(ReduceOp op);

  /// A gradient as it arrives on |rank| in the current backward pass; zeros if
  /// it does not arrive.
  Array readGradient(int64_t rank, llvm::StringRef name, int64_t elements,
                     const Format &arrival);
  bool makesBackward(int64_t rank) const {
    return backward < window->getBackwards(rank);
  }

  /// The process groups over |axes|.
  std::vector<std::vector<int64_t>>
  getGroups(llvm::ArrayRef<mlir::StringAttr> axes) {
    return ranks.getGroups(axes);
  }
  /// The values of the symbols that are not axes.
  struct Symbols {
    Number accumulation, tokens, lossScale;
  };
  /// The value of |monomial| to the power of |sign|.
  Number evaluateMonomial(llvm::ArrayRef<ScaleFactor> monomial, int sign,
                          const Symbols &symbols);
  /// The sum of the token counts over the process group of |rank|; 0 if the
  /// step has no tokens.
  Number sumTokens(int64_t rank);
  /// Whether gradients can be divided by |tokens|.
  static bool isCount(Number tokens);
  Number getClipCoefficient(mlir::Value norm, mlir::Value max,
                            std::optional<llvm::APFloat> constantMax,
                            const llvm::APFloat &epsilon, int64_t rank);
  /// The norm of |values|, which counts each element once.
  Number getNorm(mlir::ValueRange values);
  /// |value| joined to one array. Of replicas it takes the first.
  Array join(mlir::Value value);
  /// The sum of the squares of all elements of |arrays|.
  Number getSumSquares(llvm::ArrayRef<const Array *> arrays);

  /// The scalar |value| on |rank|.
  Number getScalar(mlir::Value value, int64_t rank) {
    return values[value][rank][0];
  }
  /// The arrays of |operands| on |rank|.
  llvm::SmallVector<const Array *> getArrays(mlir::ValueRange operands,
                                             int64_t rank);
  /// Sets |result| to |function|(rank) on each rank.
  void define(mlir::Value result, llvm::function_ref<Array(int64_t)> function);
  /// The counter |role| of a loss scale or schedule; empty if there is none.
  std::vector<Number> getRuleState(llvm::StringRef role);
  /// The loss scale or schedule of this name, which the step uses.
  Counters &getRule(mlir::FlatSymbolRefAttr name) {
    return rules.find(name.getAttr())->second;
  }
  void defineScalar(mlir::Value result,
                    llvm::function_ref<Number(int64_t)> function);

  /// The reduce dtype of |op|; null if it has none.
  template <typename OpT> static const Format *getReduceDtype(OpT op) {
    return op.getReduceDtype() ? getFormat(*op.getReduceDtype()) : nullptr;
  }

  ParameterOp findParameter(llvm::StringRef name) {
    return parameters.lookup(name);
  }

  StepOp step;
  Calculator calculator;
  Ranks ranks;
  llvm::StringMap<ParameterOp> parameters;
  llvm::StringMap<std::unique_ptr<Optimizer>> optimizers;
  /// Counters of optimizers by parameter group, then by rank.
  llvm::StringMap<std::vector<std::vector<Number>>> counters;
  /// Loss scales and schedules that the step uses, by name.
  llvm::MapVector<mlir::StringAttr, Counters> rules;

  // The step that is running.
  std::optional<Window> window;
  int64_t backward = 0;
  llvm::DenseMap<mlir::Value, PerRank> values;

private:
  std::string describe(Outcome outcome) {
    mlir::BlockArgument tokens = step.getTokens();
    return window->describe(outcome, tokens ? tokens.getArgNumber() : -1);
  }
  mlir::LogicalResult checkSupported();
  mlir::LogicalResult readRules();
  mlir::LogicalResult readExpected();

  std::vector<ExpectedGradient> expected;
  bool communicatesInLoop = false;
};

std::unique_ptr<StepInterpreter> createLogicalStep(StepOp step,
                                                   Arithmetic arithmetic);
std::unique_ptr<StepInterpreter> createShardedStep(StepOp step,
                                                   Arithmetic arithmetic);

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_STEPINTERPRETER_H
