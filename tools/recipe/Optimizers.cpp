//===- Optimizers.cpp - The optimizers that the tools contain -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

#include "dialect/zero/ZeroDialect.h"
#include "tools/driver/Driver.h"
#include "tools/driver/Nesting.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace zero;

/// The files of examples/optimizers, by name.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
    kOptimizers[] = {
#include "Optimizers.inc"
};

std::string zero::listOptimizers() {
  std::string names;
  for (auto [i, entry] : llvm::enumerate(kOptimizers)) {
    bool isLast = i + 1 == std::size(kOptimizers);
    names += (i == 0 ? "" : isLast ? " or " : ", ") + entry.first.str();
  }
  return names;
}

static std::vector<OptimizerHyper> listHyper(OptimizerOp op) {
  std::vector<OptimizerHyper> all;
  for (auto hyper : op.getHyperNames().getAsRange<StringAttr>()) {
    all.push_back({hyper.str(), {}});
    if (auto number = op.getHyperDefaults().getAs<FloatAttr>(hyper))
      all.back().number = number.getValueAsDouble();
  }
  return all;
}

/// "FILE:LINE:COLUMN: MESSAGE".
static std::string describe(Diagnostic &diagnostic) {
  Place place(diagnostic.getLocation());
  std::string text = place.file;
  if (place.line)
    text +=
        ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  return (text.empty() ? "" : text + ": ") + diagnostic.str();
}

std::optional<RecipeOptimizer> zero::findOptimizer(StringRef name) {
  auto *found = llvm::find_if(
      kOptimizers, [&](const auto &entry) { return entry.first == name; });
  if (found == std::end(kOptimizers))
    return std::nullopt;
  RecipeOptimizer optimizer;
  std::string message;
  // It is right: it is one of ours. The text as written has comments.
  (void)readOptimizer(found->second, found->first, optimizer, message);
  optimizer.symbol = name.str();
  optimizer.text = found->second.str();
  return optimizer;
}

LogicalResult zero::readOptimizer(StringRef text, StringRef file,
                                  RecipeOptimizer &optimizer,
                                  std::string &message) {
  if (isNestedDeeply(text)) {
    message = (file + " is nested more than " + Twine(kDeepestText) +
               " levels deep; give a zero.optimizer")
                  .str();
    return failure();
  }
  DialectRegistry registry;
  registerDriverDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string first;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (first.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      first = describe(diagnostic);
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, &context, file);
  if (!module) {
    message = first;
    return failure();
  }
  auto optimizers = llvm::to_vector(module->getOps<OptimizerOp>());
  if (optimizers.size() != 1 ||
      !llvm::hasSingleElement(module->getBody()->getOperations())) {
    message =
        (file + " has " + Twine(optimizers.size()) + " optimizers and " +
         Twine(module->getBody()->getOperations().size() - optimizers.size()) +
         " other ops, expected one zero.optimizer alone; leave out the "
         "others")
            .str();
    return failure();
  }
  OptimizerOp op = optimizers.front();
  optimizer.name = op.getSymName().str();
  optimizer.hyper = listHyper(op);
  // A name that needs no quotes, and that stands in the text before all else.
  optimizer.symbol = "optimizer";
  op.setSymName(optimizer.symbol);
  llvm::raw_string_ostream os(optimizer.text);
  op->print(os, OpPrintingFlags().useLocalScope());
  return success();
}
