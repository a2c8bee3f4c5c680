//===- InterpreterFixture.cpp - Steps as text, run by the interpreter -----===//
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

const char *const zero::test::kOptimizers = R"(
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.optimizer @adamw hyper [lr, wd = 0.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8] counters [beta1_t = 1.0, beta2_t = 1.0] state [m, v] {
^prepare(%lr: f64, %wd: f64, %beta1: f64, %beta2: f64, %eps: f64, %b1t: f64, %b2t: f64):
  %one = arith.constant 1.0 : f64
  %b1n = arith.mulf %b1t, %beta1 : f64
  %b2n = arith.mulf %b2t, %beta2 : f64
  %c1 = arith.subf %one, %b1n : f64
  %c2 = arith.subf %one, %b2n : f64
  %root = math.sqrt %c2 : f64
  %inv_root = arith.divf %one, %root : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  %ob1 = arith.subf %one, %beta1 : f64
  %ob2 = arith.subf %one, %beta2 : f64
  zero.yield %b1n, %b2n, %keep, %step, %beta1, %ob1, %beta2, %ob2, %inv_root, %eps : f64, f64, f64, f64, f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %keep: f32, %step: f32, %beta1: f32, %ob1: f32, %beta2: f32, %ob2: f32, %inv_root: f32, %eps: f32):
  %m0 = arith.mulf %m, %beta1 : f32
  %m1 = math.fma %g, %ob1, %m0 : f32
  %g2 = arith.mulf %g, %g : f32
  %v0 = arith.mulf %v, %beta2 : f32
  %v1 = math.fma %g2, %ob2, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = math.fma %r, %inv_root, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %q, %step, %p0 : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}
)";

std::string StepText::print() const {
  std::string n = std::to_string(elements);
  std::string arriving = "!zero.value<" + n + "x" + arrival +
                         ", partial = [dp, micro], scaled = [" + scale + "]>";
  std::string summed = "!zero.value<" + n + "x" + accumulator +
                       ", partial = [dp], scaled = [" + scale + "]>";
  std::string reduced = "!zero.value<" + n + "x" + accumulator + ">";
  if (scale.empty()) {
    arriving = "!zero.value<" + n + "x" + arrival + ", partial = [dp, micro]>";
    summed = "!zero.value<" + n + "x" + accumulator + ", partial = [dp]>";
  }
  return "zero.mesh @m <[\"dp\" = " + std::to_string(ranks) + "]>\n" +
         "zero.parameter @w : " + n + "x" + storage + " " + flags + "\n" +
         "zero.group @all [@w]\n" + kOptimizers + "zero.step @s on @m weight(" +
         weight + ") " + nonfinite + " (%lr: !zero.value<f64>) {\n" + //
         "  %g = zero.micro_batches in " + accumulator + " {\n" +
         "    %d = zero.backward(@w) arrives() : " + arriving + "\n" +
         "    zero.yield %d : " + arriving + "\n  }\n" +
         "  %r = zero.reduce %g : " + summed + "\n" +
         "  %norm = zero.norm %r : " + reduced + "\n" + //
         "  zero.update @all with @" + optimizer + "(%r) hyper(lr = %lr) : (" +
         reduced + "), (!zero.value<f64>)\n" +
         "  zero.return [norm] %norm : !zero.value<f64>\n}\n";
}

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
