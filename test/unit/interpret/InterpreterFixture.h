//===- InterpreterFixture.h - Text, run by the interpreter ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_INTERPRET_INTERPRETERFIXTURE_H
#define ZERO_TEST_UNIT_INTERPRET_INTERPRETERFIXTURE_H

#include "dialect/interpret/Interpreter.h"
#include "test/unit/common/StepText.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

namespace zero::test {

using Gradient = std::vector<double>;

/// Parses |text| and interprets it; fails the test where that is an error.
class Runner {
public:
  Runner(const std::string &text, Arithmetic arithmetic = Arithmetic::Typed);
  Interpreter *operator->() { return interpreter.get(); }

  /// One step with gradients of @w by [backward pass][rank].
  StepResult apply(const std::vector<std::vector<Gradient>> &gradients,
                   std::vector<double> inputs);
  /// The same by parameter name, [rank][backward pass].
  StepResult applyInputs(std::vector<RankInputs> inputs);

  std::vector<double> parameter(llvm::StringRef name = "w", int64_t rank = 0);
  std::vector<double> state(llvm::StringRef role, llvm::StringRef name = "w");

private:
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Interpreter> interpreter;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_INTERPRET_INTERPRETERFIXTURE_H
