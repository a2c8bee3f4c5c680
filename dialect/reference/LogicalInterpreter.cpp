//===- LogicalInterpreter.cpp - Runs a logical step -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/LogicalInterpreter.h"

#include "dialect/reference/Optimizer.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;
using namespace zero;

namespace {
/// A value of the step. What is partial over the ranks is a list of addends;
/// what is replicated has one.
struct Array {
  std::vector<std::vector<Number>> ranks;
  /// Sum of the magnitudes of all contributions so far, and how many: the bound
  /// of a sum must hold for any order of adding.
  std::vector<double> magnitudes;
  int64_t contributions = 0;
};

class LogicalInterpreter : public Interpreter {
public:
  LogicalInterpreter(StepOp step, Arithmetic arithmetic)
      : step(step), calculator(arithmetic),
        f64(Float64Type::get(step.getContext())) {}

  LogicalResult initialize();
  int64_t getNumRanks() const override { return numRanks; }
  LogicalResult bindParameter(StringRef name, ArrayRef<double> values) override;
  FailureOr<StepResult> apply(ArrayRef<RankInputs> ranks) override;
  std::vector<Number> getParameter(int64_t rank, StringRef name) override;
  std::vector<Number> getState(StringRef role, StringRef name) override;

private:
  LogicalResult checkInputs(ArrayRef<RankInputs> ranks);
  LogicalResult run(Operation *op, ArrayRef<RankInputs> ranks);
  void runMicroBatches(MicroBatchesOp op, ArrayRef<RankInputs> ranks);
  void runReduce(ReduceOp op);
  void runNorm(NormOp op);
  void runClip(ClipOp op);
  void update(UpdateOp op);
  /// The verdict of the step, once its gradients are reduced.
  int judge(ArrayRef<RankInputs> ranks, std::string &message);
  double evaluate(ArrayRef<ScaleFactor> monomial);
  Number multiply(Number value, Number factor, Type type) {
    return calculator.mul(value, calculator.convert(factor, f64, type), type);
  }

  StepOp step;
  Calculator calculator;
  Type f64;
  SymbolTableCollection symbols;
  MeshOp mesh;
  int64_t numRanks = 1;
  llvm::MapVector<StringRef, ParameterState> parameters;
  llvm::DenseMap<Attribute, OptimizerRunner> optimizers;
  llvm::DenseMap<Attribute, std::vector<Number>> counters; // by group
  // Of the present step.
  llvm::DenseMap<Value, Array> arrays;
  llvm::DenseMap<Value, Number> scalars;
  int64_t numBackwards = 0;
};
} // namespace

LogicalResult LogicalInterpreter::initialize() {
  mesh = symbols.lookupNearestSymbolFrom<MeshOp>(step, step.getMeshAttr());
  numRanks = mesh.getNumRanks();
  auto module = step->getParentOfType<ModuleOp>();
  for (auto op : module.getOps<ParameterOp>()) {
    ParameterState &state = parameters[op.getSymName()];
    state.op = op;
    state.values.resize(op.getNumElements());
  }
  for (auto update : step.getBody().getOps<UpdateOp>()) {
    auto op = symbols.lookupNearestSymbolFrom<OptimizerOp>(
        step, update.getOptimizerAttr());
    FailureOr<OptimizerRunner> runner = OptimizerRunner::create(op);
    if (failed(runner))
      return failure();
    optimizers.try_emplace(update.getOptimizerAttr(), *runner);
    auto group =
        symbols.lookupNearestSymbolFrom<GroupOp>(step, update.getGroupAttr());
    for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>())
      runner->initialize(parameters[member.getValue()]);
    for (double initial : op.getCounterInitial())
      counters[update.getGroupAttr()].push_back({initial, 0});
  }
  return success();
}

LogicalResult LogicalInterpreter::bindParameter(StringRef name,
                                                ArrayRef<double> values) {
  auto it = parameters.find(name);
  if (it == parameters.end() || it->second.values.size() != values.size())
    return step.emitError() << "parameter '" << name << "' with "
                            << values.size() << " elements does not exist";
  ParameterState &state = it->second;
  for (auto [i, value] : llvm::enumerate(values)) {
    state.values[i] = {roundTo(value, state.op.getDtype()), 0};
    if (!state.master.empty())
      state.master[i] = state.values[i];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

void LogicalInterpreter::runMicroBatches(MicroBatchesOp op,
                                         ArrayRef<RankInputs> ranks) {
  Type type = op.getAccumulatorType();
  Operation *yield = op.getBody().front().getTerminator();
  for (auto [value, sum] :
       llvm::zip_equal(yield->getOperands(), op.getSums())) {
    auto gradient = cast<OpResult>(value);
    auto backward = cast<BackwardOp>(gradient.getOwner());
    StringRef name = cast<FlatSymbolRefAttr>(
                         backward.getSources()[gradient.getResultNumber()])
                         .getValue();
    Type arrival = cast<ValueType>(gradient.getType()).getElementType();
    size_t elements = parameters[name].values.size();
    Array &array = arrays[sum];
    array.magnitudes.assign(elements, 0);
    array.contributions = numRanks + numBackwards;
    for (const RankInputs &rank : ranks) {
      std::vector<Number> &total = array.ranks.emplace_back(elements);
      for (auto [k, gradients] : llvm::enumerate(rank.backwards)) {
        auto it = gradients.find(name);
        for (size_t i = 0; i < elements; ++i) {
          // The first backward stores; what does not arrive counts as zero.
          double number =
              it == gradients.end() ? 0.0 : roundTo(it->second[i], arrival);
          number = roundTo(number, type);
          if (k == 0)
            total[i].value = number;
          else
            total[i].value = calculator.isTyped()
                                 ? roundTo(total[i].value + number, type)
                                 : total[i].value + number;
          array.magnitudes[i] += std::abs(number);
        }
      }
    }
  }
}

double LogicalInterpreter::evaluate(ArrayRef<ScaleFactor> monomial) {
  double product = 1;
  for (const ScaleFactor &factor : monomial) {
    double base = factor.symbol.getValue() == kAccumulation
                      ? numBackwards
                      : *mesh.getAxisSize(factor.symbol);
    product *= std::pow(base, factor.exponent);
  }
  return product;
}

void LogicalInterpreter::runReduce(ReduceOp op) {
  for (auto [input, output] :
       llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    auto inputType = cast<ValueType>(input.getType());
    Type type = inputType.getElementType();
    const Array &array = arrays[input];
    size_t elements = array.magnitudes.size();
    std::vector<Number> sum(elements);
    // Higham's gamma: whatever the order, n additions are off by at most this
    // share of the sum of magnitudes.
    double n = array.contributions;
    double u = 2 * getUnitRoundoff(type);
    double gamma = n * u / (1 - n * u);
    Number factor{1 / evaluate(inputType.getScale()), 0};
    for (size_t i = 0; i < elements; ++i) {
      for (const std::vector<Number> &rank : array.ranks)
        sum[i].value = calculator.isTyped()
                           ? roundTo(sum[i].value + rank[i].value, type)
                           : sum[i].value + rank[i].value;
      if (!calculator.isTyped())
        sum[i].bound = gamma * array.magnitudes[i];
      if (inputType.isScaled())
        sum[i] = multiply(sum[i], factor, type);
    }
    arrays[output].ranks = {std::move(sum)};
  }
}

void LogicalInterpreter::runNorm(NormOp op) {
  Number sum{0, 0};
  for (Value input : op.getInputs())
    for (Number x : arrays[input].ranks[0])
      sum = calculator.fma(x, x, sum, f64);
  scalars[op.getNorm()] = calculator.sqrt(sum, f64);
}

void LogicalInterpreter::runClip(ClipOp op) {
  Number epsilon{op.getEpsilon().convertToDouble(), 0};
  Number ratio =
      calculator.div({op.getMax().convertToDouble(), 0},
                     calculator.add(scalars[op.getNorm()], epsilon, f64), f64);
  Number coefficient = ratio;
  if (ratio.value > 1)
    coefficient = {1, std::max(0.0, ratio.bound - (ratio.value - 1))};
  for (auto [input, output] :
       llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    Type type = cast<ValueType>(input.getType()).getElementType();
    std::vector<Number> clipped = arrays[input].ranks[0];
    for (Number &x : clipped)
      x = multiply(x, coefficient, type);
    arrays[output].ranks = {std::move(clipped)};
  }
}

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

int LogicalInterpreter::judge(ArrayRef<RankInputs> ranks,
                              std::string &message) {
  for (const RankInputs &rank : ranks)
    if (rank.backwards.size() != ranks[0].backwards.size()) {
      message = "ranks made different numbers of backwards";
      return 3;
    }
  std::vector<StringRef> arriving;
  step.walk([&](BackwardOp backward) {
    for (auto source : backward.getSources().getAsRange<FlatSymbolRefAttr>())
      arriving.push_back(source.getValue());
  });
  for (auto [r, rank] : llvm::enumerate(ranks))
    for (auto &gradients : rank.backwards)
      for (StringRef name : arriving)
        if (!parameters[name].op.getOptional() && !gradients.contains(name)) {
          message = "gradient of '" + name.str() + "' never arrived on rank " +
                    std::to_string(r);
          return 2;
        }
  if (step.getNonfinite() == Nonfinite::skip)
    for (auto reduce : step.getBody().getOps<ReduceOp>())
      for (Value output : reduce.getOutputs())
        for (Number x : arrays[output].ranks[0])
          if (!std::isfinite(x.value))
            return 1;
  return 0;
}

void LogicalInterpreter::update(UpdateOp op) {
  const OptimizerRunner &runner =
      optimizers.find(op.getOptimizerAttr())->second;
  OptimizerOp optimizer = runner.getOp();
  std::vector<Number> hyper;
  for (auto name : optimizer.getHyperNames().getAsRange<StringAttr>()) {
    auto names = op.getHyperNames().getAsRange<StringAttr>();
    auto it = llvm::find(names, name);
    Attribute constant = op.getHyperConstants().get(name);
    if (!constant)
      constant = optimizer.getHyperDefaults().get(name);
    if (it != names.end())
      hyper.push_back(scalars[op.getHyper()[std::distance(names.begin(), it)]]);
    else
      hyper.push_back({cast<FloatAttr>(constant).getValueAsDouble(), 0});
  }
  auto [next, prepared] =
      runner.prepare(calculator, hyper, counters[op.getGroupAttr()]);
  counters[op.getGroupAttr()] = next;
  auto group =
      symbols.lookupNearestSymbolFrom<GroupOp>(step, op.getGroupAttr());
  for (auto [member, gradient] :
       llvm::zip_equal(group.getMembers().getAsRange<FlatSymbolRefAttr>(),
                       op.getGradients()))
    runner.update(calculator, arrays[gradient].ranks[0],
                  cast<ValueType>(gradient.getType()).getElementType(),
                  prepared, parameters[member.getValue()]);
}

LogicalResult LogicalInterpreter::checkInputs(ArrayRef<RankInputs> ranks) {
  if (static_cast<int64_t>(ranks.size()) != numRanks)
    return step.emitError()
           << "the mesh has " << numRanks << " ranks, got " << ranks.size();
  for (const RankInputs &rank : ranks) {
    if (rank.backwards.empty())
      return step.emitError() << "apply without a backward";
    if (rank.inputs.size() != step.getBody().getNumArguments())
      return step.emitError()
             << "the step has " << step.getBody().getNumArguments()
             << " inputs, got " << rank.inputs.size();
    for (auto &gradients : rank.backwards)
      for (auto &gradient : gradients) {
        auto it = parameters.find(gradient.getKey());
        if (it == parameters.end() ||
            it->second.values.size() != gradient.getValue().size())
          return step.emitError() << "gradient of '" << gradient.getKey()
                                  << "' has no parameter of its size";
      }
  }
  return success();
}

LogicalResult LogicalInterpreter::run(Operation *op,
                                      ArrayRef<RankInputs> ranks) {
  if (auto microBatches = dyn_cast<MicroBatchesOp>(op))
    runMicroBatches(microBatches, ranks);
  else if (auto reduce = dyn_cast<ReduceOp>(op))
    runReduce(reduce);
  else if (auto norm = dyn_cast<NormOp>(op))
    runNorm(norm);
  else if (auto clip = dyn_cast<ClipOp>(op))
    runClip(clip);
  else if (!isa<UpdateOp, ReturnOp>(op))
    return op->emitOpError() << "cannot be interpreted in the logical phase";
  return success();
}

FailureOr<StepResult> LogicalInterpreter::apply(ArrayRef<RankInputs> ranks) {
  if (failed(checkInputs(ranks)))
    return failure();
  arrays.clear();
  scalars.clear();
  numBackwards = ranks[0].backwards.size();
  for (BlockArgument argument : step.getBody().getArguments())
    scalars[argument] = {ranks[0].inputs[argument.getArgNumber()], 0};
  Block &block = step.getBody().front();
  for (Operation &op : block)
    if (failed(run(&op, ranks)))
      return failure();
  StepResult result;
  result.backwards = numBackwards;
  result.verdict = judge(ranks, result.message);
  if (result.verdict == 0)
    for (auto op : step.getBody().getOps<UpdateOp>())
      update(op);
  for (Value value : block.getTerminator()->getOperands())
    result.values.push_back(scalars[value].value);
  return result;
}

std::vector<Number> LogicalInterpreter::getParameter(int64_t, StringRef name) {
  auto it = parameters.find(name);
  return it == parameters.end() ? std::vector<Number>() : it->second.values;
}

std::vector<Number> LogicalInterpreter::getState(StringRef role,
                                                 StringRef name) {
  auto it = parameters.find(name);
  if (it == parameters.end())
    return {};
  if (role == "master")
    return it->second.master;
  for (auto &[state, numbers] : it->second.states)
    if (role == state)
      return numbers;
  return {};
}

FailureOr<std::unique_ptr<Interpreter>>
zero::createLogicalInterpreter(StepOp step, Arithmetic arithmetic) {
  auto interpreter = std::make_unique<LogicalInterpreter>(step, arithmetic);
  if (failed(interpreter->initialize()))
    return failure();
  return std::unique_ptr<Interpreter>(std::move(interpreter));
}
