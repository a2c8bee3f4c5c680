//===- Options.cpp - The command line of zero-run -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options are strings, and are read here: what LLVM says of a value that does
// not parse goes to stderr, also where errors are to be JSON.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Options.h"

#include "codegen/cpu/EmitObject.h"
#include "tools/driver/Driver.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-run options");
static cl::opt<std::string> inputFlag(cl::Positional, cl::desc("<step.mlir>"),
                                      cl::init("-"), cl::cat(category));
static cl::opt<std::string>
    ranksFlag("ranks", cl::value_desc("N"), cl::cat(category),
              cl::desc("Short for --mesh=dp=N (default: the mesh in the "
                       "IR)"));
static cl::opt<std::string>
    backwardsFlag("accumulation", cl::value_desc("N,..."), cl::cat(category),
                  cl::desc("Backward passes of each step, such as 1,4,2, "
                           "repeated\n(default 1, or the number in the "
                           "gradient file)"));
static cl::opt<std::string>
    stepsFlag("steps", cl::value_desc("N"), cl::cat(category),
              cl::desc("Number of steps (default 5, or the number in the "
                       "gradient file)"));
static cl::opt<std::string>
    engineFlag("engine", cl::value_desc("compiled|interpreter"),
               cl::init("compiled"), cl::cat(category),
               cl::desc("Engine of the step: compiled code, or the "
                        "reference interpreter\nat the phase --until "
                        "(default compiled)"));
static cl::opt<std::string>
    againstFlag("against", cl::value_desc("logical|typed|none|step.mlir"),
                cl::init("logical"), cl::cat(category),
                cl::desc("Reference: the logical step in f64, within its "
                         "rounding bound;\nthe interpreter at the scheduled "
                         "phase, bit for bit; none; or\nthe logical step of a "
                         "file, for a step that is lowered already\n(default "
                         "logical)"));
static cl::opt<std::string>
    gradientsFlag("gradients", cl::value_desc("random|exact|FILE.safetensors"),
                  cl::init("random"), cl::cat(category),
                  cl::desc("Gradients: random normal numbers, integers with "
                           "exact sums, or\nthe tensors of a file (default "
                           "random)"));
static cl::opt<std::string>
    seedFlag("seed", cl::value_desc("N"), cl::init("1"), cl::cat(category),
             cl::desc("Seed of initial values and gradients (default 1)"));
static cl::opt<std::string>
    inputsFlag("inputs", cl::value_desc("X,..."), cl::cat(category),
               cl::desc("Scalar arguments of the step, such as 1e-3, the "
                        "same on all\nranks (default 0.01, 0.03, 0.09, ...; a "
                        "partial argument: a different\nwhole number on each "
                        "rank)"));
static cl::opt<std::string>
    threadsFlag("threads-per-rank", cl::value_desc("N"), cl::init("1"),
                cl::cat(category),
                cl::desc("Threads of each rank (default 1)"));
static cl::opt<std::string>
    traceFlag("trace", cl::value_desc("folder"), cl::cat(category),
              cl::desc("Write what each rank does, call by call, to "
                       "folder/rank-N.json;\ntools/scripts/trace.py makes one "
                       "file of all and says where the time goes"));
static cl::opt<bool>
    nvtxFlag("nvtx", cl::cat(category),
             cl::desc("Make each call a range of NVTX, for Nsight Systems"));
static cl::opt<std::string>
    libraryFlag("library", cl::value_desc("file.so"), cl::cat(category),
                cl::desc("Run this library, which zero-compile made of the "
                         "step with the\nsame options, instead of compiling "
                         "the step"));
static cl::opt<std::string>
    saveFlag("save", cl::value_desc("folder"), cl::cat(category),
             cl::desc("Save a checkpoint after the last step"));
static cl::opt<std::string> saveWithinFlag(
    "save-within", cl::value_desc("N"), cl::cat(category),
    cl::desc("With --save: behind the last step, make N backward "
             "passes of the\nnext one, save, and discard them; "
             "a run with --load goes on with\nthe other ones"));
static cl::opt<std::string>
    loadFlag("load", cl::value_desc("folder"), cl::cat(category),
             cl::desc("Load a checkpoint first, and go on with the step after "
                      "it; with\n--against=none, and with any --mesh and "
                      "--stage"));
static cl::opt<std::string>
    ordersFlag("orders", cl::value_desc("N"), cl::cat(category),
               cl::desc("Also run each step in N legal orders of streams, "
                        "with seeds 1 to N;\neach must give the bits of "
                        "program order (default none)"));
static cl::opt<std::string>
    arrivalsFlag("arrivals", cl::value_desc("backward|shuffled|interleaved"),
                 cl::init("backward"), cl::cat(category),
                 cl::desc("Order of the gradients of a compiled step: the "
                          "last parameter\nfirst; another order on each rank "
                          "in each backward pass, several in\na call; or "
                          "such orders with several backward passes "
                          "open\n(default backward)"));
static cl::opt<std::string>
    hintsFlag("hints", cl::value_desc("unknown|last|random"),
              cl::init("unknown"), cl::cat(category),
              cl::desc("Hint at the begin of a backward pass. unknown: "
                       "none (default);\nlast: the last backward pass of "
                       "a step is named as the last;\nrandom: any "
                       "backward pass may be, at random, which costs time "
                       "and\nchanges sums only by rounding"));
static cl::opt<std::string>
    unitUsesFlag("unit-uses", cl::value_desc("listed|reversed|random|repeated"),
                 cl::init("listed"), cl::cat(category),
                 cl::desc("Order in which a compiled step of stage 3 uses "
                          "units: as the step\nlists them; reversed; another "
                          "one in each pass; or each unit twice\nin a forward "
                          "pass (default listed)"));
static cl::opt<bool>
    absentFlag("absent", cl::cat(category),
               cl::desc("Leave out gradients of optional parameters at "
                        "random\n(default off)"));
static cl::opt<bool>
    measureFlag("measure", cl::cat(category),
                cl::desc("Ask for the results of each step before it is "
                         "applied, and compare\nthem with those of apply"));
static cl::opt<std::string>
    cpuFlag("cpu", cl::init("x86-64-v3"), cl::cat(category),
            cl::value_desc("x86-64-v3|x86-64-v4|native"),
            cl::desc("CPU of the compiled code (default x86-64-v3)"));
static cl::opt<std::string>
    deviceFlag("device", cl::init("host"), cl::cat(category),
               cl::value_desc("host|cuda|cuda:N,..."),
               cl::desc("Device of the compiled kernels: the processor, or "
                        "GPUs, which\nranks take in turn (default host)"));
static cl::opt<std::string>
    groupFlag("group", cl::init("threads"), cl::cat(category),
              cl::value_desc("threads|shared|tcp"),
              cl::desc("How ranks of a compiled step exchange data: as "
                       "threads, or as do\nprocesses of one machine, in "
                       "shared memory, or processes of several\nmachines, "
                       "over TCP (default threads)"));
static cl::opt<std::string>
    elementsFlag("elements", cl::value_desc("auto|all|N"), cl::init("auto"),
                 cl::cat(category),
                 cl::desc("Elements of each parameter to compare with the "
                          "logical step\n(default auto: all; 1024 if the "
                          "step has more than 2097152 and\nall ranks hold "
                          "all of them)"));
static cl::opt<bool>
    jsonFlag("json", cl::ValueDisallowed, cl::cat(category),
             cl::desc("Print the result and the errors as one JSON "
                      "object (default off)"));

static const char *const kOverview =
    R"(zero-run: runs a step on N ranks and compares it with a reference

  zero-run step.mlir --ranks=4 --stage=2 --accumulation=1,4,2 --steps=5
  zero-run step.mlir --ranks=2 --gradients=recorded.safetensors --json
  zero-run lowered.mlir --engine=interpreter --against=step.mlir

The last form runs a step at any phase as it is, such as one that was edited, or
that a pass of your own made, and compares it with the step as written. It says
what such a program computes; zero-prove lowered.mlir --against=step.mlir says
whether it is right. Ranks use the units of stage 3 as a training does: the next
unit is gathered while one is in use. A scheduled step is run in other orders of
streams with --orders, in which races show.

A gradient file has the keys STEP/BACKWARD/RANK/PARAMETER. Numbers count from 0.
The parameter's name is the name in the IR without '@'. So 0/3/1/fc1.weight is
the gradient of @fc1.weight on rank 1, in the fourth backward pass of the first
step. Type and shape must be those of the arriving gradient. zero-run converts
nothing. A gradient without a key does not arrive. A
missing gradient of an optional parameter counts as zeros. Any other missing
gradient refuses the step, and the report names it. Without --steps and
--accumulation the file determines both.

A step is "applied", "skipped" because a gradient is not finite, or "refused"
for a reason. The values that the step reports follow. After each step zero-run
compares all parameters, all optimizer state and the reported values. Each must
lie within the bound of the reference. A bound as large as its value says nothing
about the value; the last column has the share of such bounds. In a step of more
than 2097152 elements zero-run compares 1024 elements of each parameter, and the
report says so; --elements=all compares all.

On a terminal, stderr shows the progress of a run of more than two seconds. In
any case it says at the start that a run takes more than about five seconds.
Ctrl-C prints the results so far.

With --json, numbers that are not finite are the strings "nan", "inf", "-inf".

The exit code is 1 if a step was refused or a value differs.
)";

/// A message for |option|, which must be |expected|.
static LogicalResult reject(const cl::opt<std::string> &option,
                            const llvm::Twine &expected, std::string &message) {
  message = ("--" + option.ArgStr + " must be " + expected + ", got '" +
             option.getValue() + "'")
                .str();
  return failure();
}

/// Reads a number between |least| and |most|.
static LogicalResult readNumber(const cl::opt<std::string> &option,
                                int64_t least, int64_t most, int64_t &value,
                                std::string &message) {
  if (!StringRef(option).getAsInteger(10, value) && value >= least &&
      value <= most)
    return success();
  return reject(option,
                "a number between " + llvm::Twine(least) + " and " +
                    llvm::Twine(most),
                message);
}

/// Reads numbers between commas; failure if one is none.
template <typename T, typename ReadFn>
static LogicalResult readList(StringRef text, std::vector<T> &list,
                              ReadFn read) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts)
    if (!read(part, list.emplace_back()))
      return failure();
  return success();
}

static constexpr int64_t kMaxBackwards = 65536;
static constexpr int64_t kMaxOrders = 4096;
static constexpr int64_t kMaxSteps = 1000000000;

static LogicalResult readNumbers(RunOptions &options, std::string &message) {
  int64_t number;
  if (ranksFlag.getNumOccurrences()) {
    if (failed(readNumber(ranksFlag, 1, kMaxRanks, number, message)))
      return failure();
    if (!options.lower.mesh.empty()) {
      message = "--ranks and --mesh both set the mesh; give one";
      return failure();
    }
    options.lower.mesh = "dp=" + std::to_string(number);
  }
  options.meshFlag = ranksFlag.getNumOccurrences()
                         ? "--ranks=" + ranksFlag.getValue()
                         : "--mesh=" + options.lower.mesh.getValue();
  if (stepsFlag.getNumOccurrences()) {
    // Without a step a run converts a checkpoint.
    int64_t least = loadFlag.getNumOccurrences() ? 0 : 1;
    if (failed(readNumber(stepsFlag, least, kMaxSteps, number, message)))
      return failure();
    options.steps = number;
  }
  if (backwardsFlag.getNumOccurrences() &&
      failed(readList(backwardsFlag, options.backwards,
                      [](StringRef part, int64_t &value) {
                        return !part.getAsInteger(10, value) && value >= 1 &&
                               value <= kMaxBackwards;
                      })))
    return reject(backwardsFlag,
                  "numbers between 1 and " + llvm::Twine(kMaxBackwards) +
                      ", such as 1,4,2",
                  message);
  if (inputsFlag.getNumOccurrences() &&
      failed(readList(inputsFlag, options.inputs,
                      [](StringRef part, double &value) {
                        return !part.getAsDouble(value) && std::isfinite(value);
                      })))
    return reject(inputsFlag, "finite numbers, such as 1e-3,0.9", message);
  if (StringRef(seedFlag).getAsInteger(10, options.seed))
    return reject(seedFlag, "a number between 0 and 18446744073709551615",
                  message);
  return readNumber(threadsFlag, 1, kMaxThreads, options.threads, message);
}

/// "cuda", "cuda:1", "cuda:0,1".
static LogicalResult parseGpus(StringRef device, std::vector<int> &gpus) {
  if (device == "cuda") {
    gpus = {0};
    return success();
  }
  if (!device.consume_front("cuda:"))
    return failure();
  for (StringRef part : llvm::split(device, ',')) {
    int gpu = 0;
    if (part.getAsInteger(10, gpu) || gpu < 0)
      return failure();
    gpus.push_back(gpu);
  }
  return success();
}

static LogicalResult readCheckpoints(RunOptions &options,
                                     std::string &message) {
  options.save = saveFlag;
  options.load = loadFlag;
  bool isUsed = !options.save.empty() || !options.load.empty();
  bool isWithin = saveWithinFlag.getNumOccurrences() != 0;
  if (isWithin && failed(readNumber(saveWithinFlag, 1, kMaxBackwards,
                                    options.saveWithin, message)))
    return failure();
  if (isWithin && options.save.empty())
    message = "--save-within says when to save, and needs --save";
  else if (isUsed && options.engine == EngineKind::interpreter)
    message = "--save and --load are of a compiled step, and "
              "--engine=interpreter interprets it; leave out one of them";
  else if (!options.load.empty() && options.against != Against::none)
    message = "--load needs --against=none: the reference begins with the "
              "first step";
  else if (!options.load.empty() && !options.gradientFile.empty())
    message = "--load goes on with a later step, and the gradients of a file "
              "begin with the first; leave out one of them";
  return success(message.empty());
}

/// What only a compiled step has.
static LogicalResult readCompiled(RunOptions &options, std::string &message) {
  static constexpr std::pair<llvm::StringLiteral, GroupKind> kGroups[] = {
      {"threads", GroupKind::threads},
      {"shared", GroupKind::shared},
      {"tcp", GroupKind::tcp}};
  const auto *group = llvm::find_if(
      kGroups, [](const auto &named) { return named.first == groupFlag; });
  if (group == std::end(kGroups))
    return reject(groupFlag, "threads, shared or tcp", message);
  options.group = group->second;
  options.library = libraryFlag;
  options.trace = traceFlag;
  options.nvtx = nvtxFlag;
  if (!options.library.empty() && cpuFlag.getNumOccurrences() > 0) {
    message = "--library is a compiled step, and --cpu says how one is "
              "compiled; leave out one of them";
    return failure();
  }
  if (options.engine == EngineKind::compiled)
    return success();
  for (const cl::Option *flag : std::initializer_list<const cl::Option *>{
           &groupFlag, &libraryFlag, &traceFlag, &nvtxFlag}) {
    if (flag->getNumOccurrences() == 0)
      continue;
    message = ("--" + flag->ArgStr +
               " is of a compiled step, and --engine=interpreter interprets "
               "it; leave out one of them")
                  .str();
    return failure();
  }
  return success();
}

static LogicalResult readChoices(RunOptions &options, std::string &message) {
  if (engineFlag == "interpreter")
    options.engine = EngineKind::interpreter;
  else if (engineFlag != "compiled")
    return reject(engineFlag, "compiled or interpreter", message);
  if (arrivalsFlag == "shuffled")
    options.arrivals = Arrivals::shuffled;
  else if (arrivalsFlag == "interleaved")
    options.arrivals = Arrivals::interleaved;
  else if (arrivalsFlag != "backward")
    return reject(arrivalsFlag, "backward, shuffled or interleaved", message);

  if (hintsFlag == "last")
    options.hints = Hints::last;
  else if (hintsFlag == "random")
    options.hints = Hints::random;
  else if (hintsFlag != "unknown")
    return reject(hintsFlag, "unknown, last or random", message);
  if (options.hints != Hints::unknown &&
      options.arrivals == Arrivals::interleaved) {
    message = "--hints needs the begin of a backward pass, and "
              "--arrivals=interleaved has none: the first gradient of a "
              "backward pass opens it; leave out --hints";
    return failure();
  }

  static constexpr std::pair<llvm::StringLiteral, UnitUses> kUses[] = {
      {"listed", UnitUses::listed},
      {"reversed", UnitUses::reversed},
      {"random", UnitUses::random},
      {"repeated", UnitUses::repeated}};
  const auto *uses = llvm::find_if(
      kUses, [](const auto &use) { return use.first == unitUsesFlag; });
  if (uses == std::end(kUses))
    return reject(unitUsesFlag, "listed, reversed, random or repeated",
                  message);
  options.unitUses = uses->second;
  if (options.unitUses != UnitUses::listed &&
      (options.arrivals == Arrivals::interleaved ||
       options.lower.unitOrder.getValue() == "declared")) {
    message = "--unit-uses=" + unitUsesFlag +
              " needs units in any order, and " +
              (options.arrivals == Arrivals::interleaved
                   ? "--arrivals=interleaved uses none"
                   : "--unit-order=declared declares one") +
              "; leave out one of them";
    return failure();
  }
  options.measures = measureFlag;
  options.leavesOut = absentFlag;
  if (againstFlag == "none")
    options.against = Against::none;
  else if (againstFlag == "typed")
    options.against = Against::typed;
  else if (StringRef(againstFlag).ends_with(".mlir"))
    options.written = againstFlag;
  else if (againstFlag != "logical")
    return reject(againstFlag,
                  "logical, typed, none or the name of a file that ends in "
                  ".mlir",
                  message);
  if (!options.written.empty() && options.engine == EngineKind::compiled) {
    message = "--against=" + options.written +
              " needs --engine=interpreter: zero-run compiles only what it "
              "lowers";
    return failure();
  }

  int64_t elements = 0;
  if (elementsFlag == "all")
    options.elements = 0;
  else if (!StringRef(elementsFlag).getAsInteger(10, elements) && elements >= 1)
    options.elements = elements;
  else if (elementsFlag != "auto")
    return reject(elementsFlag, "auto, all or a number of at least 1", message);
  if (elements > 0 && options.against != Against::logical) {
    message = "--elements=" + elementsFlag +
              " needs --against=logical: only the logical step can compute "
              "single elements";
    return failure();
  }

  if (StringRef(gradientsFlag).ends_with(".safetensors"))
    options.gradientFile = gradientsFlag;
  else if (gradientsFlag == "exact")
    options.gradients = GradientKind::exact;
  else if (gradientsFlag != "random")
    return reject(gradientsFlag,
                  "random, exact or the name of a file that ends in "
                  ".safetensors",
                  message);

  if (options.engine == EngineKind::compiled &&
      options.lower.until != "scheduled") {
    message = "--until=" + options.lower.until.getValue() +
              " needs --engine=interpreter: only a scheduled step has code";
    return failure();
  }
  if (ordersFlag.getNumOccurrences()) {
    if (failed(readNumber(ordersFlag, 1, kMaxOrders, options.orders, message)))
      return failure();
    if (options.engine != EngineKind::interpreter ||
        options.lower.until != "scheduled") {
      message = "--orders=" + ordersFlag +
                " needs --engine=interpreter and --until=scheduled: only there "
                "is the order of streams chosen";
      return failure();
    }
  }
  if (deviceFlag != "host" && failed(parseGpus(deviceFlag, options.gpus)))
    return reject(deviceFlag, "host, cuda or cuda:N,..., such as cuda:0,1",
                  message);
  if (!options.gpus.empty() && options.engine != EngineKind::compiled) {
    message = "--device=" + deviceFlag +
              " needs --engine=compiled: the interpreter uses no GPU";
    return failure();
  }
  options.cpu = cpuFlag;
  return checkCpuName(options.cpu, message);
}

StringRef RunOptions::getAgainstName() const {
  if (against == Against::none)
    return "";
  return against == Against::typed ? "typed" : "logical";
}

StringRef RunOptions::getReferenceName() const {
  return against == Against::typed
             ? "the interpreter at the scheduled phase, bit for bit"
             : "the logical step in f64, within its rounding bound";
}

LogicalResult zero::parseOptions(Tool &tool, RunOptions &options) {
  // The registry of options keeps them.
  static LowerSettings settings;
  static LowerFlags flags(settings, category);
  static StepFlag stepFlag(category);
  bool isParsed = tool.parse(category, kOverview, jsonFlag);
  options.json = jsonFlag;
  options.input = inputFlag;
  options.step = stepFlag;
  if (!isParsed)
    return failure();
  std::string message;
  if (succeeded(settings.get(options.lower, message)) &&
      succeeded(readNumbers(options, message)) &&
      succeeded(readChoices(options, message)) &&
      succeeded(readCompiled(options, message)) &&
      succeeded(readCheckpoints(options, message))) {
    options.settings = settings;
    options.settings.mesh.text = options.lower.mesh.getValue();
    return success();
  }
  tool.errors.add(ExitCode::usage, message);
  return failure();
}
