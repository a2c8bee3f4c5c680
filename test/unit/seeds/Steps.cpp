//===- Steps.cpp - Small steps with exact answers -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include "codegen/cpu/EmitObject.h"
#include "dialect/zero/ZeroDialect.h"
#include "tools/driver/Driver.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

std::string zero::test::nameOf(const testing::TestParamInfo<Way> &info) {
  static const char *const names[] = {"logical", "scheduled", "compiled"};
  return std::string(names[static_cast<int>(std::get<0>(info.param))]) +
         "_stage" + std::to_string(std::get<1>(info.param));
}

static const char *const kSgd = R"(
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
)";

static const char *const kAdamw = R"(
zero.optimizer @adamw hyper [lr, b1 = 0.9, b2 = 0.999, eps = 1.0e-8] counters [b1t = 1.0, b2t = 1.0] state [m, v] {
^prepare(%lr: f64, %b1: f64, %b2: f64, %eps: f64, %b1t: f64, %b2t: f64):
  %one = arith.constant 1.0 : f64
  %b1n = arith.mulf %b1t, %b1 : f64
  %b2n = arith.mulf %b2t, %b2 : f64
  %c1 = arith.subf %one, %b1n : f64
  %c2 = arith.subf %one, %b2n : f64
  %root = math.sqrt %c2 : f64
  %inv = arith.divf %one, %root : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  %ob1 = arith.subf %one, %b1 : f64
  %ob2 = arith.subf %one, %b2 : f64
  zero.yield %b1n, %b2n, %step, %b1, %ob1, %b2, %ob2, %inv, %eps : f64, f64, f64, f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %step: f32, %b1: f32, %ob1: f32, %b2: f32, %ob2: f32, %inv: f32, %eps: f32):
  %m0 = arith.mulf %m, %b1 : f32
  %m1 = math.fma %g, %ob1, %m0 : f32
  %g2 = arith.mulf %g, %g : f32
  %v0 = arith.mulf %v, %b2 : f32
  %v1 = math.fma %g2, %ob2, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = math.fma %r, %inv, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p1 = math.fma %q, %step, %p : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}
)";

/// The scale that a gradient arrives with: arrival ÷ weight, as the type says
/// it.
static std::string getScaleText(const StepOptions &options) {
  int accumulation = 0;
  int dp = 0;
  auto count = [&](const std::string &monomial, int sign) {
    if (monomial.find("accumulation") != std::string::npos)
      accumulation -= sign;
    if (monomial.find("dp") != std::string::npos)
      dp -= sign;
  };
  count(options.arrives, 1);
  count(options.weight, -1);
  SmallVector<std::string> parts;
  if (accumulation)
    parts.push_back("accumulation : " + std::to_string(accumulation));
  if (dp)
    parts.push_back("dp : " + std::to_string(dp));
  return parts.empty() ? "" : ", scaled = [" + llvm::join(parts, ", ") + "]";
}

static std::string write(const StepOptions &options) {
  std::string scale = getScaleText(options);
  std::string text =
      llvm::formatv("zero.mesh @mesh <[\"dp\" = {0}]>\n", options.ranks);
  SmallVector<std::string> names, arriving, summed, final, g, d, r;
  for (auto [i, parameter] : llvm::enumerate(options.parameters)) {
    const std::string &name = std::get<0>(parameter);
    int64_t elements = std::get<1>(parameter);
    const std::string &optional = std::get<2>(parameter);
    text += llvm::formatv("zero.parameter @{0} : {1}xf32 {2}\n", name, elements,
                          optional);
    auto type = [&](const std::string &element, const std::string &rest) {
      return llvm::formatv("!zero.value<{0}x{1}{2}>", elements, element, rest)
          .str();
    };
    names.push_back("@" + name);
    arriving.push_back(
        type(options.gradientType, ", partial = [dp, micro]" + scale));
    summed.push_back(type(options.accumulatorType, ", partial = [dp]" + scale));
    final.push_back(type(options.accumulatorType, ""));
    g.push_back("%g#" + std::to_string(i));
    d.push_back("%d#" + std::to_string(i));
    r.push_back("%r#" + std::to_string(i));
  }
  auto list = [](ArrayRef<std::string> parts) {
    return llvm::join(parts, ", ");
  };
  size_t n = options.parameters.size();
  text += "zero.group @all [" + list(names) + "]\n";
  text += options.optimizer == "sgd" ? kSgd : kAdamw;
  text += "zero.step @train on @mesh weight(" + options.weight +
          ") (%lr: !zero.value<f64>) {\n  %g:" + std::to_string(n) +
          " = zero.micro_batches in " + options.accumulatorType +
          " {\n    %d:" + std::to_string(n) + " = zero.backward(" +
          list(names) + ") arrives(" + options.arrives +
          ") : " + list(arriving) + "\n    zero.yield " + list(d) + " : " +
          list(arriving) + "\n  }\n  %r:" + std::to_string(n) +
          " = zero.reduce " + list(g) + " : " + list(summed) +
          "\n  %norm = zero.norm " + list(r) + " : " + list(final) +
          "\n  zero.update @all with @" + options.optimizer + "(" + list(r) +
          ") hyper(lr = %lr) : (" + list(final) +
          "), (!zero.value<f64>)\n  zero.return [norm] %norm : "
          "!zero.value<f64>\n}\n";
  return text;
}

struct Step::Context {
  Context() : mlir(makeRegistry()) {}
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDriverDialects(registry);
    registerCpuCodegenDialects(registry);
    return registry;
  }
  MLIRContext mlir;
  OwningOpRef<ModuleOp> module;
};

Step::Step(const StepOptions &options, Way way)
    : context(std::make_unique<Context>()), ranks(options.ranks) {
  std::string text = write(options);
  context->module = parseSourceString<ModuleOp>(text, &context->mlir);
  if (!context->module)
    llvm::report_fatal_error(llvm::Twine("the step does not parse:\n" + text));
  Builder builder(&context->mlir);
  for (auto &[name, elements, optional] : options.parameters)
    parameters.push_back({name, elements, builder.getF32Type(),
                          options.gradientType == "bf16"
                              ? Type(builder.getBF16Type())
                              : Type(builder.getF32Type()),
                          optional == "optional"});
  auto [how, stage] = way;
  if (how != How::logical) {
    LowerOptions lowerOptions;
    lowerOptions.stage = stage;
    // Small enough for several buckets.
    lowerOptions.bucketBytes = 256;
    if (failed(lower(*context->module, lowerOptions)))
      llvm::report_fatal_error(llvm::Twine("the step cannot be lowered"));
  }
  std::string message = "the step cannot be interpreted";
  if (how == How::compiled)
    engine =
        createCompiledEngine(*context->module, ranks, parameters, {}, message);
  else
    engine = createInterpreterEngine(*context->module, how == How::logical
                                                           ? Arithmetic::F64
                                                           : Arithmetic::Typed);
  if (!engine)
    llvm::report_fatal_error(llvm::Twine(message));
  for (const ParameterInfo &info : parameters)
    bind(info.name, std::vector<double>(info.elements, 0.0));
}

Step::~Step() = default;

const ParameterInfo &Step::find(const std::string &name) {
  return *llvm::find_if(
      parameters, [&](const ParameterInfo &info) { return info.name == name; });
}

FailureOr<StepResult>
Step::apply(double rate,
            std::vector<std::vector<llvm::StringMap<std::vector<double>>>>
                contributions) {
  std::vector<RankInputs> inputs;
  for (auto &backwards : contributions)
    inputs.push_back({std::move(backwards), {rate}});
  return engine->apply(inputs);
}

void Step::bind(const std::string &name, std::vector<double> values) {
  if (failed(engine->bind(find(name), values)))
    llvm::report_fatal_error(llvm::Twine("cannot bind " + name));
}

static std::vector<double> toDoubles(FailureOr<std::vector<Number>> numbers) {
  std::vector<double> values;
  if (failed(numbers))
    llvm::report_fatal_error(llvm::Twine("cannot read"));
  for (Number number : *numbers)
    values.push_back(number.value);
  return values;
}

std::vector<double> Step::get(const std::string &name) {
  std::vector<double> first = toDoubles(engine->getParameter(0, find(name)));
  for (int64_t r = 1; r < ranks; ++r)
    EXPECT_EQ(first, toDoubles(engine->getParameter(r, find(name))))
        << "rank " << r << " holds other values than rank 0";
  return first;
}

std::vector<double> Step::getState(const std::string &role,
                                   const std::string &name) {
  return toDoubles(engine->getState(role, find(name)));
}
