//===- PlacedStep.cpp - Steps whose parameters live here and there --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlacedStep.h"

#include "llvm/Support/FormatVariadic.h"

using namespace zero;
using namespace zero::test;

std::string zero::test::printStep(const std::string &mesh,
                                  const std::string &weight,
                                  const std::string &replicated,
                                  const std::vector<Placed> &parameters) {
  std::string declared, names, arriving, summed, reduced, scaled;
  std::string values, sums, results;
  auto append = [](std::string &list, const std::string &entry) {
    list += (list.empty() ? "" : ", ") + entry;
  };
  // Nothing is multiplied in when a gradient arrives: 1 / weight is left.
  std::string left = weight;
  for (size_t at; (at = left.find(": -1")) != std::string::npos;)
    left.replace(at, 4, ": 1");
  if (!left.empty())
    scaled = ", scaled = [" + left + "]";
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Placed &one = parameters[i];
    declared += "zero.parameter @" + one.name + " : " + one.type + "\n";
    append(names, "@" + one.name);
    append(arriving,
           "!zero.value<" + one.type + ", " + one.arrival + scaled + ">");
    std::string partial = one.arrival.substr(0, one.arrival.find(']') + 1);
    size_t micro = partial.find(", micro");
    bool onlyMicro = micro == std::string::npos;
    if (!onlyMicro)
      partial.erase(micro, 7);
    append(summed, "!zero.value<" + one.type +
                       (onlyMicro ? "" : ", " + partial) + scaled + ">");
    append(reduced, "!zero.value<" + one.type + ">");
    std::string index =
        parameters.size() > 1 ? "#" + std::to_string(i) : std::string();
    append(values, "%d" + index);
    append(sums, "%g" + index);
    append(results, "%r" + index);
  }
  std::string count =
      parameters.size() > 1 ? ":" + std::to_string(parameters.size()) : "";
  return llvm::formatv(R"(
zero.mesh @m <[{0}]>
{1}zero.group @all [{2}]
zero.optimizer @sgd hyper [lr] {{
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {{
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.step @train on @m normalize({3}) (%lr: !zero.value<f64>) {{
  %g{4} = zero.micro_batches in f32 {{
    %d{4} = zero.backward({2}) prescaled() {5} : {6}
    zero.yield {7} : {6}
  }
  %r{4} = zero.reduce {8} : {9}
  %norm = zero.norm {10} : {11}
  zero.update @all with @sgd({10}) hyper(lr = %lr) : ({11}), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
)",
                       mesh, declared, names, weight, count, replicated,
                       arriving, values, sums, summed, results, reduced)
      .str();
}

static Window getWindow(const std::vector<Backward> &gradients) {
  Window window;
  for (const Backward &backward : gradients)
    window.push_back({backward});
  return window;
}

StepResult PlacedStepTest::apply(const std::vector<Backward> &gradients) {
  mlir::FailureOr<StepResult> result = step->apply(1, getWindow(gradients));
  EXPECT_TRUE(mlir::succeeded(result));
  return mlir::succeeded(result) ? *result : StepResult();
}

std::string PlacedStepTest::refused(const std::vector<Backward> &gradients) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(step->getContext(),
                                        [&](mlir::Diagnostic &diagnostic) {
                                          message = diagnostic.str();
                                          return mlir::success();
                                        });
  EXPECT_TRUE(mlir::failed(step->apply(1, getWindow(gradients))));
  return message;
}

void PlacedStepTest::run(const std::string &source,
                         const std::vector<Backward> &gradients) {
  step = std::make_unique<Step>(source, GetParam());
  StepResult result = apply(gradients);
  ASSERT_EQ(result.outcome, Outcome::applied) << result.message;
  norm = result.values[0];
}

Values PlacedStepTest::applied(int64_t rank, const std::string &name) {
  Values values = step->getOn(rank, name);
  for (double &value : values)
    value = 0 - value;
  return values;
}
