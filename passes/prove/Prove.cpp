//===- Prove.cpp - Is this step what it declares, and the same? -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Prove.h"

#include "dialect/zero/Flattened.h"

#include "passes/prove/Order.h"
#include "passes/prove/Passes.h"
#include "passes/prove/StepSemantics.h"

#include "llvm/ADT/StringExtras.h"

namespace zero {
#define GEN_PASS_DEF_PROVEPASS
#include "passes/prove/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

/// Whether calls of |module| wait for each other.
static bool checkOrder(prove::Proof &proof, ModuleOp module) {
  for (auto program : module.getOps<zrt::ProgramOp>())
    prove::checkOrder(proof, program);
  return !proof.report.hasErrors();
}

/// The meaning of |module|, of which every violation is reported. |reference|
/// is the step that it is compared with, or null.
static std::optional<prove::StepSemantics>
readAndCheck(prove::Proof &proof, ModuleOp module,
             const prove::StepSemantics *reference) {
  std::optional<prove::StepSemantics> found =
      prove::readSemantics(proof, module);
  if (found && !proof.report.hasErrors())
    prove::checkSemantics(proof, *found);
  else if (found && reference)
    prove::compareNorms(proof, *reference, *found);
  else if (found)
    prove::checkResults(proof, *found);
  proof.report.emitConsequences();
  return found;
}

struct ProvedStep::Impl {
  OwningOpRef<ModuleOp> module;
  prove::Proof proof;
  std::optional<prove::StepSemantics> semantics;

  /// The meaning of |of|, if it breaks no obligation.
  std::optional<prove::StepSemantics> read(ModuleOp of) {
    proof.report.reset();
    std::optional<prove::StepSemantics> found =
        readAndCheck(proof, of, semantics ? &*semantics : nullptr);
    if (proof.report.hasErrors())
      return std::nullopt;
    return found;
  }
};

ProvedStep::ProvedStep(ModuleOp module) : impl(std::make_unique<Impl>()) {
  impl->module = module.clone();
  if (failed(expandFlattened(*impl->module)))
    return;
  if (!hasOrder(*impl->module))
    return;
  impl->semantics = impl->read(*impl->module);
  impl->proof.report.emitLast();
  if (impl->proof.report.hasErrors())
    impl->semantics.reset();
  impl->proof.hasReference = true;
}

ProvedStep::~ProvedStep() = default;

bool ProvedStep::isProved() const { return impl->semantics.has_value(); }

ProofSummary ProvedStep::getSummary() const {
  ProofSummary summary;
  const prove::StepSemantics &semantics = *impl->semantics;
  summary.step = SymbolTable::getSymbolName(semantics.step).str();
  summary.ranks = semantics.getNumRanks();
  summary.parameters = semantics.parameters.size();
  for (auto &[name, parameter] : semantics.parameters) {
    ParameterOp op = parameter.op;
    summary.elements += op.getNumElements();
    const prove::MeshAxes &axes = semantics.axes;
    prove::AxisSet alike =
        axes.getAll() & ~parameter.arrivesOver &
        ~axes.getSet(op.getValueType().getAxes(PlacementKind::Sharded)) &
        ~axes.getSet(op.getValueType().getStageAxes());
    summary.hasStages |= !op.getValueType().getPresent().empty();
    if (alike)
      summary.replicated.push_back({name.str(), axes.describe(alike)});
    if (parameter.reducedOver)
      summary.reduced.push_back(
          {name.str(), axes.describe(parameter.reducedOver)});
  }
  summary.lossScale = semantics.lossScale;
  for (auto [i, input] : llvm::enumerate(semantics.inputs))
    if (input.over)
      summary.addends.push_back(
          {int64_t(i), semantics.axes.describe(input.over)});
  summary.allWait = semantics.allMeet();
  summary.oneBackward = semantics.oneBackward;
  summary.takesUnequal = semantics.takesUnequal;
  prove::AxisSet waitsOver = semantics.meetsOver;
  for (auto &[stages, set] : semantics.meetsOnStages)
    waitsOver |= set;
  summary.waitsOver = semantics.axes.describe(waitsOver);
  summary.takesHints = semantics.takesHints;
  summary.hasUnits = semantics.hasUnits;
  llvm::append_range(summary.assumed, impl->proof.assumed);
  return summary;
}

/// Makes |module| a |copy| without views where it has any: a view has no
/// meaning but that of its axes.
static LogicalResult removeFlattened(ModuleOp &module,
                                     OwningOpRef<ModuleOp> &copy) {
  if (!findFlattened(module))
    return success();
  copy = module.clone();
  module = *copy;
  return expandFlattened(module);
}

bool ProvedStep::isSameAs(ModuleOp module) {
  return hasOrder(module) && isSameButForOrder(module);
}

bool ProvedStep::isSameButForOrder(ModuleOp module) {
  OwningOpRef<ModuleOp> copy;
  if (failed(removeFlattened(module, copy)))
    return false;
  std::optional<prove::StepSemantics> other = impl->read(module);
  if (!other)
    return false;
  prove::compareSemantics(impl->proof, *impl->semantics, *other);
  impl->proof.report.emitLast();
  impl->semantics->meetsOver |= other->meetsOver;
  impl->semantics->takesHints |= other->takesHints;
  impl->semantics->hasUnits |= other->hasUnits;
  llvm::append_range(impl->semantics->meetsOnStages, other->meetsOnStages);
  return !impl->proof.report.hasErrors();
}

bool ProvedStep::hasOrder(ModuleOp module) {
  OwningOpRef<ModuleOp> copy;
  if (failed(removeFlattened(module, copy)))
    return false;
  impl->proof.report.reset();
  return checkOrder(impl->proof, module);
}

/// Joins the names of parameters that have the same axes: {"'a', 'b'", "ep"}.
static std::vector<std::pair<std::string, std::string>>
joinNames(ArrayRef<std::pair<std::string, std::string>> parameters) {
  llvm::MapVector<StringRef, SmallVector<StringRef>> byAxes;
  for (auto &[name, axes] : parameters)
    byAxes[axes].push_back(name);
  constexpr size_t kMost = 3;
  std::vector<std::pair<std::string, std::string>> joined;
  for (auto &[axes, names] : byAxes) {
    std::string text;
    for (auto [i, name] : llvm::enumerate(ArrayRef(names).take_front(kMost)))
      text += (i ? ", '" : "'") + name.str() + "'";
    if (names.size() > kMost)
      text += " and " + std::to_string(names.size() - kMost) + " more";
    joined.push_back({text, axes.str()});
  }
  return joined;
}

std::vector<std::string> zero::getPreconditions(const ProofSummary &summary) {
  constexpr size_t kInputs = 2;
  std::vector<std::string> preconditions = {
      "a gradient that arrives is that of this rank's own micro-batch" +
          std::string(summary.reduced.empty() ? "" : ", except as below") +
          ", and does not change until it is taken",
      summary.takesUnequal && !summary.allWait
          ? "all ranks run this step, and call measure, apply and discard in "
            "one order"
          : "all ranks run this step, and call begin, accumulate, measure, "
            "apply and discard in one order",
      "all ranks pass the same inputs to apply",
      "ranks that hold the same values bind the same initial ones; a caller "
      "that writes parameters or state between steps writes the same on all of "
      "them"};
  for (auto &[input, axes] : summary.addends)
    preconditions[kInputs] += ", except input " + std::to_string(input) +
                              ": ranks that differ over " + axes +
                              " pass addends of their own";
  if (!summary.lossScale.empty())
    preconditions.push_back("gradients are multiplied by the loss scale of the "
                            "time at which their backward pass begins");
  if (!summary.waitsOver.empty())
    preconditions.push_back(
        (summary.allWait
             ? "all ranks"
             : "ranks that differ over " + summary.waitsOver + " only") +
        " make the same number of backward passes: they wait for each "
        "other in each one");
  if (summary.takesHints)
    preconditions.push_back(
        "if another backward pass, or discard, follows one that "
        "was begun as the last, it does so on all ranks");
  if (summary.hasUnits)
    preconditions.push_back(
        std::string(summary.hasStages ? "all ranks of a pipeline stage"
                                      : "all ranks") +
        " prefetch, unshard and reshard the same units in one order, among all "
        "other calls of the step");
  if (!summary.assumed.empty())
    preconditions.push_back("where a caller writes state, " +
                            llvm::join(summary.assumed, ", "));
  for (auto &[names, axes] : joinNames(summary.replicated))
    preconditions.push_back("ranks that differ over " + axes +
                            " only deliver the same gradient of " + names);
  for (auto &[names, axes] : joinNames(summary.reduced))
    preconditions.push_back("a gradient of " + names +
                            " is the sum of those of all micro-batches of "
                            "ranks that differ over " +
                            axes + " only, when it arrives");
  return preconditions;
}

namespace {
struct ProvePass : zero::impl::ProvePassBase<ProvePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OwningOpRef<ModuleOp> copy;
    if (failed(removeFlattened(module, copy)))
      return signalPassFailure();
    prove::Proof proof;
    if (checkOrder(proof, module))
      readAndCheck(proof, module, /*reference=*/nullptr);
    proof.report.emitLast();
    if (proof.report.hasErrors())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
