//===- Interpreter.h - The reference interpreter ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a step on N simulated ranks in one process, written to be read. It is
// what compiled code is compared with: in f64 with a rounding bound beside each
// number, or in the declared types and order, bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_REFERENCE_INTERPRETER_H
#define ZERO_DIALECT_REFERENCE_INTERPRETER_H

#include "dialect/reference/Number.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <memory>

namespace zero {

/// What one rank delivers in one step.
struct RankInputs {
  /// For each backward, gradients by parameter, row-major. One that is absent
  /// never arrives.
  std::vector<llvm::StringMap<std::vector<double>>> backwards;
  /// The step's scalar arguments.
  std::vector<double> inputs;
};

/// What a step did, the same on all ranks.
struct StepResult {
  int verdict = 0; // zero_rt_verdict
  int64_t backwards = 0;
  std::vector<double> values; // of zero.return
  std::string message;
};

class Interpreter {
public:
  virtual ~Interpreter() = default;

  /// An interpreter of the one zero.step (logical phase) or zrt.program
  /// (scheduled phase, typed arithmetic only) of |module|, which must live as
  /// long. Emits a diagnostic where it cannot be interpreted.
  static mlir::FailureOr<std::unique_ptr<Interpreter>>
  create(mlir::ModuleOp module, Arithmetic arithmetic);

  virtual int64_t getNumRanks() const = 0;
  /// Sets a parameter on all ranks, rounded to its storage type, and its master
  /// copy. Fails if there is no such parameter or its size differs.
  virtual mlir::LogicalResult bindParameter(llvm::StringRef name,
                                            llvm::ArrayRef<double> values) = 0;
  /// One step. Fails, with a diagnostic, where the protocol does not allow it.
  virtual mlir::FailureOr<StepResult>
  apply(llvm::ArrayRef<RankInputs> ranks) = 0;
  /// The parameter as |rank| holds it.
  virtual std::vector<Number> getParameter(int64_t rank,
                                           llvm::StringRef name) = 0;
  /// State of |role|, joined over its owners; empty if there is none.
  virtual std::vector<Number> getState(llvm::StringRef role,
                                       llvm::StringRef name) = 0;
};

} // namespace zero

#endif // ZERO_DIALECT_REFERENCE_INTERPRETER_H
