//===- Optimizer.cpp - Runs the two bodies of a zero.optimizer ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Optimizer.h"

using namespace mlir;
using namespace zero;

FailureOr<OptimizerRunner> OptimizerRunner::create(OptimizerOp op) {
  FailureOr<ScalarBody> prepare = ScalarBody::create(op.getPrepare().front());
  FailureOr<ScalarBody> update = ScalarBody::create(op.getUpdate().front());
  if (failed(prepare) || failed(update))
    return failure();
  OptimizerRunner runner;
  runner.op = op;
  runner.prepareBody = *prepare;
  runner.updateBody = *update;
  return runner;
}

std::pair<std::vector<Number>, std::vector<Number>>
OptimizerRunner::prepare(const Calculator &calculator, ArrayRef<Number> hyper,
                         ArrayRef<Number> counters) const {
  SmallVector<Number> arguments(hyper);
  arguments.append(counters.begin(), counters.end());
  std::vector<Number> yields = prepareBody.run(calculator, arguments);
  auto middle = yields.begin() + counters.size();
  return {std::vector<Number>(yields.begin(), middle),
          std::vector<Number>(middle, yields.end())};
}

void OptimizerRunner::initialize(ParameterState &parameter) const {
  size_t elements = parameter.values.size();
  if (op.getMasterType() != parameter.op.getDtype())
    parameter.master.resize(elements);
  for (auto name : op.getStateNames().getAsRange<StringAttr>())
    parameter.states.emplace_back(name.str(), std::vector<Number>(elements));
}

void OptimizerRunner::update(const Calculator &calculator,
                             ArrayRef<Number> gradient, Type gradientType,
                             ArrayRef<Number> scalars,
                             ParameterState &parameter) const {
  Type f64 = Float64Type::get(op.getContext());
  Type masterType = op.getMasterType();
  SmallVector<Number> arguments(2 + parameter.states.size());
  for (Number scalar : scalars)
    arguments.push_back(calculator.convert(scalar, f64, masterType));
  std::vector<Number> &master = parameter.getMaster();
  for (size_t i = 0; i < gradient.size(); ++i) {
    arguments[0] = calculator.convert(gradient[i], gradientType, masterType);
    arguments[1] = master[i];
    for (size_t s = 0; s < parameter.states.size(); ++s)
      arguments[2 + s] = parameter.states[s].second[i];
    std::vector<Number> updated = updateBody.run(calculator, arguments);
    master[i] = updated[0];
    for (size_t s = 0; s < parameter.states.size(); ++s)
      parameter.states[s].second[i] = updated[1 + s];
    if (!parameter.master.empty())
      parameter.values[i] =
          calculator.convert(updated[0], masterType, parameter.op.getDtype());
  }
}
