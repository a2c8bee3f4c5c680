//===- OrdersEngine.cpp - Runs a step in many orders of streams -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Compare.h"
#include "tools/zero-run/Engine.h"

using namespace mlir;
using namespace zero;

namespace {
/// Interpreter 0 runs in program order, and interpreter i in the order of seed
/// i.
class OrdersEngine : public Engine {
public:
  OrdersEngine(ModuleOp module, int64_t ranks,
               ArrayRef<ParameterInfo> parameters,
               std::vector<std::unique_ptr<Interpreter>> all)
      : module(module), ranks(ranks), parameters(parameters),
        all(std::move(all)) {}

  LogicalResult bind(const ParameterInfo &parameter,
                     ArrayRef<double> values) override {
    for (auto &one : all)
      if (failed(one->bindParameter(parameter.name, values)))
        return failure();
    return success();
  }
  FailureOr<StepResult> apply(ArrayRef<RankInputs> inputs) override;
  FailureOr<std::vector<Number>>
  getParameter(int64_t rank, const ParameterInfo &parameter) override {
    return all[0]->getParameter(rank, parameter.name);
  }
  double getLossScale() override { return all[0]->getLossScale(); }
  FailureOr<std::vector<Number>>
  getState(StringRef role, const ParameterInfo &parameter) override {
    return all[0]->getState(role, parameter.name);
  }

private:
  LogicalResult compareOrder(size_t seed);

  ModuleOp module;
  int64_t ranks;
  ArrayRef<ParameterInfo> parameters;
  std::vector<std::unique_ptr<Interpreter>> all;
};
} // namespace

LogicalResult OrdersEngine::compareOrder(size_t seed) {
  for (const ParameterInfo &info : parameters)
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<Number> expected = all[0]->getParameter(rank, info.name);
      for (Number &number : expected)
        number.bound = 0;
      Difference difference =
          compare(all[seed]->getParameter(rank, info.name), expected);
      if (difference.outside > 0)
        return module.emitError()
               << "@" << info.name << " on rank " << rank << ", element "
               << *difference.first << ": got " << difference.got
               << " in the order of streams of seed " << seed << ", expected "
               << difference.expected << " as in program order";
    }
  return success();
}

FailureOr<StepResult> OrdersEngine::apply(ArrayRef<RankInputs> inputs) {
  FailureOr<StepResult> expected = all[0]->apply(inputs);
  if (failed(expected))
    return failure();
  for (size_t seed = 1; seed < all.size(); ++seed) {
    FailureOr<StepResult> result = all[seed]->apply(inputs);
    if (failed(result))
      return module.emitError() << "step fails in the order of streams of seed "
                                << seed << ", and not in program order";
    if (result->outcome != expected->outcome)
      return module.emitError()
             << "outcome " << stringifyOutcome(result->outcome)
             << " in the order of streams of seed " << seed << ", expected "
             << stringifyOutcome(expected->outcome) << " as in program order";
    if (failed(compareOrder(seed)))
      return failure();
  }
  return expected;
}

std::unique_ptr<Engine>
zero::createOrdersEngine(ModuleOp scheduled, int64_t ranks, int64_t orders,
                         ArrayRef<ParameterInfo> parameters) {
  std::vector<std::unique_ptr<Interpreter>> all;
  for (int64_t seed = 0; seed <= orders; ++seed) {
    FailureOr<std::unique_ptr<Interpreter>> one =
        Interpreter::create(scheduled, Arithmetic::Typed);
    if (failed(one))
      return nullptr;
    (*one)->setOrder(seed);
    all.push_back(std::move(*one));
  }
  return std::make_unique<OrdersEngine>(scheduled, ranks, parameters,
                                        std::move(all));
}
