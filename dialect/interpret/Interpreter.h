//===- Interpreter.h - Runs a step, readably --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The second oracle: what a step at any phase computes on N simulated ranks. At
// the scheduled phase, in typed arithmetic, a compiled step must give the same
// bits.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_INTERPRETER_H
#define ZERO_DIALECT_INTERPRET_INTERPRETER_H

#include "dialect/interpret/Number.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace zero {

/// What one rank delivers in one step. A gradient is what the rank holds of it,
/// in row-major order; one that is not there never arrives.
struct RankInputs {
  std::vector<llvm::StringMap<std::vector<double>>> backwards;
  std::vector<double> inputs;
  /// Whether the last backward pass is closed by an accumulate of its own, and
  /// not by the apply or discard that follows.
  bool closesLast = false;
  /// Backward passes that the rank begins with the hint that they are the last.
  std::set<int64_t> begunAsLast;
};

/// What a step reports. Outcomes are those of zero.outcome; |bounds| are those
/// of the reported |values|, and empty where compiled code ran the step;
/// |message| says why a step was refused.
struct StepResult {
  int outcome = 0;
  int64_t backwards = 0;
  std::vector<double> values;
  std::vector<double> bounds;
  std::string message;
};

/// Runs the one zero.step (logical or sharded) or the one zrt.program of a
/// module, which must outlive it.
class Interpreter {
public:
  /// Emits a diagnostic where something has no meaning here.
  static mlir::FailureOr<std::unique_ptr<Interpreter>>
  create(mlir::ModuleOp module, Arithmetic arithmetic);

  virtual ~Interpreter() = default;

  virtual int64_t getNumRanks() = 0;

  /// Sets a parameter on all ranks, each to what it holds of |full|, rounded to
  /// its storage type, and its master weights to the same.
  virtual mlir::LogicalResult bindParameter(llvm::StringRef name,
                                            llvm::ArrayRef<double> full) = 0;

  /// One step. Inputs that do not fit, and mistakes in a program such as ranks
  /// that wait for each other, are errors; the state is unspecified after one.
  virtual mlir::FailureOr<StepResult>
  apply(llvm::ArrayRef<RankInputs> perRank) = 0;

  /// Backward passes that are given up: nothing is left of them. Errors are
  /// those of apply.
  virtual mlir::LogicalResult discard(llvm::ArrayRef<RankInputs> perRank) = 0;

  /// What the gradients of the next step are to be multiplied by.
  virtual double getLossScale() = 0;

  /// What |rank| holds of a parameter; empty if there is none of this name.
  virtual std::vector<Number> getParameter(int64_t rank,
                                           llvm::StringRef name) = 0;

  /// Optimizer state of a parameter, joined over its owners: "master" or a
  /// state of the optimizer. Empty if there is none; a parameter in the
  /// optimizer's own type has no master weights besides. With an empty |name|
  /// the role is a counter, e.g. "decay.beta1_t".
  virtual std::vector<Number> getState(llvm::StringRef role,
                                       llvm::StringRef name) = 0;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_INTERPRETER_H
