//===- ChooseStep.cpp - The step of a file that a tool works on -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

StepFlag::StepFlag(cl::OptionCategory &category)
    : cl::opt<std::string>(
          "step", cl::cat(category), cl::value_desc("NAME"),
          cl::desc("Step to choose in a file with several steps "
                   "(default: the only step)")) {}

/// Steps of all phases.
static SmallVector<SymbolOpInterface> getSteps(ModuleOp module) {
  SmallVector<SymbolOpInterface> steps;
  for (Operation &op : *module.getBody())
    if (isa<StepOp, zrt::ProgramOp>(op))
      steps.push_back(cast<SymbolOpInterface>(op));
  return steps;
}

/// "@train, @other".
static std::string listNames(ArrayRef<SymbolOpInterface> steps) {
  return llvm::join(llvm::map_range(steps,
                                    [](SymbolOpInterface step) {
                                      return "@" + step.getName().str();
                                    }),
                    ", ");
}

/// Adds the symbols that |root| and the ops in it name to |names|.
static void collectUses(Operation *root, llvm::StringSet<> &names) {
  root->walk([&](Operation *op) {
    op->getAttrDictionary().walk([&](SymbolRefAttr reference) {
      names.insert(reference.getRootReference().getValue());
    });
  });
}

/// Erases ops of |module| that |names| has and that nothing uses any more. Adds
/// what they used to |names|.
template <typename OpT>
static void eraseUnused(ModuleOp module, llvm::StringSet<> &names) {
  llvm::StringSet<> used;
  collectUses(module, used);
  for (OpT op : llvm::make_early_inc_range(module.getOps<OpT>())) {
    StringRef name = op.getSymName();
    if (!names.contains(name) || used.contains(name))
      continue;
    collectUses(op, names);
    op.erase();
  }
}

LogicalResult zero::chooseStep(ModuleOp module, StringRef name, StringRef verb,
                               StringRef file, std::string &message) {
  SmallVector<SymbolOpInterface> steps = getSteps(module);
  if (steps.empty()) {
    message = (file + " has no zero.step: nothing can be " + verb).str();
    return failure();
  }
  name.consume_front("@");
  if (name.empty() && steps.size() == 1)
    return success();
  if (name.empty()) {
    message = (file + " has " + llvm::Twine(steps.size()) +
               " steps, expected one to be " + verb + ": choose one of " +
               listNames(steps) + " with --step=NAME")
                  .str();
    return failure();
  }
  if (llvm::none_of(steps, [&](SymbolOpInterface step) {
        return step.getName() == name;
      })) {
    message = ("--step must be one of " + listNames(steps) + " of " + file +
               ", got '" + name + "'")
                  .str();
    return failure();
  }
  llvm::StringSet<> names;
  for (SymbolOpInterface step : steps)
    if (step.getName() != name) {
      collectUses(step, names);
      step->erase();
    }
  eraseUnused<BucketOp>(module, names);
  eraseUnused<GroupOp>(module, names);
  eraseUnused<ParameterOp>(module, names);
  return success();
}

StringRef zero::getStepName(ModuleOp module) {
  return getSteps(module).front().getName();
}

bool zero::isLogical(ModuleOp module) {
  return !module.getOps<StepOp>().empty() && module.getOps<BucketOp>().empty();
}

LogicalResult zero::checkLogical(ModuleOp module, StringRef verb,
                                 StringRef file, std::string &message) {
  if (isLogical(module))
    return success();
  message = ("step " + listNames(getSteps(module)) + " of " + file +
             " is lowered: only a logical step can be " + verb)
                .str();
  return failure();
}
