//===- Optimizer.cpp - Runs the bodies of a zero.optimizer ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Optimizer.h"

using namespace mlir;
using namespace zero;

Optimizer::Optimizer(OptimizerOp op, ScalarBody prepareBody,
                     ScalarBody updateBody)
    : op(op), prepareBody(std::move(prepareBody)),
      updateBody(std::move(updateBody)), master(getFormat(op.getMasterType())) {
  for (Type type : op.getStateTypes())
    states.push_back(getFormat(type));
}

FailureOr<Optimizer> Optimizer::create(OptimizerOp op) {
  FailureOr<ScalarBody> prepare = ScalarBody::create(op.getPrepare().front());
  FailureOr<ScalarBody> update = ScalarBody::create(op.getUpdate().front());
  if (failed(prepare) || failed(update))
    return failure();
  for (Type type : op.getStateTypes())
    if (!getFormat(type))
      return op.emitOpError()
             << "state type " << type << " is not supported by the interpreter";
  return Optimizer(op, std::move(*prepare), std::move(*update));
}

std::optional<size_t> zero::findName(ArrayAttr names, StringRef name) {
  for (auto [i, candidate] : llvm::enumerate(names.getAsRange<StringAttr>()))
    if (candidate.getValue() == name)
      return i;
  return std::nullopt;
}

std::optional<size_t> Optimizer::findState(StringRef name) {
  return findName(op.getStateNames(), name);
}

std::optional<size_t> Optimizer::findCounter(StringRef name) {
  return findName(op.getCounterNames(), name);
}

std::vector<Number> Optimizer::getInitialCounters() {
  std::vector<Number> counters;
  for (double initial : op.getCounterInitial())
    counters.push_back({initial, 0});
  return counters;
}

std::vector<Number> Optimizer::prepare(const Calculator &calculator,
                                       ArrayRef<Number> hyper,
                                       std::vector<Number> &counters,
                                       bool applied) {
  std::vector<Number> arguments(hyper);
  llvm::append_range(arguments, counters);
  std::vector<Number> results(prepareBody.getNumResults());
  prepareBody.run(calculator, arguments, results);
  auto scalars = results.begin() + counters.size();
  if (applied)
    std::copy(results.begin(), scalars, counters.begin());
  return {scalars, results.end()};
}

void Optimizer::update(const Calculator &calculator, Range range,
                       UpdateArrays arrays, ArrayRef<Number> scalars) {
  // (gradient, master, state..., scalar...)
  std::vector<Number> arguments(2 + arrays.states.size());
  for (Number scalar : scalars)
    arguments.push_back(calculator.convert(kF64, *master, scalar));
  std::vector<Number> results(1 + arrays.states.size());
  for (int64_t e = range.begin; e < range.end; ++e) {
    arguments[0] = calculator.convert(*arrays.gradient.format, *master,
                                      arrays.gradient[e]);
    arguments[1] = arrays.master[e];
    for (auto [i, state] : llvm::enumerate(arrays.states))
      arguments[2 + i] = (*state)[e];
    updateBody.run(calculator, arguments, results);
    arrays.master[e] = results[0];
    for (auto [i, state] : llvm::enumerate(arrays.states))
      (*state)[e] = results[1 + i];
  }
}
