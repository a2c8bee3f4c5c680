//===- Steps.h - Steps that are written from what was read ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FUZZ_TOOLS_STEPS_H
#define ZERO_TEST_FUZZ_TOOLS_STEPS_H

#include "test/fuzz/Input.h"
#include "tools/driver/Driver.h"
#include "tools/recipe/Recipe.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

namespace zero_fuzz {

/// Requires that |failed| came with a message, and a success without.
inline void requireMessage(bool failed, const std::string &message) {
  require(failed == !message.empty(), "a message exactly where it failed",
          message.c_str());
}

/// Requires that a tool accepts what a tool has written: MLIR reads |text|,
/// and the verifiers have at most something against the values in it.
inline void requireStep(llvm::StringRef text) {
  mlir::DialectRegistry registry;
  zero::registerDriverDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string message;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        llvm::raw_string_ostream(message) << diagnostic << "; ";
      });
  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
  require(bool(module), "a step that MLIR reads",
          (message + text.str()).c_str());
}

/// A step of many parameters takes long to read.
inline constexpr size_t kMostParameters = 40;

} // namespace zero_fuzz

#endif // ZERO_TEST_FUZZ_TOOLS_STEPS_H
