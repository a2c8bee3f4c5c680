//===- zero-run.cpp - Runs a step on N ranks and compares -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitObject.h"
#include "codegen/kernels/Lower.h"
#include "dialect/zero/CountOf.h"
#include "dialect/zero/ZeroDialect.h"
#include "tools/driver/Driver.h"
#include "tools/zero-run/Given.h"
#include "tools/zero-run/Main.h"
#include "tools/zero-run/Options.h"
#include "tools/zero-run/Run.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/WithColor.h"

#include <numeric>
#include <unistd.h>

using namespace mlir;
using namespace zero;

/// "master" and the states of the module's optimizers.
static std::vector<std::string> getRoles(ModuleOp module) {
  std::vector<std::string> roles{"master"};
  for (auto optimizer : module.getOps<OptimizerOp>())
    for (auto name : optimizer.getStateNames().getAsRange<StringAttr>())
      if (!llvm::is_contained(roles, name.getValue()))
        roles.push_back(name.str());
  return roles;
}

/// Puts what |options| and |step| say into |run|; else |message| and |code| say
/// what is wrong.
static LogicalResult prepare(const RunOptions &options,
                             const Processes *processes, StepOp step, Run &run,
                             std::string &message, ExitCode &code) {
  code = ExitCode::usage;
  auto module = step->getParentOfType<ModuleOp>();
  auto mesh = module.lookupSymbol<MeshOp>(step.getMeshAttr());
  run.ranks = mesh.getNumRanks();
  if (run.ranks > kMaxRanks) {
    message = llvm::formatv("the mesh has {0} ranks, expected at most {1} on "
                            "one machine; give smaller sizes with --mesh",
                            run.ranks, kMaxRanks);
    return failure();
  }
  if (processes && processes->getNumRanks() != run.ranks) {
    message = llvm::formatv("the mesh has {0}, and there are {1}; give both "
                            "the same number",
                            countOf(run.ranks, "rank"),
                            countOf(processes->getNumRanks(), "process", "es"));
    return failure();
  }
  if (run.ranks * options.threads > kMaxThreads) {
    message = llvm::formatv("--threads-per-rank={0} on {1} makes {2} "
                            "threads, expected at most {3} on one machine; "
                            "give fewer threads or ranks",
                            options.threads, countOf(run.ranks, "rank"),
                            run.ranks * options.threads, kMaxThreads);
    return failure();
  }
  run.parameters = readParameters(module, mesh);
  run.roles = getRoles(module);
  size_t numInputs = step.getBody().getNumArguments();
  run.inputs = readInputs(step, mesh);
  run.given = options.inputs;
  if (!run.given.empty() && run.given.size() != numInputs) {
    message =
        llvm::formatv("--inputs has {0}, expected {1} for the {2} of the step",
                      countOf(run.given.size(), "value"), numInputs,
                      numInputs == 1 ? "scalar argument" : "scalar arguments");
    return failure();
  }

  for (auto [i, number] : llvm::enumerate(run.given))
    if (run.inputs[i].isMaxNorm && number <= 0) {
      message = llvm::formatv("--inputs: argument {0} is the max of a clip and "
                              "must be positive, got {1}",
                              i, number);
      return failure();
    }

  run.numbers.emplace(options.seed, options.gradients);
  run.steps = options.steps.value_or(kDefaultSteps);
  run.backwards = options.backwards;
  run.hints = options.hints;
  run.measures = options.measures;
  run.leavesOut = options.leavesOut;
  run.load = options.load;
  run.save = options.save;
  run.saveWithin = options.saveWithin;
  if (!options.gradientFile.empty()) {
    code = llvm::sys::fs::is_regular_file(options.gradientFile)
               ? ExitCode::failed
               : ExitCode::environment;
    auto file = GradientFile::open(options.gradientFile, run.parameters,
                                   run.ranks, message);
    if (failed(file))
      return failure();
    if (!options.steps)
      run.steps = std::max<int64_t>(1, file->getSteps());
    if (run.backwards.empty())
      run.backwards = file->getBackwards(run.steps);
    if (failed(file->checkTaken(run.steps, run.backwards, message)))
      return failure();
    run.file = std::move(*file);
  }
  if (run.backwards.empty())
    run.backwards = {1};
  return success();
}

/// Whether the gradients of one step, which are kept as doubles, fit into
/// memory: without this the kernel would end the run, and not say why.
static LogicalResult checkMemory(const Run &run, std::string &message) {
  int64_t backwards = *llvm::max_element(run.backwards);
  uint64_t bytes = 0;
  for (const ParameterInfo &info : run.parameters)
    bytes = llvm::SaturatingAdd<uint64_t>(
        bytes,
        llvm::SaturatingMultiply<uint64_t>(
            llvm::SaturatingMultiply<uint64_t>(info.elements, sizeof(double)),
            run.ranks * backwards));
  uint64_t memory = uint64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (bytes <= memory)
    return success();
  message =
      llvm::formatv("the gradients of {0} on {1} take {2} bytes, and this "
                    "machine has {3}; give fewer backward passes or "
                    "ranks",
                    countOf(backwards, "backward pass", "es"),
                    countOf(run.ranks, "rank"), bytes, memory);
  return failure();
}

/// Of all parameters.
static int64_t getNumElements(const Run &run) {
  int64_t count = 0;
  for (const ParameterInfo &info : run.parameters)
    count += info.elements;
  return count;
}

/// Makes the engine and the reference.
static LogicalResult createEngines(const RunOptions &options,
                                   const Processes *processes,
                                   const CompiledSetup &setUp, ModuleOp logical,
                                   ModuleOp lowered, ModuleOp scheduled,
                                   Run &run, std::string &message) {
  if (options.engine == EngineKind::compiled) {
    CompiledOptions compiled;
    compiled.cpu = options.cpu;
    compiled.threads = options.threads;
    compiled.trace = options.trace;
    compiled.nvtx = options.nvtx;
    compiled.library = options.library;
    compiled.arrivals = options.arrivals;
    compiled.unitUses = options.unitUses;
    compiled.gpus = options.gpus;
    compiled.group = options.group;
    compiled.processes = processes;
    if (setUp)
      setUp(scheduled, compiled);
    run.engine = createCompiledEngine(scheduled, run.ranks, run.parameters,
                                      compiled, message);
  } else if (options.orders > 0) {
    run.engine = createOrdersEngine(scheduled, run.ranks, options.orders,
                                    run.parameters);
  } else {
    run.engine = createInterpreterEngine(lowered, Arithmetic::Typed);
  }
  if (!run.engine)
    return failure();
  if (options.against == Against::none)
    return success();
  if (options.against == Against::typed) {
    run.reference = createInterpreterEngine(scheduled, Arithmetic::Typed);
    return success(run.reference != nullptr);
  }
  bool isLarge = getNumElements(run) > kLargeStep;
  if (int64_t count =
          options.elements.value_or(isLarge ? kSampledElements : 0)) {
    auto sampled =
        SampledReference::create(logical, run.parameters, count, options.seed);
    run.sample = sampled.get();
    run.reference = std::move(sampled);
    if (!run.reference && options.elements) {
      message = "--elements=" + std::to_string(count) +
                " needs a step in which every rank holds whole parameters and "
                "delivers an addend of each gradient, in a type with the range "
                "of f32; give --elements=all";
      return failure();
    }
  }
  if (!run.reference)
    run.reference = createInterpreterEngine(logical, Arithmetic::F64);
  return success(run.reference != nullptr);
}

/// The gradients of all steps, ranks and backward passes, in elements.
static double countGradientElements(const Run &run) {
  int64_t count = run.backwards.size();
  double backwards =
      double(run.steps / count) *
      std::accumulate(run.backwards.begin(), run.backwards.end(), int64_t(0));
  for (int64_t i = 0; i < run.steps % count; ++i)
    backwards += run.backwards[i];
  return backwards * run.ranks * getNumElements(run);
}

/// Says before the first step that a run takes long, and what takes less. A
/// progress line is printed on a terminal only.
static void announce(const Run &run, const RunOptions &options,
                     Report &report) {
  report.elements = getNumElements(run);
  report.comparedElements =
      run.sample ? run.sample->getNumElements() : report.elements;
  // Measured on one core with AdamW: to make a gradient element and to run the
  // step on it, in either engine, and to compare it.
  constexpr double kCompiled = 0.15e-6, kInterpreted = 0.4e-6;
  constexpr double kSampled = 0.25e-6, kWhole = 1e-6;
  constexpr double kLong = 5;
  double each = options.engine == EngineKind::compiled
                    ? kCompiled
                    : kInterpreted * (1 + options.orders);
  if (run.reference)
    each += run.sample ? kSampled : kWhole;
  double made = countGradientElements(run);
  if (made * each < kLong)
    return;
  llvm::WithColor::note(llvm::errs(), "zero-run")
      << llvm::formatv("this run makes {0:f0} gradient elements and takes "
                       "about {1:f0} s; fewer ranks, --steps or "
                       "--accumulation take less",
                       made, made * each);
  if (run.reference && !run.sample && options.against == Against::logical)
    llvm::errs() << ", and so does --elements=" << kSampledElements
                 << " if every rank holds whole parameters";
  if (run.reference)
    llvm::errs() << "; --against=none compares nothing";
  llvm::errs() << "\n";
}

/// All of it; failures have been added to the errors of |report|.
static LogicalResult runStep(RunOptions &options, const Processes *processes,
                             const CompiledSetup &setUp, Errors &errors,
                             Report &report) {
  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCodegenDialects(registry);
  MLIRContext context(registry);
  LoadedStep loaded(context, options.input, options.step, "run", errors);
  ModuleOp logical = loaded.getModule();
  if (!logical)
    return failure();
  ModuleOp given; // where it is not this tool that lowers the step
  std::optional<LoadedStep> written;
  if (!options.written.empty()) {
    given = logical;
    written.emplace(context, options.written, options.step, "compared", errors);
    logical = written->getModule();
    if (!logical)
      return failure();
  }
  std::string message;
  auto fail = [&](ExitCode code) {
    // Else it has been diagnosed.
    if (!message.empty())
      errors.add(code, message);
    return failure();
  };
  ExitCode code;
  StringRef file = describeInput(options.input);
  if (given) {
    if (failed(checkGiven(given, logical, options, code, message)))
      return fail(code);
    file = options.written;
  }
  if (failed(checkLogical(logical, "run", file, message))) {
    message += "; run this one with --engine=interpreter --against=step.mlir, "
               "the step as written";
    return fail(ExitCode::failed);
  }
  if (failed(LowerSettings::checkAxes(logical, file, options.lower.mesh,
                                      options.meshFlag, message)))
    return fail(ExitCode::usage);
  LowerOptions setMesh;
  setMesh.mesh = options.lower.mesh.getValue();
  setMesh.until = std::string("logical");
  if (failed(lower(logical, setMesh)))
    return failure();
  StepOp step = *logical.getOps<StepOp>().begin();
  Progress progress("zero-run");
  progress.update("compiling", 0, 0);
  Run run(report, progress);
  if (failed(prepare(options, processes, step, run, message, code)))
    return fail(code);
  if (failed(checkMemory(run, message)))
    return fail(ExitCode::environment);

  report.ranks = run.ranks;
  report.orders = options.orders;
  auto returnOp = cast<ReturnOp>(step.getBody().front().getTerminator());
  for (auto name : returnOp.getNames().getAsRange<StringAttr>())
    report.valueNames.push_back(name.str());

  options.lower.mesh = std::string(); // it is set
  OwningOpRef<ModuleOp> lowered = (given ? given : logical).clone();
  OwningOpRef<ModuleOp> scheduled = lowered->clone();
  LowerOptions toScheduled;
  toScheduled.copyOptionValuesFrom(options.lower);
  toScheduled.until = std::string("scheduled");
  if (!given && (failed(lower(*lowered, options.lower)) ||
                 failed(lower(*scheduled, toScheduled))))
    return failure();
  if (failed(createEngines(options, processes, setUp, logical, *lowered,
                           *scheduled, run, message)))
    return fail(ExitCode::environment);
  progress.clear();
  announce(run, options, report);
  return run.run();
}

int zero::runTool(int argc, char **argv, const Processes *processes,
                  const CompiledSetup &setUp) {
  Tool tool("zero-run", argc, argv);
  RunOptions options;
  bool isParsed = succeeded(parseOptions(tool, options));
  Report report(tool);
  report.engine =
      options.engine == EngineKind::compiled ? "compiled" : "interpreter";
  report.against = options.getAgainstName();
  report.referenceName = options.getReferenceName();
  // What fails is among the errors, or a difference.
  if (isParsed)
    (void)runStep(options, processes, setUp, tool.errors, report);
  return report.finish();
}
