//===- InterpreterFixture.cpp - Text, run by the interpreter --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InterpreterFixture.h"

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

Runner::Runner(const std::string &text, Arithmetic arithmetic) {
  DialectRegistry registry;
  registry.insert<ZeroDialect, zrt::ZrtDialect, arith::ArithDialect,
                  math::MathDialect>();
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  module = parseSourceString<ModuleOp>(text, context.get());
  if (!module) {
    ADD_FAILURE() << "cannot parse\n" << text;
    std::abort();
  }
  auto created = Interpreter::create(*module, arithmetic);
  if (failed(created)) {
    ADD_FAILURE() << "cannot interpret\n" << text;
    std::abort();
  }
  interpreter = std::move(*created);
}

StepResult Runner::apply(const std::vector<std::vector<Gradient>> &gradients,
                         std::vector<double> inputs) {
  std::vector<RankInputs> ranks(interpreter->getNumRanks());
  for (RankInputs &rank : ranks)
    rank.inputs = inputs;
  for (const auto &backward : gradients)
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      ranks[rank].backwards.emplace_back()["w"] = backward[rank];
  return applyInputs(std::move(ranks));
}

StepResult Runner::applyInputs(std::vector<RankInputs> inputs) {
  FailureOr<StepResult> result = interpreter->apply(inputs);
  EXPECT_TRUE(succeeded(result));
  return succeeded(result) ? *result : StepResult();
}

static std::vector<double> getValues(ArrayRef<Number> numbers) {
  std::vector<double> values;
  for (const Number &number : numbers)
    values.push_back(number.value);
  return values;
}

std::vector<double> Runner::parameter(StringRef name, int64_t rank) {
  return getValues(interpreter->getParameter(rank, name));
}

std::vector<double> Runner::state(StringRef role, StringRef name) {
  return getValues(interpreter->getState(role, name));
}
