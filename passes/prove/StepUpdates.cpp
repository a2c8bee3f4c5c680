//===- StepUpdates.cpp - What updates of a step make ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/AbsentGroups.h"
#include "passes/prove/Gradient.h"
#include "passes/prove/RelativeError.h"
#include "passes/prove/StepReader.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

FailureOr<SmallVector<Number>>
StepReader::prepare(OptimizerOp optimizer, GroupOp op, ArrayRef<Number> hyper) {
  StringRef group = op.getSymName();
  SkippedWith skippedWith = getSkippedWith(op);
  SmallVector<Number> arguments(hyper);
  auto names = optimizer.getCounterNames().getAsRange<StringAttr>();
  for (StringAttr name : names)
    arguments.push_back(makeSource(
        algebra,
        algebra.base({BaseKind::old, (group + "." + name.getValue()).str()})));
  auto values =
      evaluateBody(algebra, optimizer.getPrepare().front(), arguments);
  if (failed(values))
    return failure();
  for (auto [name, initial, value] :
       llvm::zip(names, optimizer.getCounterInitial(), *values)) {
    std::string role = (group + "." + name.getValue()).str();
    semantics.initials.push_back({role, {algebra.constant(initial)}});
    value.narrow(Precision::f64()); // also one that stays as it is
    semantics.counters.push_back({role, value});
    if (skippedWith)
      semantics.countersSkippedWith[role] = skippedWith;
  }
  values->erase(values->begin(),
                values->begin() + optimizer.getCounterNames().size());
  return values;
}

void StepReader::checkOwnOutcome(Operation *op, GroupOp group, Value own) {
  if (!group || !group.getSkipsAbsent()) {
    if (own != outcome)
      proof.report.opError(op) << "runs under another outcome than the step's";
    return;
  }
  Expr &total = deliveredTotals[group];
  if (!total)
    total = getDeliveredTotal(algebra, group, semantics.axes);
  auto decided = own.getDefiningOp<GroupOutcomeOp>();
  if (!decided || scalar(decided.getDelivered()).expr != total)
    proof.report.opError(op)
        << "updates group @" << group.getSymName()
        << ", which is skipped if its gradients are absent, under another "
           "outcome than that of its gradients";
}

bool StepReader::readPrepare(PrepareOp op) {
  // Only counters depend on it.
  auto optimizer = symbols.lookup<OptimizerOp>(op.getOptimizerAttr().getAttr());
  auto group = symbols.lookup<GroupOp>(op.getGroupAttr().getAttr());
  if (!optimizer.getCounterNames().empty())
    checkOwnOutcome(op, group, op.getOutcome());
  auto hyper = llvm::map_to_vector(op.getHyper(),
                                   [&](Value value) { return scalar(value); });
  auto values = prepare(optimizer, group, hyper);
  if (failed(values))
    return false;
  for (auto [result, value] : llvm::zip_equal(op.getScalars(), *values))
    scalars[result] = value;
  return true;
}

bool StepReader::update(Operation *op, OptimizerOp optimizer, StringAttr name,
                        Number gradient, ArrayRef<Number> given) {
  ParameterSemantics &parameter = semantics.parameters[name];
  if (!parameter.intervals.empty())
    proof.report.error(op) << "'" << name.getValue()
                           << "' is updated twice in one step";
  checkGradient(proof, op, parameter, semantics.axes, gradient);
  Type storage = parameter.op.getDtype();
  bool hasMaster = storage != optimizer.getMasterType();
  std::vector<Number::Key> operands{gradient.getKey()};
  for (const Number &number : given)
    operands.push_back(number.getKey());
  SmallVector<Number> &values =
      updates[{optimizer, hasMaster, std::move(operands)}];
  if (values.empty()) {
    SmallVector<Number> arguments{gradient};
    arguments.push_back(
        makeSource(algebra, algebra.state(hasMaster ? "master" : "parameter")));
    for (auto state : optimizer.getStateNames().getAsRange<StringAttr>())
      arguments.push_back(makeSource(algebra, algebra.state(state.getValue())));
    Block &body = optimizer.getUpdate().front();
    for (auto [number, argument] : llvm::zip_equal(
             given, body.getArguments().drop_front(arguments.size()))) {
      arguments.push_back(number);
      countConversion(arguments.back(), argument.getType());
    }
    for (auto [argument, value] :
         llvm::zip_equal(arguments, body.getArguments()))
      argument.narrow(Precision(value.getType()));
    auto computed =
        evaluateBody(algebra, optimizer.getUpdate().front(), arguments);
    if (failed(computed))
      return false;
    values = *computed;
  }
  auto addType = [&](StringRef role, Type type) {
    parameter.types[StringAttr::get(op->getContext(), role)] = type;
  };
  addType("parameter", storage);
  if (hasMaster)
    addType("master", optimizer.getMasterType());
  for (auto [state, type] :
       llvm::zip_equal(optimizer.getStateNames().getAsRange<StringAttr>(),
                       optimizer.getStateTypes()))
    addType(state, type);
  IntervalSemantics whole;
  whole.end = parameter.elements;
  Number stored = values[0];
  if (hasMaster)
    whole.roles.push_back({"master", values[0]});
  stored.narrow(Precision(storage));
  whole.roles.push_back({"parameter", stored});
  for (auto [state, value] :
       llvm::zip_equal(optimizer.getStateNames().getAsRange<StringAttr>(),
                       ArrayRef(values).drop_front()))
    whole.roles.push_back({state.getValue().str(), value});
  parameter.intervals.push_back(std::move(whole));
  parameter.writer = op;
  return true;
}

bool StepReader::readUpdate(UpdateOp op) {
  auto optimizer = symbols.lookup<OptimizerOp>(op.getOptimizerAttr().getAttr());
  auto group = symbols.lookup<GroupOp>(op.getGroupAttr().getAttr());
  SmallVector<Number> hyper;
  auto given = op.getHyperNames().getAsRange<StringAttr>();
  for (auto name : optimizer.getHyperNames().getAsRange<StringAttr>()) {
    auto it = llvm::find(given, name);
    if (it != given.end()) {
      hyper.push_back(scalar(op.getHyper()[std::distance(given.begin(), it)]));
      continue;
    }
    Attribute constant = op.getHyperConstants().get(name);
    if (!constant)
      constant = optimizer.getHyperDefaults().get(name);
    hyper.push_back(makeSource(
        algebra,
        algebra.constant(cast<FloatAttr>(constant).getValueAsDouble())));
  }
  auto values = prepare(optimizer, group, hyper);
  if (failed(values))
    return false;
  for (auto [member, gradient] :
       llvm::zip_equal(group.getMembers().getAsRange<FlatSymbolRefAttr>(),
                       op.getGradients())) {
    Array &array = arrays[gradient];
    if (array.source != member.getAttr())
      proof.report.error(op)
          << "'" << member.getValue() << "' is updated with the gradient of '"
          << array.source.getValue() << "'";
    else if (!update(op, optimizer, member.getAttr(), array.members[0],
                     *values))
      return false;
  }
  return true;
}

bool StepReader::readUpdateBucket(UpdateBucketOp op) {
  auto optimizer = symbols.lookup<OptimizerOp>(op.getOptimizerAttr().getAttr());
  Array &array = arrays[op.getGradient()];
  if (array.source != op.getBucketAttr().getAttr()) {
    proof.report.error(op) << "bucket " << op.getBucketAttr()
                           << " is updated with the gradient of @"
                           << array.source.getValue();
    return false;
  }
  size_t width = optimizer.getNumScalars();
  auto rows = llvm::map_to_vector(op.getRows(),
                                  [&](Value value) { return scalar(value); });
  Array updated{array.source, {}};
  for (auto [i, name] : llvm::enumerate(getMembers(array.source))) {
    int64_t index = op.getRowOf()[i];
    checkOwnOutcome(op, groupOf.lookup(name), op.getOutcome(index));
    auto row = ArrayRef(rows).slice(index * width, width);
    if (!update(op, optimizer, name, array.members[i], row))
      return false;
    // No rank has the new value until it is assigned.
    auto &roles = semantics.parameters[name].intervals.back().roles;
    auto *it = llvm::find_if(
        roles, [](auto &role) { return role.first == "parameter"; });
    updated.members.push_back(it->second);
    it->second = makeSource(algebra, algebra.state("parameter"));
  }
  arrays[op.getParameters()] = std::move(updated);
  return true;
}

void StepReader::readAssign(AssignOp op) {
  Array &array = arrays[op.getValue()];
  if (array.source != op.getBucketAttr().getAttr()) {
    proof.report.error(op) << "bucket " << op.getBucketAttr()
                           << " is assigned the values of @"
                           << array.source.getValue();
    return;
  }
  for (auto [name, number] :
       llvm::zip_equal(getMembers(array.source), array.members)) {
    auto &intervals = semantics.parameters[name].intervals;
    if (intervals.empty())
      continue; // reported at the end
    for (auto &[role, value] : intervals.back().roles)
      if (role == "parameter")
        value = number;
  }
}

Rule StepReader::getRule(FlatSymbolRefAttr symbol) {
  Rule rule{cast<CounterRule>(symbols.lookup(symbol.getAttr())), {}, {}};
  for (auto name : rule.op.getCounterNames().getAsRange<StringAttr>()) {
    rule.roles.push_back((symbol.getValue() + "." + name.getValue()).str());
    rule.counters.push_back(
        makeSource(algebra, algebra.base({BaseKind::old, rule.roles.back()})));
  }
  if (isa<LossScaleOp>(rule.op))
    rule.counters[0] = makeSource(algebra, algebra.symbol(kLossScale));
  return rule;
}

bool StepReader::readSchedule(ReadScheduleOp op) {
  Rule rule = getRule(op.getScheduleAttr());
  auto schedule = cast<ScheduleOp>(rule.op);
  auto values =
      evaluateBody(algebra, schedule.getValue().front(), rule.counters);
  if (failed(values))
    return false;
  scalars[op.getValue()] = values->front();
  scalars[op.getValue()].narrow(Precision::f64());
  schedules.push_back(op.getScheduleAttr());
  return true;
}

bool StepReader::advance(FlatSymbolRefAttr symbol) {
  Rule rule = getRule(symbol);
  for (bool isSkipped : {true, false}) {
    SmallVector<Number> arguments{{algebra.integer(isSkipped)}};
    llvm::append_range(arguments, rule.counters);
    auto values = evaluateBody(algebra, rule.op.getRule(), arguments);
    if (failed(values))
      return false;
    Expr &first = values->front().expr;
    if (isa<LossScaleOp>(rule.op))
      first =
          replaceUnlessDivisor(algebra, first, rule.counters[0].expr, first);
    for (auto [role, value] : llvm::zip_equal(rule.roles, *values)) {
      value.narrow(Precision::f64());
      (isSkipped ? semantics.skipped : semantics.counters)
          .push_back({role, value});
    }
  }
  for (auto [role, initial] :
       llvm::zip_equal(rule.roles, rule.op.getCounterInitial()))
    semantics.initials.push_back({role, {algebra.constant(initial)}});
  return true;
}
