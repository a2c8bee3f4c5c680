//===- StepTest.h - Steps as text, and the errors on them -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_PROVE_STEPTEST_H
#define ZERO_TEST_UNIT_PROVE_STEPTEST_H

#include "tools/driver/Driver.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

namespace zero::test {

/// A context with the dialects of the tools. Keeps errors.
class StepTest : public testing::Test {
protected:
  StepTest() : context(getDialects()) {
    context.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            errors.push_back(diagnostic.str());
        });
  }

  std::vector<std::string> errors;
  mlir::MLIRContext context;

private:
  static const mlir::DialectRegistry &getDialects() {
    static mlir::DialectRegistry registry = [] {
      mlir::DialectRegistry made;
      registerDriverDialects(made);
      return made;
    }();
    return registry;
  }
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_PROVE_STEPTEST_H
