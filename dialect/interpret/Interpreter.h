//===- Interpreter.h - Runs a step, readably --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference: runs a step at any phase on N simulated ranks. At the
// scheduled phase, in typed arithmetic, a compiled step must give the same
// bits.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_INTERPRETER_H
#define ZERO_DIALECT_INTERPRET_INTERPRETER_H

#include "dialect/interpret/Number.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace zero {

/// The inputs of one rank in one step. A gradient has the elements that the
/// rank holds, in row-major order. A gradient that is not in the map never
/// arrives.
struct RankInputs {
  std::vector<llvm::StringMap<std::vector<double>>> backwards;
  std::vector<double> inputs;
  /// Whether a call of accumulate closes the last backward pass. Else the apply
  /// or discard that follows closes it.
  bool closesLast = false;
  /// Whether a call of measure precedes the apply or discard.
  bool measures = false;
  /// Backward passes that the rank begins with the hint that they are the last.
  std::set<int64_t> begunAsLast;
};

/// The report of a step. |bounds| are the bounds of |values|, and empty if
/// compiled code ran the step. |message| is the reason of a refusal.
struct StepResult {
  Outcome outcome = Outcome::applied;
  int64_t backwards = 0;
  std::vector<double> values;
  std::vector<double> bounds;
  std::string message;
};

/// Runs the one zero.step (logical or sharded) or the one zrt.program of a
/// module, which must outlive it.
class Interpreter {
public:
  /// Emits a diagnostic at an op that the interpreter does not support.
  static mlir::FailureOr<std::unique_ptr<Interpreter>>
  create(mlir::ModuleOp module, Arithmetic arithmetic);

  virtual ~Interpreter() = default;

  virtual int64_t getNumRanks() = 0;

  /// Sets a parameter and its master weights on all ranks. Each rank takes its
  /// part of |full|, rounded to the storage type.
  virtual mlir::LogicalResult bindParameter(llvm::StringRef name,
                                            llvm::ArrayRef<double> full) = 0;

  /// Runs one step. Inputs that do not fit are errors, and so are mistakes in a
  /// program, such as ranks that wait for each other. After an error the state
  /// is unspecified.
  virtual mlir::FailureOr<StepResult>
  apply(llvm::ArrayRef<RankInputs> perRank) = 0;

  /// Drops backward passes without a trace. Errors are those of apply.
  virtual mlir::LogicalResult discard(llvm::ArrayRef<RankInputs> perRank) = 0;

  /// The scale by which the caller multiplies the losses of the next step.
  virtual double getLossScale() = 0;

  /// Runs the calls of a scheduled step in the legal order of streams that
  /// |seed| chooses; 0: in program order. Other phases have no streams.
  virtual void setOrder(uint64_t seed) {}

  /// The part of a parameter that |rank| holds; empty if there is no such
  /// parameter.
  virtual std::vector<Number> getParameter(int64_t rank,
                                           llvm::StringRef name) = 0;

  /// Optimizer state of a parameter, joined over its owners. |role| is "master"
  /// or a state of the optimizer. Empty if there is none: a parameter in the
  /// type of the optimizer is its own master weights. With an empty |name| the
  /// role is a counter, e.g. "decay.beta1_t".
  virtual std::vector<Number> getState(llvm::StringRef role,
                                       llvm::StringRef name) = 0;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_INTERPRETER_H
