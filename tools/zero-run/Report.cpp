//===- Report.cpp - What zero-run prints, in words ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Report.h"

#include "dialect/zero/CountOf.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

using namespace zero;

static constexpr size_t kMaxNamed = 4;

/// "missing gradient of @x on rank 1 (backward pass 2 of 4)", and so on.
static std::string describeMissing(const StepReport &step) {
  llvm::SmallVector<std::string> names;
  for (const MissingGradient &gradient :
       llvm::ArrayRef(step.missing).take_front(kMaxNamed)) {
    std::string name =
        llvm::formatv("@{0} on rank {1}", gradient.parameter, gradient.rank);
    if (step.result.backwards > 1)
      name += llvm::formatv(" (backward pass {0} of {1})",
                            gradient.backward + 1, step.result.backwards);
    names.push_back(name);
  }
  std::string text = step.missing.size() == 1 ? "missing gradient of "
                                              : "missing gradients of ";
  text += llvm::join(names, ", ");
  if (step.missing.size() > kMaxNamed)
    text += " and " + std::to_string(step.missing.size() - kMaxNamed) + " more";
  return text;
}

/// Which gradient it was, where compiled code looked.
static std::string describeNonfinite(llvm::StringRef message) {
  message.consume_front("step skipped: ");
  message.consume_front("step refused: ");
  return message.empty() ? "a gradient is not finite" : message.str();
}

std::string StepReport::describe() const {
  switch (result.outcome) {
  case Outcome::applied:
    return "applied";
  case Outcome::skipped_nonfinite:
    return "skipped: " + describeNonfinite(result.message);
  case Outcome::refused_missing_gradient:
    return "refused: " + describeMissing(*this);
  case Outcome::refused_unequal_backwards:
    return "refused: ranks made unequal numbers of backward passes";
  case Outcome::refused_nonfinite:
    return "refused: " + describeNonfinite(result.message);
  case Outcome::refused_no_tokens:
    return "refused: the number of tokens is not positive";
  default:
    return "refused: " + result.message;
  }
}

OutcomeKind StepReport::getOutcomeKind() const {
  switch (result.outcome) {
  case Outcome::applied:
    return OutcomeKind::applied;
  case Outcome::skipped_nonfinite:
    return OutcomeKind::skipped;
  default:
    return OutcomeKind::refused;
  }
}

int64_t Report::count(OutcomeKind outcome) const {
  return llvm::count_if(steps, [&](const StepReport &step) {
    return step.getOutcomeKind() == outcome;
  });
}

void Report::addStep(StepReport step) {
  if (!errors.areForJson()) {
    llvm::outs() << "step " << step.index << ": "
                 << countOf(step.result.backwards, "backward pass", "es")
                 << ", ";
    if (step.lossScale != 1)
      llvm::outs() << "loss scale " << llvm::format("%g, ", step.lossScale);
    llvm::outs() << step.describe();
    // What a refused step computes has no meaning.
    if (step.getOutcomeKind() != OutcomeKind::refused)
      for (auto [name, value] : llvm::zip(valueNames, step.result.values))
        llvm::outs() << ", " << name << llvm::format(" %.9g", value);
    llvm::outs() << "\n";
    llvm::outs().flush(); // a step that follows may be interrupted
  }
  steps.push_back(std::move(step));
}

int Report::finish() {
  if (started && !errors.areForJson())
    printSummary();
  int code = tool.finish(toJson());
  if (code == 0 && !(isEqual() && count(OutcomeKind::refused) == 0))
    return static_cast<int>(ExitCode::failed);
  return code;
}

void Report::printTable() {
  llvm::outs() << "\ncompared with " << referenceName << "\n";
  if (comparedElements < elements)
    llvm::outs() << "a sample, chosen by the seed: " << comparedElements
                 << " of " << countOf(elements, "element")
                 << "; --elements=all compares all\n";
  llvm::outs() << "role          elements    outside  worst error  "
                  "share of bound  bound says nothing\n";
  auto printRow = [](llvm::StringRef role, const Difference &d) {
    llvm::outs() << llvm::format(
        "%-10s %11lld %10lld %12.3g %15.3g %17.2f %%\n", role.str().c_str(),
        (long long)d.elements, (long long)d.outside, d.worstError, d.worstShare,
        100 * d.getUninformativeShare());
  };
  for (auto &[role, difference] : differences)
    printRow(role, difference);
  if (reported.elements > 0)
    printRow("reported", reported);
}

std::string Report::getSummary() const {
  std::string text =
      llvm::formatv("{0}: {1} applied, {2} skipped, {3} refused",
                    countOf(steps.size(), "step"), count(OutcomeKind::applied),
                    count(OutcomeKind::skipped), count(OutcomeKind::refused));
  if (!against.empty())
    text += isEqual()              ? "; equal"
            : firstOutside.empty() ? "; stopped"
                                   : "; not equal";
  if (orders > 0 && isEqual())
    text += "; the same bits in " + countOf(orders, "order") + " of streams";
  return text;
}

void Report::printSummary() {
  if (!against.empty())
    printTable();
  llvm::outs() << "\n" << getSummary() << "\n";
  if (!firstOutside.empty())
    llvm::WithColor::error(llvm::errs(), "zero-run") << firstOutside << "\n";
}
