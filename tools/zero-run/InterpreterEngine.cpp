//===- InterpreterEngine.cpp - Runs a step in the interpreter -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Engine.h"

using namespace mlir;
using namespace zero;

namespace {
class InterpreterEngine : public Engine {
public:
  explicit InterpreterEngine(std::unique_ptr<Interpreter> interpreter)
      : interpreter(std::move(interpreter)) {}

  LogicalResult bind(const ParameterInfo &parameter,
                     ArrayRef<double> values) override {
    return interpreter->bindParameter(parameter.name, values);
  }
  FailureOr<StepResult> apply(ArrayRef<RankInputs> ranks) override {
    return interpreter->apply(ranks);
  }
  FailureOr<std::vector<Number>>
  getParameter(int64_t rank, const ParameterInfo &parameter) override {
    return interpreter->getParameter(rank, parameter.name);
  }
  double getLossScale() override { return interpreter->getLossScale(); }
  FailureOr<std::vector<Number>>
  getState(StringRef role, const ParameterInfo &parameter) override {
    return interpreter->getState(role, parameter.name);
  }

private:
  std::unique_ptr<Interpreter> interpreter;
};
} // namespace

std::unique_ptr<Engine> zero::createInterpreterEngine(ModuleOp module,
                                                      Arithmetic arithmetic) {
  FailureOr<std::unique_ptr<Interpreter>> interpreter =
      Interpreter::create(module, arithmetic);
  if (failed(interpreter))
    return nullptr;
  return std::make_unique<InterpreterEngine>(std::move(*interpreter));
}
