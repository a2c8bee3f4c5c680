//===- StepInterpreter.cpp - Runs a zero.step, op by op -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/StepInterpreter.h"

#include <cmath>

using namespace mlir;
using namespace zero;

//===----------------------------------------------------------------------===//
// What is known before the first step
//===----------------------------------------------------------------------===//

static bool isSupported(ValueType type) {
  for (const AxisPlacement &placement : type.getPlacements())
    if (placement.kind == PlacementKind::PartialMax ||
        placement.kind == PlacementKind::PartialMin ||
        placement.kind == PlacementKind::PartialOr)
      return false;
  return true;
}

LogicalResult StepInterpreter::checkSupported() {
  WalkResult result = step.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto value = dyn_cast<ValueType>(type); value && !isSupported(value))
        return WalkResult(op->emitOpError()
                          << "type " << type
                          << " is not supported by the interpreter");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult StepInterpreter::readExpected() {
  auto module = step->getParentOfType<ModuleOp>();
  auto mesh = module.lookupSymbol<MeshOp>(step.getMeshAttr());
  auto expect = [&](StringRef name) {
    ParameterOp parameter = findParameter(name);
    ValueType type = parameter.getValueType();
    expected.push_back({name.str(), mesh.getNumHeld(type),
                        parameter.getOptional(), ranks.getHolders(type)});
  };
  step.walk([&](BackwardOp op) {
    for (auto source : op.getSources().getAsRange<FlatSymbolRefAttr>()) {
      auto bucket = module.lookupSymbol<BucketOp>(source);
      if (!bucket) {
        expect(source.getValue());
        continue;
      }
      for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>())
        expect(member.getValue());
    }
  });
  return success();
}

LogicalResult StepInterpreter::readRules() {
  auto module = step->getParentOfType<ModuleOp>();
  SmallVector<FlatSymbolRefAttr> names;
  if (FlatSymbolRefAttr scale = step.getLossScaleAttr())
    names.push_back(scale);
  for (auto read : step.getBody().getOps<ReadScheduleOp>())
    names.push_back(read.getScheduleAttr());
  for (FlatSymbolRefAttr name : names) {
    FailureOr<Counters> rule = Counters::create(
        cast<CounterRule>(module.lookupSymbol(name)), ranks.size());
    if (failed(rule))
      return failure();
    rules.insert({name.getAttr(), std::move(*rule)});
  }
  return success();
}

LogicalResult StepInterpreter::initialize() {
  auto module = step->getParentOfType<ModuleOp>();
  ranks = Ranks(module.lookupSymbol<MeshOp>(step.getMeshAttr()));
  for (auto parameter : module.getOps<ParameterOp>())
    if (!parameter.getFrozen())
      parameters[parameter.getSymName()] = parameter;
  for (auto op : module.getOps<OptimizerOp>()) {
    FailureOr<Optimizer> optimizer = Optimizer::create(op);
    if (failed(optimizer))
      return failure();
    optimizers[op.getSymName()] =
        std::make_unique<Optimizer>(std::move(*optimizer));
  }
  step.walk([&](MicroBatchesOp op) {
    op.walk([&](Operation *inner) {
      communicatesInLoop |=
          isa<AllReduceOp, ReduceScatterOp, AllGatherOp>(inner);
    });
  });
  if (failed(readRules()) || failed(checkSupported()) || failed(readExpected()))
    return failure();
  return initializeState();
}

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

FailureOr<StepResult> StepInterpreter::apply(ArrayRef<RankInputs> perRank) {
  FailureOr<Window> created = Window::create(
      step, ranks.size(), step.getBody().getNumArguments(), expected, perRank);
  if (failed(created))
    return failure();
  window = *created;
  StepResult result;
  result.backwards = window->getBackwards(0);
  if (communicatesInLoop && !window->isEqual()) {
    // A rank would wait for a rank that makes no such backward pass.
    result.outcome = Outcome::refused_unequal_backwards;
    result.message = describe(result.outcome);
    return result;
  }
  values.clear();
  for (auto [i, argument] : llvm::enumerate(step.getBody().getArguments()))
    defineScalar(argument, [&, i = i](int64_t rank) {
      return Number{window->getInputs(rank)[i], 0};
    });
  for (Operation &op : step.getBody().front())
    if (failed(evaluate(op)))
      return failure();
  FailureOr<Outcome> outcome = finish();
  if (failed(outcome))
    return failure();
  result.outcome = *outcome;
  result.message = describe(*outcome);
  auto returnOp = cast<ReturnOp>(step.getBody().front().getTerminator());
  for (Value value : returnOp.getValues()) {
    Number number = getScalar(value, 0);
    result.values.push_back(number.value);
    result.bounds.push_back(number.bound);
  }
  return result;
}

LogicalResult StepInterpreter::discard(ArrayRef<RankInputs> perRank) {
  // A step in the zero dialect keeps no result of a step that is not applied.
  return Window::create(step, ranks.size(), step.getBody().getNumArguments(),
                        expected, perRank);
}

Array StepInterpreter::readGradient(int64_t rank, StringRef name,
                                    int64_t elements, const Format &arrival) {
  Array gradient(arrival, elements);
  if (const std::vector<double> *arrived = window->find(rank, backward, name))
    for (auto [number, value] : llvm::zip(gradient.elements, *arrived))
      number = calculator.read(arrival, value);
  return gradient;
}

void StepInterpreter::evaluateMicroBatches(MicroBatchesOp op) {
  const Format &format = *getFormat(op.getAccumulatorType());
  Operation *yield = op.getBody().front().getTerminator();
  std::vector<PerRank> sums(op.getNumResults(), PerRank(ranks.size()));
  std::vector<std::vector<std::vector<double>>> magnitudes(
      op.getNumResults(), std::vector<std::vector<double>>(ranks.size()));

  for (backward = 0; backward < window->getLargestBackwards(); ++backward) {
    for (Operation &inner : op.getBody().front().without_terminator())
      (void)evaluate(inner);
    for (int64_t rank = 0; rank < ranks.size(); ++rank) {
      if (!makesBackward(rank))
        continue;
      for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
        Array addend = convert(calculator, format, values[value][rank]);
        Array &sum = sums[i][rank];
        std::vector<double> &magnitude = magnitudes[i][rank];
        magnitude.resize(addend.size());
        for (int64_t e = 0; e < addend.size(); ++e)
          magnitude[e] += std::fabs(addend[e].value) + addend[e].bound;
        if (backward == 0)
          sum = addend;
        else if (calculator.isTyped())
          sum = add(calculator, sum, addend);
        else
          for (int64_t e = 0; e < addend.size(); ++e) {
            sum[e].value += addend[e].value;
            sum[e].bound += addend[e].bound;
          }
      }
    }
  }
  // The bound holds for any order of summation over backward passes and ranks.
  // So a step that reduces in the loop is within it, too. The roundings of the
  // whole sum are charged here, where magnitudes are still known.
  double factor =
      calculator.isTyped()
          ? 0
          : Calculator::getSumFactor(format, window->getTotalBackwards());
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    double ofResult = factor;
    double tiny = 0;
    double limit = HUGE_VAL;
    // The gradient of each backward pass is also rounded before it travels.
    for (Operation *user : result.getUsers())
      if (auto reduce = dyn_cast<ReduceOp>(user);
          reduce && reduce.getReduceDtype() && !calculator.isTyped()) {
        const Format &reduceDtype = *getReduceDtype(reduce);
        ofResult += reduceDtype.getUnitRoundoff();
        tiny = reduceDtype.getTiny() * double(window->getTotalBackwards());
        limit = reduceDtype.largest;
      }
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      for (int64_t e = 0; ofResult > 0 && e < sums[i][rank].size(); ++e) {
        double magnitude = magnitudes[i][rank][e];
        sums[i][rank][e].bound +=
            magnitude > limit ? HUGE_VAL : ofResult * magnitude + tiny;
      }
    // A rank without any backward pass contributes zero.
    int64_t largest = 0;
    for (const Array &sum : sums[i])
      largest = std::max(largest, sum.size());
    for (Array &sum : sums[i])
      if (!sum.format)
        sum = Array(format, largest);
    values[result] = std::move(sums[i]);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

llvm::SmallVector<const Array *> StepInterpreter::getArrays(ValueRange operands,
                                                            int64_t rank) {
  return llvm::map_to_vector(operands, [&](Value operand) {
    return static_cast<const Array *>(&values.find(operand)->second[rank]);
  });
}

Array StepInterpreter::join(Value value) {
  auto type = cast<ValueType>(value.getType());
  const PerRank &parts = values.find(value)->second;
  Array whole(*parts.front().format, type.getNumElements());
  // The first group has each slice once.
  auto groups = ranks.getGroups(type.getAxes(PlacementKind::Sharded), type);
  for (int64_t rank : groups.front())
    for (auto [position, number] :
         llvm::zip_equal(ranks.getHeld(type, rank), parts[rank].elements))
      whole[position] = number;
  return whole;
}

void StepInterpreter::define(Value result,
                             llvm::function_ref<Array(int64_t)> function) {
  PerRank arrays;
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    arrays.push_back(function(rank));
  values[result] = std::move(arrays);
}

void StepInterpreter::defineScalar(
    Value result, llvm::function_ref<Number(int64_t)> function) {
  define(result, [&](int64_t rank) { return Array::scalar(function(rank)); });
}
