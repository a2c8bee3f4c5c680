//===- LogicalStep.cpp - The logical phase --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No owners: a parameter and its state exist once.
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/StepInterpreter.h"
#include "dialect/zero/CountOf.h"
#include "dialect/zero/Outcome.h"

#include <cmath>

using namespace mlir;
using namespace zero;

namespace {

struct Parameter {
  Array value;
  Array master; // empty where the parameter is its own master weights
  std::vector<Array> states;
  Optimizer *optimizer = nullptr;
};

class LogicalStep : public StepInterpreter {
public:
  using StepInterpreter::StepInterpreter;

  LogicalResult bindParameter(StringRef name, ArrayRef<double> full) override;
  std::vector<Number> getParameter(int64_t rank, StringRef name) override;
  std::vector<Number> getState(StringRef role, StringRef name) override;

private:
  LogicalResult initializeState() override;
  PerRank deliver(FlatSymbolRefAttr source, const Format &format) override;
  LogicalResult evaluateOwn(Operation &op) override;
  FailureOr<Outcome> finish() override;
  Outcome decide();
  bool isAbsent(UpdateOp op);
  void update(UpdateOp op);
  std::vector<Number> getHyper(UpdateOp op, OptimizerOp optimizer);
  bool isFinite();

  llvm::StringMap<Parameter> cells;
};

} // namespace

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

LogicalResult LogicalStep::initializeState() {
  for (auto &[name, op] : parameters)
    cells[name].value = Array(*getFormat(op.getDtype()), op.getNumElements());
  auto module = step->getParentOfType<ModuleOp>();
  for (auto op : step.getBody().getOps<UpdateOp>()) {
    Optimizer &optimizer = *optimizers[op.getOptimizer()];
    counters[op.getGroup()] = {optimizer.getInitialCounters()};
    auto group = module.lookupSymbol<GroupOp>(op.getGroupAttr());
    for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>()) {
      Parameter &cell = cells[member.getValue()];
      cell.optimizer = &optimizer;
      if (&optimizer.getMasterFormat() != cell.value.format)
        cell.master = Array(optimizer.getMasterFormat(), cell.value.size());
      for (const Format *format : optimizer.getStateFormats())
        cell.states.emplace_back(*format, cell.value.size());
    }
  }
  return success();
}

LogicalResult LogicalStep::bindParameter(StringRef name,
                                         ArrayRef<double> full) {
  auto it = cells.find(name);
  if (it == cells.end())
    return step.emitError() << "has no parameter '" << name << "'";
  Parameter &cell = it->second;
  if (cell.value.size() != static_cast<int64_t>(full.size()))
    return step.emitError()
           << "parameter '" << name << "' has "
           << countOf(cell.value.size(), "element") << ", got " << full.size();
  for (auto [i, value] : llvm::enumerate(full))
    cell.value[i] = calculator.read(*cell.value.format, value);
  if (cell.master.format)
    cell.master = convert(calculator, *cell.master.format, cell.value);
  return success();
}

std::vector<Number> LogicalStep::getParameter(int64_t rank, StringRef name) {
  auto it = cells.find(name);
  if (it == cells.end())
    return {};
  std::vector<Number> held;
  for (int64_t position :
       ranks.getHeld(findParameter(name).getValueType(), rank))
    held.push_back(it->second.value[position]);
  return held;
}

std::vector<Number> LogicalStep::getState(StringRef role, StringRef name) {
  if (name.empty()) {
    if (std::vector<Number> state = getRuleState(role); !state.empty())
      return state;
    auto [group, counter] = role.rsplit('.');
    for (auto op : step.getBody().getOps<UpdateOp>())
      if (op.getGroup() == group)
        if (auto i = optimizers[op.getOptimizer()]->findCounter(counter))
          return {counters[group][0][*i]};
    return {};
  }
  auto it = cells.find(name);
  if (it == cells.end() || !it->second.optimizer)
    return {};
  if (role == "master")
    return it->second.master.elements;
  if (auto i = it->second.optimizer->findState(role))
    return it->second.states[*i].elements;
  return {};
}

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

PerRank LogicalStep::deliver(FlatSymbolRefAttr source, const Format &format) {
  ValueType type = findParameter(source.getValue()).getValueType();
  PerRank gradients;
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    gradients.push_back(makesBackward(rank)
                            ? readGradient(rank, source.getValue(),
                                           ranks.getHeld(type, rank).size(),
                                           format)
                            : Array(format, 0));
  return gradients;
}

LogicalResult LogicalStep::evaluateOwn(Operation &op) {
  // Updates come last, when it is known whether there are any.
  if (isa<UpdateOp>(op))
    return success();
  return op.emitOpError()
         << "is not supported by the interpreter in the logical phase";
}

/// Whether all reduced gradients are finite, also those outside the norm.
bool LogicalStep::isFinite() {
  for (auto reduce : step.getBody().getOps<ReduceOp>())
    if (!std::isfinite(getNorm(reduce.getOutputs()).value))
      return false;
  return true;
}

Outcome LogicalStep::decide() {
  if (!window->isEqual() && !step.takesUnequalBackwards())
    return Outcome::refused_unequal_backwards;
  if (window->isAnyMissing())
    return Outcome::refused_missing_gradient;
  if (step.dividesByTokens() && !isCount(sumTokens(0)))
    return Outcome::refused_no_tokens;
  if (!isFinite())
    return getNonfiniteOutcome(step.getNonfinite());
  return Outcome::applied;
}

FailureOr<Outcome> LogicalStep::finish() {
  Outcome outcome = decide();
  if (outcome == Outcome::applied)
    for (auto op : step.getBody().getOps<UpdateOp>())
      if (!isAbsent(op))
        update(op);
  for (auto &[name, rule] : rules)
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      rule.advance(calculator, rank, outcome);
  return outcome;
}

std::vector<Number> LogicalStep::getHyper(UpdateOp op, OptimizerOp optimizer) {
  std::vector<Number> numbers;
  for (auto name : optimizer.getHyperNames().getAsRange<StringAttr>()) {
    auto given = llvm::find(op.getHyperNames().getAsRange<StringAttr>(), name);
    auto names = op.getHyperNames().getAsRange<StringAttr>();
    if (given != names.end()) {
      size_t i = std::distance(names.begin(), given);
      numbers.push_back(getScalar(op.getHyper()[i], 0));
      continue;
    }
    Attribute constant = op.getHyperConstants().get(name);
    if (!constant)
      constant = optimizer.getHyperDefaults().get(name);
    numbers.push_back({cast<FloatAttr>(constant).getValueAsDouble(), 0});
  }
  return numbers;
}

/// Whether the group of |op| is skipped because no gradient of it arrived.
bool LogicalStep::isAbsent(UpdateOp op) {
  auto module = step->getParentOfType<ModuleOp>();
  auto group = module.lookupSymbol<GroupOp>(op.getGroupAttr());
  if (!group.getSkipsAbsent())
    return false;
  for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>())
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      if (window->getDelivered(rank, member.getValue()) > 0)
        return false;
  return true;
}

void LogicalStep::update(UpdateOp op) {
  Optimizer &optimizer = *optimizers[op.getOptimizer()];
  std::vector<Number> scalars =
      optimizer.prepare(calculator, getHyper(op, optimizer.getOp()),
                        counters[op.getGroup()][0], /*applied=*/true);
  auto module = step->getParentOfType<ModuleOp>();
  auto group = module.lookupSymbol<GroupOp>(op.getGroupAttr());
  for (auto [member, gradient] :
       llvm::zip_equal(group.getMembers().getAsRange<FlatSymbolRefAttr>(),
                       op.getGradients())) {
    Parameter &cell = cells[member.getValue()];
    Array &master = cell.master.format ? cell.master : cell.value;
    llvm::SmallVector<Array *> states;
    for (Array &state : cell.states)
      states.push_back(&state);
    optimizer.update(calculator, {0, master.size()},
                     {join(gradient), master, states}, scalars);
    if (cell.master.format)
      cell.value = convert(calculator, *cell.value.format, master);
  }
}

std::unique_ptr<StepInterpreter>
zero::createLogicalStep(StepOp step, Arithmetic arithmetic) {
  return std::make_unique<LogicalStep>(step, arithmetic);
}
