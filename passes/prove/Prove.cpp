//===- Prove.cpp - Is this step what it declares, and the same? -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Prove.h"

#include "dialect/zero/Views.h"

#include "passes/prove/Meaning.h"
#include "passes/prove/Passes.h"

namespace zero {
#define GEN_PASS_DEF_PROVEPASS
#include "passes/prove/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

struct ProvedStep::Impl {
  OwningOpRef<ModuleOp> module;
  prove::Proof proof;
  std::optional<prove::Meaning> meaning;

  /// The meaning of |of|, if it breaks no obligation.
  std::optional<prove::Meaning> read(ModuleOp of) {
    proof.report.reset();
    std::optional<prove::Meaning> found = prove::readMeaning(proof, of);
    if (found)
      prove::checkMeaning(proof, *found);
    if (proof.report.hasErrors())
      return std::nullopt;
    return found;
  }
};

ProvedStep::ProvedStep(ModuleOp module) : impl(std::make_unique<Impl>()) {
  impl->module = module.clone();
  if (failed(expandViews(*impl->module)))
    return;
  impl->meaning = impl->read(*impl->module);
  impl->proof.hasReference = true;
}

ProvedStep::~ProvedStep() = default;

bool ProvedStep::isProved() const { return impl->meaning.has_value(); }

Shown ProvedStep::getShown() const {
  Shown shown;
  const prove::Meaning &meaning = *impl->meaning;
  shown.step = SymbolTable::getSymbolName(meaning.step).str();
  shown.ranks = meaning.getNumRanks();
  shown.parameters = meaning.parameters.size();
  for (auto &[name, parameter] : meaning.parameters) {
    ParameterOp op = parameter.op;
    shown.elements += op.getNumElements();
    const prove::MeshAxes &axes = meaning.axes;
    prove::AxisSet alike =
        axes.getAll() & ~parameter.arrivesOver &
        ~axes.getSet(op.getValueType().getAxes(PlacementKind::Sharded)) &
        ~axes.getSet(op.getValueType().getStageAxes());
    if (alike)
      shown.replicated.push_back({name.str(), axes.describe(alike)});
  }
  shown.lossScale = meaning.lossScale;
  for (auto [i, input] : llvm::enumerate(meaning.inputs))
    if (input.over)
      shown.addends.push_back({int64_t(i), meaning.axes.describe(input.over)});
  shown.allWait = meaning.allMeet();
  shown.takesUnequal = meaning.takesUnequal;
  prove::AxisSet waitsOver = meaning.meetsOver;
  for (auto &[stages, set] : meaning.meetsOnStages)
    waitsOver |= set;
  shown.waitsOver = meaning.axes.describe(waitsOver);
  shown.takesHints = meaning.takesHints;
  return shown;
}

/// Makes |module| a |copy| without views where it has any: a view has no
/// meaning but that of its axes.
static LogicalResult removeViews(ModuleOp &module,
                                 OwningOpRef<ModuleOp> &copy) {
  if (!findViews(module))
    return success();
  copy = module.clone();
  module = *copy;
  return expandViews(module);
}

bool ProvedStep::isSameAs(ModuleOp module) {
  OwningOpRef<ModuleOp> copy;
  if (failed(removeViews(module, copy)))
    return false;
  std::optional<prove::Meaning> other = impl->read(module);
  if (!other)
    return false;
  prove::compareMeanings(impl->proof, *impl->meaning, *other);
  impl->meaning->meetsOver |= other->meetsOver;
  impl->meaning->takesHints |= other->takesHints;
  llvm::append_range(impl->meaning->meetsOnStages, other->meetsOnStages);
  return !impl->proof.report.hasErrors();
}

std::vector<std::string> zero::getPromises(const Shown &shown) {
  constexpr size_t kInputs = 2;
  std::vector<std::string> promises = {
      "a gradient that arrives is that of this rank's own micro-batch, and "
      "nobody writes it before it was taken",
      shown.takesUnequal && !shown.allWait
          ? "all ranks run this step, and call apply and discard in one order"
          : "all ranks run this step, and call begin, accumulate, apply and "
            "discard in one order",
      "all ranks pass the same inputs to apply",
      "all ranks bind the same initial values; who writes parameters or state "
      "between steps writes the same on all ranks"};
  for (auto &[input, axes] : shown.addends)
    promises[kInputs] += ", but for input " + std::to_string(input) +
                         ": of that ranks that differ over " + axes +
                         " pass their own share";
  if (!shown.lossScale.empty())
    promises.push_back("gradients are multiplied by what loss_scale says when "
                       "their backward begins");
  if (!shown.waitsOver.empty())
    promises.push_back((shown.allWait ? "all ranks"
                                      : "ranks that differ over " +
                                            shown.waitsOver + " only") +
                       " make the same number of backwards: they wait for each "
                       "other in each one");
  if (shown.takesHints)
    promises.push_back("where another backward, or discard, follows one that "
                       "was begun as the last, it does so on all ranks");
  // One line for all parameters that are alike over the same axes.
  llvm::MapVector<StringRef, SmallVector<StringRef>> byAxes;
  for (auto &[name, axes] : shown.replicated)
    byAxes[axes].push_back(name);
  constexpr size_t kMost = 3;
  for (auto &[axes, names] : byAxes) {
    std::string text = "ranks that differ over " + axes.str() +
                       " only deliver the same gradient of ";
    for (auto [i, name] : llvm::enumerate(ArrayRef(names).take_front(kMost)))
      text += (i ? ", '" : "'") + name.str() + "'";
    if (names.size() > kMost)
      text += " and " + std::to_string(names.size() - kMost) + " more";
    promises.push_back(std::move(text));
  }
  return promises;
}

namespace {
struct ProvePass : zero::impl::ProvePassBase<ProvePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OwningOpRef<ModuleOp> copy;
    if (failed(removeViews(module, copy)))
      return signalPassFailure();
    prove::Proof proof;
    std::optional<prove::Meaning> meaning = prove::readMeaning(proof, module);
    if (meaning)
      prove::checkMeaning(proof, *meaning);
    if (proof.report.hasErrors())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
