//===- Optimizers.cpp - The optimizers that the tools contain -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

#include "dialect/zero/ZeroDialect.h"
#include "tools/driver/Driver.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace zero;

/// The files of examples/optimizers, by name.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
    kOptimizers[] = {
#include "Optimizers.inc"
};

StringRef zero::getOptimizerText(StringRef name) {
  auto *found = llvm::find_if(
      kOptimizers, [&](const auto &entry) { return entry.first == name; });
  return found == std::end(kOptimizers) ? StringRef()
                                        : StringRef(found->second);
}

std::string zero::listOptimizers() {
  std::string names;
  for (auto [i, entry] : llvm::enumerate(kOptimizers)) {
    bool isLast = i + 1 == std::size(kOptimizers);
    names += (i == 0 ? "" : isLast ? " or " : ", ") + entry.first.str();
  }
  return names;
}

std::vector<OptimizerHyper> zero::getOptimizerHyper(StringRef name) {
  DialectRegistry registry;
  registerDriverDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(getOptimizerText(name), &context);
  std::vector<OptimizerHyper> all;
  for (auto op : module->getOps<OptimizerOp>())
    for (auto hyper : op.getHyperNames().getAsRange<StringAttr>()) {
      all.push_back({hyper.str(), {}});
      if (auto number = op.getHyperDefaults().getAs<FloatAttr>(hyper))
        all.back().number = number.getValueAsDouble();
    }
  return all;
}
