//===- Validate.cpp - Is a library the program it was made from? ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/Validate.h"

#include "codegen/cpu/EmitObject.h"
#include "codegen/host/InputFlow.h"
#include "codegen/validate/Child.h"
#include "codegen/validate/LibraryCalls.h"
#include "codegen/validate/LibraryTables.h"
#include "codegen/validate/ProgramTables.h"
#include "codegen/validate/RunKernels.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"

#include <dlfcn.h>

using namespace mlir;
using namespace zero;

llvm::json::Object Validation::toJson() const {
  return llvm::json::Object{{"tables", tables},
                            {"kernels", kernels},
                            {"scalar_programs", scalarPrograms},
                            {"inputs_each", inputs},
                            {"not_validated", llvm::json::Array(skipped)}};
}

using Lines = std::vector<std::string>;

/// The first line of |library| that is not the line of |program|.
static std::string findDifference(const Lines &library, const Lines &program) {
  size_t i = 0;
  while (i < library.size() && i < program.size() && library[i] == program[i])
    ++i;
  if (i == library.size() && i == program.size())
    return "";
  auto at = [&](const Lines &lines) {
    return i < lines.size() ? "'" + lines[i] + "'" : std::string("the end");
  };
  return "has " + at(library) + ", expected " + at(program);
}

/// Whether this machine has all features of the CPU named |cpu|.
static bool canRun(StringRef cpu) {
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  SmallVector<StringRef> features;
  std::string list = cpuFeatureList(cpu);
  StringRef(list).split(features, ',', -1, /*KeepEmpty=*/false);
  return llvm::all_of(features, [&](StringRef f) { return host.lookup(f); });
}

namespace {
/// One validation. Whatever needs no library is prepared before the fork.
class Validator {
public:
  Validator(ArrayRef<StageProgram> stages, const ValidateOptions &options);

  std::string compare(const char *path);
  Validation describe() const;

private:
  std::string compareStages(const zero_rt_library &first);

  ArrayRef<StageProgram> stages;
  const ValidateOptions &options;
  ExpectedLibrary expected;
  std::vector<Lines> lines; // by stage
  Bodies bodies;            // all stages have the same
  int64_t tuples;
};
} // namespace

/// Many kernels have fewer inputs each, so that the time has a bound.
static int64_t chooseTuples(const Bodies &bodies) {
  int64_t count = bodies.getNumKernels() + bodies.getNumScalars();
  return std::clamp<int64_t>(32768 / std::max<int64_t>(count, 1), 64, 4096);
}

Validator::Validator(ArrayRef<StageProgram> stages,
                     const ValidateOptions &options)
    : stages(stages), options(options), bodies(stages.front().program),
      tuples(chooseTuples(bodies)) {
  expected.cpuFeatures = cpuFeatureList(options.cpu);
  expected.hasGpuCode = options.hasGpuCode;
  if (stages.size() > 1)
    for (const AxisCoordinate &c : stages.front().coordinates)
      expected.stageAxes.push_back(c.axis);
  for (const StageProgram &stage : stages) {
    SmallVector<zero_rt_input_check> checks =
        findInputFlow(stage.program).checks;
    expected.inputChecks.resize(checks.size(), ZERO_RT_INPUT_FREE);
    for (auto [all, one] : llvm::zip_equal(expected.inputChecks, checks))
      all = std::max(all, one);
  }
  for (const StageProgram &stage : stages) {
    expected.hasShapes = lines.empty();
    lines.push_back(describeProgram(stage.program, expected));
  }
}

std::string Validator::compareStages(const zero_rt_library &first) {
  int64_t count = stages.size() > 1 ? stages.size() : 0;
  if (first.num_stages != count)
    return llvm::formatv("has {0} stages, expected {1}", first.num_stages,
                         count);
  int64_t axes = 0;
  for (int64_t a = 0; a < first.num_axes; ++a)
    for (StringAttr axis : expected.stageAxes)
      if (axis == StringRef(first.strings + first.axes[a].name))
        axes |= int64_t(1) << a;
  if (first.stage_axes != axes)
    return llvm::formatv("has stages over axes of bits {0}, expected {1}",
                         first.stage_axes, axes);
  for (size_t i = 0; i < stages.size(); ++i) {
    const zero_rt_library &library = count ? *first.stages[i] : first;
    std::string stage = count ? llvm::formatv("stage {0} ", i).str() : "";
    if (library.plan_hash != first.plan_hash)
      return stage + "has another plan hash than the first stage";
    std::string text = findDifference(describeLibrary(library), lines[i]);
    // Each stage has pointers of its own to the kernels.
    if (text.empty())
      text = bodies.run(library, tuples);
    if (!text.empty())
      return stage + text;
  }
  return "";
}

std::string Validator::compare(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return std::string("cannot be loaded: ") + dlerror();
  auto *library = static_cast<const zero_rt_library *const *>(
      dlsym(handle, ZERO_RT_LIBRARY_SYMBOL));
  if (!library || !*library)
    return "exports no " ZERO_RT_LIBRARY_SYMBOL;
  return compareStages(**library);
}

Validation Validator::describe() const {
  Validation validation;
  validation.tables = true;
  validation.kernels = bodies.getNumKernels();
  validation.scalarPrograms = bodies.getNumScalars();
  validation.inputs = tuples;
  llvm::append_range(validation.skipped, bodies.getUnknown());
  if (options.hasGpuCode)
    validation.skipped.push_back("GPU code: no GPU runs it here");
  return validation;
}

LogicalResult zero::validateLibrary(StringRef path,
                                    ArrayRef<StageProgram> stages,
                                    const ValidateOptions &options,
                                    Validation &validation,
                                    std::string &message) {
  validation = {};
  if (!canRun(options.cpu)) {
    validation.skipped = {"this machine cannot run code for " + options.cpu};
    return success();
  }
  Validator validator(stages, options);
  // A name without a slash is searched for elsewhere.
  std::string file = path.contains('/') ? path.str() : "./" + path.str();
  std::string text;
  LogicalResult ran =
      runInChild([&] { return validator.compare(file.c_str()); },
                 std::chrono::milliseconds(options.limitMilliseconds), text);
  if (succeeded(ran) && text.empty()) {
    validation = validator.describe();
    return success();
  }
  message = "library '" + path.str() +
            "' is not the program that was compiled: " + text +
            "; this is an error of the compiler, not of the step";
  return failure();
}
