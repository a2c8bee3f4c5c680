//===- Driver.cpp - What the tools share ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"
#include "tools/driver/Nesting.h"
#include "tools/driver/ParserErrors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"

#include <unistd.h>

using namespace mlir;
using namespace zero;

void zero::registerDriverDialects(DialectRegistry &registry) {
  registry.insert<ZeroDialect, zrt::ZrtDialect, arith::ArithDialect,
                  math::MathDialect>();
}

void zero::registerDiagnostics(DialectRegistry &registry,
                               std::shared_ptr<llvm::SourceMgr> sources) {
  // MLIR's extensions carry no data.
  static std::shared_ptr<llvm::SourceMgr> known;
  known = std::move(sources);
  registry.addExtension(+[](MLIRContext *context, ZeroDialect *) {
    context->printOpOnDiagnostic(false);
    context->getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
      Place place(diagnostic.getLocation());
      StringRef file = known->getMemoryBuffer(1)->getBufferIdentifier();
      if (place.line > 0 && place.file != file)
        return failure();
      explainParserError(diagnostic, *known);
      printDiagnostic(diagnostic, *known);
      return success();
    });
  });
}

StringRef zero::describeInput(StringRef path) {
  return path == "-" ? "<stdin>" : path;
}

std::unique_ptr<llvm::MemoryBuffer>
zero::openInput(StringRef tool, StringRef path, std::string &message) {
  if (path == "-" && isatty(STDIN_FILENO))
    llvm::errs() << tool
                 << ": reading from the terminal; end the text with Ctrl-D, or "
                    "name a file\n";
  return openInputFile(path, &message);
}

LoadedStep::LoadedStep(MLIRContext &context, Errors &errors)
    : sources(std::make_shared<llvm::SourceMgr>()),
      handler(&context, [this, &errors](Diagnostic &diagnostic) {
        explainParserError(diagnostic, *sources);
        errors.add(diagnostic, *sources);
        return success();
      }) {
  // Two lines of error message, not seven thousand of IR.
  context.printOpOnDiagnostic(false);
}

LoadedStep::LoadedStep(MLIRContext &context, StringRef path, StringRef name,
                       StringRef verb, Errors &errors)
    : LoadedStep(context, errors) {
  std::string message;
  if (auto file = openInput(errors.getTool(), path, message))
    load(context, std::move(file), describeInput(path), name, verb, errors);
  else
    errors.add(ExitCode::environment, message);
}

LoadedStep::LoadedStep(MLIRContext &context,
                       std::unique_ptr<llvm::MemoryBuffer> text, StringRef name,
                       StringRef verb, Errors &errors)
    : LoadedStep(context, errors) {
  std::string file = text->getBufferIdentifier().str();
  load(context, std::move(text), file, name, verb, errors);
}

void LoadedStep::load(MLIRContext &context,
                      std::unique_ptr<llvm::MemoryBuffer> text, StringRef file,
                      StringRef name, StringRef verb, Errors &errors) {
  if (isNestedDeeply(text->getBuffer())) {
    errors.add(ExitCode::failed, file + " is nested more than " +
                                     llvm::Twine(kDeepestText) +
                                     " levels deep, expected a step");
    return;
  }
  sources->AddNewSourceBuffer(std::move(text), llvm::SMLoc());
  module = parseSourceFile<ModuleOp>(sources, &context);
  std::string message;
  if (module && failed(chooseStep(*module, name, verb, file, message))) {
    errors.add(name.empty() ? ExitCode::failed : ExitCode::usage, message);
    module = nullptr;
  }
}
