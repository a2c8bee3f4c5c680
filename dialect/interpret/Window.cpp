//===- Window.cpp - The backward passes since the last apply --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Window.h"
#include "dialect/zero/CountOf.h"
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/Support/Format.h"

using namespace mlir;
using namespace zero;

/// Checks that each gradient has a name and a size that are expected.
static LogicalResult
checkBackward(Operation *op, ArrayRef<ExpectedGradient> expected, int64_t rank,
              const llvm::StringMap<std::vector<double>> &backward) {
  llvm::StringMap<int64_t> sizes;
  for (const ExpectedGradient &gradient : expected)
    if (gradient.arrivesOn[rank])
      sizes[gradient.name] = gradient.elements;
  for (const auto &arrived : backward) {
    auto it = sizes.find(arrived.getKey());
    if (it == sizes.end())
      return op->emitError() << "takes no gradient of '" << arrived.getKey()
                             << "' on rank " << rank;
    if (it->second != static_cast<int64_t>(arrived.getValue().size()))
      return op->emitError() << "gradient of '" << arrived.getKey()
                             << "' must have " << countOf(it->second, "element")
                             << ", got " << arrived.getValue().size();
  }
  return success();
}

/// Whether a step of |op| has one backward pass.
static bool takesOneBackward(Operation *op) {
  if (auto step = dyn_cast<StepOp>(op))
    return step.getOneBackward();
  return cast<zrt::ProgramOp>(op).getOneBackward();
}

/// The inputs that all ranks must pass alike: those of which a rank does not
/// pass an addend of its own.
static SmallVector<int64_t> findCommonInputs(Operation *op) {
  SmallVector<int64_t> common;
  if (auto step = dyn_cast<StepOp>(op)) {
    for (BlockArgument input : step.getBody().getArguments())
      if (cast<ValueType>(input.getType())
              .getAxes(PlacementKind::Partial)
              .empty())
        common.push_back(input.getArgNumber());
    return common;
  }
  for (auto [i, input] :
       llvm::enumerate(cast<zrt::ProgramOp>(op).getInputSlots()))
    if (!input.getOver())
      common.push_back(i);
  return common;
}

FailureOr<Window> Window::create(Operation *op, int64_t numRanks,
                                 int64_t numInputs,
                                 ArrayRef<ExpectedGradient> expected,
                                 ArrayRef<RankInputs> inputs) {
  if (static_cast<int64_t>(inputs.size()) != numRanks)
    return op->emitError() << "runs on " << countOf(numRanks, "rank")
                           << ", got inputs of " << inputs.size();
  Window window;
  window.expected = expected;
  window.inputs = inputs;
  for (auto [r, rank] : llvm::enumerate(inputs)) {
    if (static_cast<int64_t>(rank.inputs.size()) != numInputs)
      return op->emitError() << "takes " << countOf(numInputs, "scalar input")
                             << ", got " << rank.inputs.size();
    if (rank.backwards.size() > 1 && takesOneBackward(op))
      return op->emitError()
             << "is one_backward, and rank " << r << " makes "
             << countOf(rank.backwards.size(), "backward pass", "es")
             << " in a step; make one, or leave 'one_backward' out";
    int64_t &missing = window.missing.emplace_back(0);
    for (const auto &backward : rank.backwards) {
      if (failed(checkBackward(op, expected, r, backward)))
        return failure();
      for (const ExpectedGradient &gradient : expected)
        missing += gradient.arrivesOn[r] && !gradient.optional &&
                   !backward.contains(gradient.name);
    }
  }
  SmallVector<int64_t> common = findCommonInputs(op);
  for (const RankInputs &rank : inputs)
    window.differs.push_back(llvm::any_of(common, [&](int64_t i) {
      return rank.inputs[i] != inputs.front().inputs[i];
    }));
  if (window.getLargestBackwards() == 0)
    return op->emitError() << "no backward pass since the last apply";
  return window;
}

int64_t Window::getLargestBackwards() const {
  int64_t largest = 0;
  for (const RankInputs &rank : inputs)
    largest = std::max<int64_t>(largest, rank.backwards.size());
  return largest;
}

int64_t Window::getTotalBackwards() const {
  int64_t total = 0;
  for (const RankInputs &rank : inputs)
    total += rank.backwards.size();
  return total;
}

bool Window::isEqual() const {
  return llvm::all_of(inputs, [&](const RankInputs &rank) {
    return rank.backwards.size() == inputs.front().backwards.size();
  });
}

bool Window::isAnyMissing() const {
  return llvm::any_of(missing, [](int64_t count) { return count > 0; }) ||
         llvm::is_contained(differs, true);
}

const std::vector<double> *Window::find(int64_t rank, int64_t backward,
                                        StringRef name) const {
  const auto &arrived = inputs[rank].backwards[backward];
  auto it = arrived.find(name);
  return it == arrived.end() ? nullptr : &it->second;
}

int64_t Window::getDelivered(int64_t rank, StringRef name) const {
  int64_t delivered = 0;
  for (int64_t backward = 0; backward < getBackwards(rank); ++backward)
    delivered += find(rank, backward, name) != nullptr;
  return delivered;
}

std::string Window::describe(Outcome outcome, int64_t tokens) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  StringRef separator = " ";
  if (outcome == Outcome::refused_nonfinite)
    os << "step refused: a gradient is not finite";
  if (outcome == Outcome::refused_no_tokens) {
    os << "step refused: the number of tokens must be positive"
       << (tokens < 0 ? "" : ":");
    for (size_t r = 0; tokens >= 0 && r < inputs.size(); ++r, separator = ", ")
      os << separator << "rank " << r << " counted "
         << llvm::format("%g", inputs[r].inputs[tokens]);
  }
  if (outcome == Outcome::refused_unequal_backwards) {
    os << "step refused: ranks made unequal numbers of backward passes:";
    for (size_t r = 0; r < inputs.size(); ++r, separator = ", ")
      os << separator << "rank " << r << " made " << getBackwards(r);
  }
  if (outcome == Outcome::refused_missing_gradient) {
    os << "step refused:";
    for (size_t r = 0; r < inputs.size(); ++r)
      for (int64_t b = 0; b < getBackwards(r); ++b)
        for (const ExpectedGradient &gradient : expected) {
          if (!gradient.arrivesOn[r] || gradient.optional ||
              find(r, b, gradient.name))
            continue;
          os << separator << "gradient of '" << gradient.name
             << "' never arrived on rank " << r << " (backward pass " << b + 1
             << " of " << getBackwards(r) << ")";
          separator = ", ";
        }
    for (size_t r = 0; r < inputs.size(); ++r, separator = ", ")
      if (differs[r])
        os << separator << "inputs differ between rank 0 and rank " << r;
  }
  return text;
}
