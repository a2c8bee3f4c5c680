//===- zero-run.cpp - Runs a step on N ranks and compares -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitObject.h"
#include "dialect/zero/ZeroDialect.h"
#include "tools/driver/Driver.h"
#include "tools/zero-run/Compare.h"
#include "tools/zero-run/Inputs.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-run options");
static cl::opt<std::string> input(cl::Positional, cl::desc("<step.mlir>"),
                                  cl::init("-"), cl::cat(category));
static cl::opt<int64_t> ranksFlag("ranks", cl::init(0), cl::cat(category),
                                  cl::desc("Short for --mesh=dp=N"));
static cl::opt<std::string>
    backwardsFlag("backwards", cl::init("1"), cl::cat(category),
                  cl::desc("Backwards of each step, e.g. 1,4,2; repeated"));
static cl::opt<int64_t> steps("steps", cl::init(5), cl::cat(category),
                              cl::desc("Steps to run (default 5)"));
enum class EngineKind { compiled, interpreter };
static cl::opt<EngineKind> engineKind(
    "engine", cl::init(EngineKind::compiled), cl::cat(category),
    cl::desc("What runs the step"),
    cl::values(clEnumValN(EngineKind::compiled, "compiled", "machine code"),
               clEnumValN(EngineKind::interpreter, "interpreter",
                          "the reference interpreter, at --until")));
enum class Against { none, logical, typed };
static cl::opt<Against> against(
    "against", cl::init(Against::logical), cl::cat(category),
    cl::desc("What to compare with"),
    cl::values(
        clEnumValN(Against::none, "none", "nothing"),
        clEnumValN(Against::logical, "logical",
                   "the logical step in f64, within its rounding bound "
                   "(default)"),
        clEnumValN(Against::typed, "typed",
                   "the interpreter at the scheduled phase, bit for bit")));
static cl::opt<GradientKind> gradients(
    "gradients", cl::init(GradientKind::random), cl::cat(category),
    cl::desc("Which gradients arrive"),
    cl::values(clEnumValN(GradientKind::random, "random", "normal numbers"),
               clEnumValN(GradientKind::exact, "exact",
                          "integers with exact sums")));
static cl::opt<uint64_t> seed("seed", cl::init(1), cl::cat(category),
                              cl::desc("Seed of all numbers"));
static cl::opt<std::string>
    inputsFlag("inputs", cl::init(""), cl::cat(category),
               cl::desc("The step's scalar arguments, e.g. 1e-3; default: "
                        "0.01 each"));
static cl::opt<int> threads("threads-per-rank", cl::init(1), cl::cat(category),
                            cl::desc("Threads of each rank"));
enum class Arrivals { backward, shuffled };
static cl::opt<Arrivals> arrivals(
    "arrivals", cl::init(Arrivals::backward), cl::cat(category),
    cl::desc("The order in which a compiled step gets its gradients"),
    cl::values(clEnumValN(Arrivals::backward, "backward",
                          "The last parameter first (default)"),
               clEnumValN(Arrivals::shuffled, "shuffled",
                          "Another one on every rank, in every backward")));
static cl::opt<std::string> cpu("cpu", cl::init("x86-64-v3"), cl::cat(category),
                                cl::desc("As zero-compile"));
static cl::opt<bool> json("json", cl::cat(category),
                          cl::desc("Print the outcome as JSON"));

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "zero-run") << message << "\n";
  return 1;
}

/// Comma separated numbers; failure if one is none.
template <typename T, typename ParseFn>
static LogicalResult parseList(StringRef text, std::vector<T> &list,
                               ParseFn parse) {
  SmallVector<StringRef> parts;
  if (text.empty())
    return success();
  text.split(parts, ',');
  for (StringRef part : parts)
    if (!parse(part, list.emplace_back()))
      return failure();
  return success();
}

/// The parameters that arrive in the logical |module|, in order of declaration.
static std::vector<ParameterInfo> getParameters(ModuleOp module) {
  std::vector<ParameterInfo> parameters;
  for (auto op : module.getOps<ParameterOp>()) {
    ParameterInfo info;
    info.name = op.getSymName().str();
    info.elements = op.getNumElements();
    info.storageType = op.getDtype();
    info.arrivalType = op.getDtype();
    info.optional = op.getOptional();
    info.uses = op.getUses();
    module.walk([&](BackwardOp backward) {
      for (auto [source, type] :
           llvm::zip(backward.getSources().getAsRange<FlatSymbolRefAttr>(),
                     backward.getGradients().getTypes()))
        if (source.getValue() == info.name)
          info.arrivalType = cast<ValueType>(type).getElementType();
    });
    parameters.push_back(info);
  }
  return parameters;
}

/// "parameter", "master" and the states of the module's optimizers.
static std::vector<std::string> getRoles(ModuleOp module) {
  std::vector<std::string> roles{"master"};
  for (auto optimizer : module.getOps<OptimizerOp>())
    for (auto name : optimizer.getStateNames().getAsRange<StringAttr>())
      if (!llvm::is_contained(roles, name.getValue()))
        roles.push_back(name.str());
  return roles;
}

namespace {
/// One run: an engine, and perhaps another one to compare with.
struct Run {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Engine> reference;
  std::vector<ParameterInfo> parameters;
  std::vector<std::string> roles;
  int64_t ranks = 1;
  std::vector<int64_t> backwards;
  std::vector<double> inputs;
  llvm::MapVector<StringRef, Difference> differences;
  std::string firstOutside;
  llvm::json::Array stepReports;

  LogicalResult bind(const Inputs &numbers);
  LogicalResult step(int64_t index, const Inputs &numbers);
  LogicalResult compareAll(int64_t index);
  /// A hash over the bits of all parameters and state, wherever they are kept.
  FailureOr<std::string> hashState();
  void record(StringRef role, const ParameterInfo &info, int64_t step,
              const Difference &difference);
  int report();
};
} // namespace

LogicalResult Run::bind(const Inputs &numbers) {
  for (auto [i, info] : llvm::enumerate(parameters)) {
    std::vector<double> values = numbers.getInitial(i, info);
    if (failed(engine->bind(info, values)) ||
        (reference && failed(reference->bind(info, values))))
      return failure();
  }
  return success();
}

/// Whether a reported scalar is that of the reference: the same bits, or,
/// against f64, as far off as sums of the narrowest type may be.
static bool isClose(double got, double wanted) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted)))
    return true;
  return against == Against::logical &&
         std::abs(got - wanted) <= 0x1p-7 * std::abs(wanted);
}

LogicalResult Run::step(int64_t index, const Inputs &numbers) {
  int64_t count = backwards[index % backwards.size()];
  std::vector<RankInputs> delivered(ranks);
  for (int64_t r = 0; r < ranks; ++r) {
    delivered[r].inputs = inputs;
    delivered[r].backwards.resize(count);
    for (int64_t k = 0; k < count; ++k)
      for (auto [i, info] : llvm::enumerate(parameters))
        delivered[r].backwards[k][info.name] =
            numbers.getGradient(i, info, index, r, ranks, k, count);
  }
  FailureOr<StepResult> result = engine->apply(delivered);
  if (failed(result))
    return failure();
  llvm::json::Object report{{"step", index},
                            {"backwards", result->backwards},
                            {"verdict", result->verdict},
                            {"values", llvm::json::Array(result->values)}};
  stepReports.push_back(std::move(report));
  if (!json) {
    llvm::outs() << "step " << index << ": " << result->backwards
                 << " backwards, verdict " << result->verdict;
    for (double value : result->values)
      llvm::outs() << llvm::format(", %.9g", value);
    llvm::outs() << "\n";
  }
  if (!reference)
    return success();
  FailureOr<StepResult> expected = reference->apply(delivered);
  if (failed(expected))
    return failure();
  if (expected->verdict != result->verdict) {
    llvm::errs() << "error: step " << index << " has verdict "
                 << result->verdict << ", the reference says "
                 << expected->verdict << "\n";
    return failure();
  }
  for (auto [got, wanted] : llvm::zip_equal(result->values, expected->values))
    if (!isClose(got, wanted)) {
      llvm::errs() << llvm::format(
          "error: step %lld reports %.17g, the reference %.17g\n",
          (long long)index, got, wanted);
      return failure();
    }
  return compareAll(index);
}

void Run::record(StringRef role, const ParameterInfo &info, int64_t step,
                 const Difference &difference) {
  differences[role].add(difference);
  if (!difference.first || !firstOutside.empty())
    return;
  llvm::raw_string_ostream os(firstOutside);
  os << role << " of @" << info.name << "[" << *difference.first
     << "] after step " << step << " is "
     << llvm::format("%.17g, expected %.17g within %.3g", difference.got,
                     difference.expected, difference.bound);
}

LogicalResult Run::compareAll(int64_t index) {
  for (const ParameterInfo &info : parameters) {
    for (int64_t r = 0; r < ranks; ++r) {
      auto got = engine->getParameter(r, info);
      auto expected = reference->getParameter(r, info);
      if (failed(got) || failed(expected))
        return failure();
      record("parameter", info, index, compare(*got, *expected));
    }
    for (StringRef role : roles) {
      auto got = engine->getState(role, info);
      auto expected = reference->getState(role, info);
      if (failed(got) || failed(expected))
        return failure();
      // Parameters that are their own master copy have none besides.
      if (got->empty())
        continue;
      record(role, info, index, compare(*got, *expected));
    }
  }
  return success();
}

/// What rank 0 allocated, launched and sent, under the plan's names.
static llvm::json::Value toJson(const zero_rt_counters &counters) {
  static const char *const spaces[] = {"device", "host"};
  static const char *const roles[] = {"parameter", "gradient", "accumulator",
                                      "state",     "scalar",   "staging"};
  llvm::json::Object now;
  llvm::json::Object peak;
  for (int space = 0; space < 2; ++space) {
    llvm::json::Object nowByRole;
    llvm::json::Object peakByRole;
    for (int role = 0; role < ZERO_RT_ROLE_COUNT; ++role) {
      nowByRole[roles[role]] = counters.bytes_now[space][role];
      peakByRole[roles[role]] = counters.bytes_peak[space][role];
    }
    now[spaces[space]] = std::move(nowByRole);
    peak[spaces[space]] = std::move(peakByRole);
  }
  return llvm::json::Object{
      {"bytes_now", std::move(now)},
      {"bytes_peak", std::move(peak)},
      {"all_reduces", counters.all_reduces},
      {"scalar_all_reduces", counters.scalar_all_reduces},
      {"reduce_scatters", counters.reduce_scatters},
      {"all_gathers", counters.all_gathers},
      {"bytes_sent", counters.bytes_sent},
      {"bytes_copied_between_spaces", counters.bytes_copied_between_spaces}};
}

FailureOr<std::string> Run::hashState() {
  std::vector<double> numbers;
  for (const ParameterInfo &info : parameters) {
    auto parameter = engine->getParameter(0, info);
    if (failed(parameter))
      return failure();
    for (const Number &number : *parameter)
      numbers.push_back(number.value);
    for (StringRef role : roles) {
      auto state = engine->getState(role, info);
      if (failed(state))
        return failure();
      for (const Number &number : *state)
        numbers.push_back(number.value);
    }
  }
  auto *bytes = reinterpret_cast<const uint8_t *>(numbers.data());
  uint64_t hash =
      llvm::xxh3_64bits(ArrayRef(bytes, numbers.size() * sizeof(double)));
  return llvm::formatv("{0:x16}", hash).str();
}

int Run::report() {
  bool equal = firstOutside.empty();
  FailureOr<std::string> hash = hashState();
  if (failed(hash))
    return fail("the final state cannot be read");
  if (json) {
    llvm::json::Object roleReports;
    for (auto &[role, d] : differences)
      roleReports[role] = llvm::json::Object{{"elements", d.elements},
                                             {"outside", d.outside},
                                             {"uninformative", d.uninformative},
                                             {"worst_error", d.worstError},
                                             {"worst_share", d.worstShare}};
    std::optional<zero_rt_counters> counters = engine->getCounters(0);
    llvm::outs() << llvm::json::Value(llvm::json::Object{
                        {"counters", counters ? toJson(*counters)
                                              : llvm::json::Value(nullptr)},
                        {"ranks", ranks},
                        {"equal", equal},
                        {"state_hash", *hash},
                        {"first_outside", firstOutside},
                        {"roles", std::move(roleReports)},
                        {"steps", std::move(stepReports)}})
                 << "\n";
    return equal ? 0 : 1;
  }
  if (!differences.empty()) {
    llvm::outs() << "\nrole          compared    outside  bound says nothing  "
                    "worst error  share of bound\n";
    for (auto &[role, d] : differences)
      llvm::outs() << llvm::format(
          "%-10s %11lld %10lld %19lld %12.3g %15.3g\n", role.str().c_str(),
          (long long)d.elements, (long long)d.outside,
          (long long)d.uninformative, d.worstError, d.worstShare);
  }
  return equal ? 0 : fail(firstOutside);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  LowerFlags flags(category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "zero-run: runs a step on N ranks and compares it with a reference\n\n"
      "  zero-run step.mlir --ranks=4 --stage=2 --backwards=1,4,2 --steps=5\n\n"
      "exits with 1 where an element is outside the reference's bound.\n");

  Run run;
  std::string message;
  LowerOptions options;
  if (failed(flags.get(options, message)) || failed(checkCpuName(cpu, message)))
    return fail(message);
  bool hasRanks = ranksFlag.getNumOccurrences() > 0;
  if (hasRanks && (ranksFlag < 1 || ranksFlag > 256))
    return fail("--ranks must be between 1 and 256, got " +
                llvm::Twine(ranksFlag));
  if (hasRanks && !flags.mesh.empty())
    return fail("--ranks and --mesh both set the mesh; give one");
  if (engineKind == EngineKind::compiled && options.until != "scheduled")
    return fail("--until=" + llvm::StringRef(options.until) +
                " needs --engine=interpreter: only a scheduled step has code");
  if (hasRanks)
    options.mesh = "dp=" + std::to_string(ranksFlag);
  if (steps < 1)
    return fail("--steps must be at least 1, got " + llvm::Twine(steps));
  if (threads < 1)
    return fail("--threads-per-rank must be at least 1, got " +
                llvm::Twine(threads));
  if (failed(parseList(backwardsFlag, run.backwards,
                       [](StringRef part, int64_t &value) {
                         return !part.getAsInteger(10, value) && value >= 1;
                       })) ||
      run.backwards.empty())
    return fail("--backwards must be numbers of at least 1, such as 1,4,2, got "
                "'" +
                backwardsFlag + "'");
  if (failed(
          parseList(inputsFlag, run.inputs, [](StringRef part, double &value) {
            return !part.getAsDouble(value) && std::isfinite(value);
          })))
    return fail("--inputs must be finite numbers, got '" + inputsFlag + "'");

  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCpuCodegenDialects(registry);
  MLIRContext context(registry);
  LoadedStep loaded(context, input);
  ModuleOp logical = loaded.getModule();
  LowerOptions setMesh;
  setMesh.mesh = options.mesh.getValue();
  setMesh.until = std::string("logical");
  if (!logical || failed(lower(logical, setMesh)))
    return 1;
  auto meshes = logical.getOps<MeshOp>();
  auto stepOps = logical.getOps<StepOp>();
  if (meshes.empty() || stepOps.empty())
    return fail("'" + input + "' has no zero.step");
  run.ranks = (*meshes.begin()).getNumRanks();
  run.parameters = getParameters(logical);
  run.roles = getRoles(logical);
  size_t numInputs = (*stepOps.begin()).getBody().getNumArguments();
  if (run.inputs.empty())
    run.inputs.assign(numInputs, 0.01);
  if (run.inputs.size() != numInputs)
    return fail("the step has " + llvm::Twine(numInputs) +
                " scalar arguments, --inputs gives " +
                llvm::Twine(run.inputs.size()));

  options.mesh = std::string();
  OwningOpRef<ModuleOp> lowered = logical.clone();
  OwningOpRef<ModuleOp> scheduled = logical.clone();
  LowerOptions toScheduled;
  toScheduled.copyOptionValuesFrom(options);
  toScheduled.until = std::string("scheduled");
  if (failed(lower(*lowered, options)) ||
      failed(lower(*scheduled, toScheduled)))
    return 1;

  if (engineKind == EngineKind::compiled) {
    CompiledOptions compiled;
    compiled.cpu = cpu;
    compiled.threads = threads;
    compiled.shuffleArrivals = arrivals == Arrivals::shuffled;
    run.engine = createCompiledEngine(*scheduled, run.ranks, run.parameters,
                                      compiled, message);
    if (!run.engine)
      return fail(message);
  } else {
    run.engine = createInterpreterEngine(*lowered, Arithmetic::Typed);
  }
  if (against == Against::logical)
    run.reference = createInterpreterEngine(logical, Arithmetic::F64);
  else if (against == Against::typed)
    run.reference = createInterpreterEngine(*scheduled, Arithmetic::Typed);
  if (!run.engine || (against != Against::none && !run.reference))
    return 1;

  Inputs numbers(seed, gradients);
  if (failed(run.bind(numbers)))
    return fail("initial values cannot be set");
  for (int64_t i = 0; i < steps; ++i)
    if (failed(run.step(i, numbers)))
      return 1;
  return run.report();
}
