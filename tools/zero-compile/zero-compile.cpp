//===- zero-compile.cpp - Compiles a step ahead of time -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/Compilation.h"
#include "tools/driver/Tool.h"
#include "tools/import/StepSource.h"
#include "tools/plan/PlanTable.h"
#include "tools/zero-compile/WriteStep.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"

#include <chrono>

using namespace mlir;
using zero::ExitCode;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-compile options");

static cl::opt<std::string>
    output("o", cl::value_desc("folder"), cl::init("."), cl::cat(category),
           cl::desc("Folder of libNAME.so, NAME.h and NAME.plan.json"));
enum class Emit { mlir, llvmIR, ptx, object, library };
static cl::opt<std::string>
    emitFlag("emit", cl::init("lib"), cl::cat(category),
             cl::value_desc("lib|obj|llvm|mlir|ptx"),
             cl::desc("Output: lib: libNAME.so, header and plan "
                      "(default);\nobj: NAME.o, header and plan. On "
                      "stdout: llvm: LLVM IR;\nmlir: IR after --until; "
                      "ptx: PTX, which needs --target=cuda"));
static cl::opt<bool> printPlan("print-plan", cl::cat(category),
                               cl::desc("Print the plan as a table"));
static cl::opt<bool>
    noProve("no-prove", cl::cat(category),
            cl::desc("Skip the proof that the library does what the "
                     "step declares"));
static cl::opt<bool>
    jsonFlag("json", cl::cat(category), cl::ValueDisallowed,
             cl::desc("Print the result, or the errors, as one JSON "
                      "object"));

namespace {
/// The flags that clients give as JSON.
struct CompileFlags {
  explicit CompileFlags(zero::CompileSettings &settings)
      : lower(settings, category),
        name(settings.name, category, "",
             "NAME of the files, and prefix in the header (default: the name "
             "of\nthe step)"),
        cpu(settings.cpu, category, "",
            "CPU of the code: x86-64-v3 (default), x86-64-v4 or native. "
            "The\nlibrary checks the CPU when it is loaded"),
        target(settings.target, category, "cpu|cuda[:sm_90,...]",
               "Target of the kernels (default cpu). cuda adds PTX, which "
               "the\ndriver compiles for any GPU from sm_80 on. Names such as "
               "sm_90\nadd machine code for these GPUs, which needs ptxas"),
        maxBytes(settings.maxBytes, category, "80GiB",
                 "Memory of a device. A step that needs more on a rank is an "
                 "error"),
        cache(settings.cache, category, "folder",
              "Folder of steps that have been compiled before. A step that "
              "is\nthere is not compiled again; of several processes one "
              "compiles it") {}

  zero::LowerFlags lower;
  zero::TextFlag name, cpu, target, maxBytes, cache;
};
} // namespace

static std::optional<Emit> parseEmit(llvm::StringRef text) {
  return llvm::StringSwitch<std::optional<Emit>>(text)
      .Case("lib", Emit::library)
      .Case("obj", Emit::object)
      .Case("llvm", Emit::llvmIR)
      .Case("mlir", Emit::mlir)
      .Case("ptx", Emit::ptx)
      .Default(std::nullopt);
}

namespace {
/// What the command line asks for.
struct Wanted {
  zero::LowerOptions lower;
  zero::CompileOptions compile;
  Emit emit = Emit::library;
};
} // namespace

static LogicalResult readOptions(const zero::CompileSettings &settings,
                                 Wanted &wanted, std::string &message) {
  std::optional<Emit> emit = parseEmit(emitFlag);
  if (!emit) {
    message =
        "--emit must be lib, obj, llvm, mlir or ptx, got '" + emitFlag + "'";
    return failure();
  }
  wanted.emit = *emit;
  if (failed(settings.get(wanted.lower, wanted.compile, message)))
    return failure();
  if (emit != Emit::library && settings.cache.isGiven) {
    message = "--cache has libraries, and --emit=" + emitFlag +
              " makes none; leave out one of them";
    return failure();
  }
  if (emit == Emit::ptx && !wanted.compile.cuda) {
    message = "--emit=ptx needs --target=cuda";
    return failure();
  }
  if (emit == Emit::ptx)
    wanted.compile.cuda->archs.clear(); // of the same PTX
  if (emit == Emit::llvmIR)
    wanted.compile.target.output = zero::CpuOutput::llvmIR;
  if (emit == Emit::mlir || wanted.lower.until == "scheduled")
    return success();
  message = "--until=" + wanted.lower.until.getValue() +
            " needs --emit=mlir: only a scheduled step has code";
  return failure();
}

/// Prints what was written, as words or as JSON.
static int finish(zero::Tool &tool, StringRef name,
                  const zero::WrittenStep &written, double seconds,
                  std::optional<bool> isCached = {}) {
  if (jsonFlag) {
    llvm::json::Object done{{"name", name},
                            {"files", llvm::json::Array(written.files)},
                            {"seconds", seconds}};
    if (isCached)
      done["cached"] = *isCached;
    if (printPlan)
      if (auto plan = llvm::json::parse(written.plan))
        done["plan"] = std::move(*plan);
    return tool.finish(std::move(done));
  }
  for (const std::string &file : written.files)
    llvm::outs() << file << "\n";
  if (printPlan) {
    llvm::outs() << "\n";
    zero::printPlanTable(written.plan, llvm::outs());
  }
  return tool.finish();
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-compile", argc, argv);
  zero::CompileSettings settings;
  CompileFlags flags(settings);
  zero::StepFlag stepFlag(category);
  zero::AgainstFlag against(category);
  zero::StepSource source("zero-compile", category);
  if (!tool.parse(
          category,
          "zero-compile: compiles the update of a training step to a shared "
          "library\n\n"
          "  zero-compile step.mlir -o out --mesh=dp=4 --stage=2\n"
          "  zero-compile lowered.mlir -o out --against=step.mlir   a step at "
          "any other phase,\n"
          "                                                         which is "
          "proved to equal step.mlir\n"
          "  zero-compile --parameters=model.json --recipe=adamw,max_norm=1 "
          "-o out --mesh=dp=4\n"
          "                                                         the step "
          "that zero-translate writes\n"
          "  zero-compile --import-deepspeed=ds_config.json "
          "--model=model.json -o out --mesh=dp=4\n"
          "                                                         the step "
          "of a configuration,\n"
          "                                                         with its "
          "stage, offload and buckets\n\n"
          "writes out/libNAME.so, out/NAME.h and out/NAME.plan.json, where "
          "NAME is the name of\nthe zero.step.\n",
          jsonFlag))
    return tool.finish();

  auto start = std::chrono::steady_clock::now();
  settings.step.text = stepFlag;
  settings.isProved = !noProve;
  std::string message;
  Wanted wanted;
  if (failed(source.import(settings, settings.getRecipeName(), tool.errors)))
    return tool.finish();
  if (failed(readOptions(settings, wanted, message)))
    return tool.fail(ExitCode::usage, message);
  ExitCode code;
  std::unique_ptr<llvm::MemoryBuffer> text =
      source.open(settings, settings.getRecipeName(), code, message);
  if (!text)
    return tool.fail(code, message);
  std::unique_ptr<llvm::MemoryBuffer> reference;
  if (against.getNumOccurrences() > 0) {
    reference = zero::openInput("zero-compile", against, message);
    if (!reference)
      return tool.fail(ExitCode::environment, message);
  }
  auto getSeconds = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  if (!settings.cache.text.empty()) {
    zero::CompileOutput compiled;
    if (failed(zero::compileStepText(settings, std::move(text),
                                     std::move(reference), compiled,
                                     tool.errors)))
      return tool.finish();
    FailureOr<zero::WrittenStep> files =
        zero::writeOutput(compiled, output, message);
    if (failed(files))
      return tool.fail(ExitCode::environment, message);
    return finish(tool, compiled.name, *files, getSeconds(), compiled.isCached);
  }
  zero::Compilation compilation(settings, tool.errors);
  if (failed(compilation.load(std::move(text), std::move(reference))) ||
      failed(compilation.lower(wanted.lower)))
    return tool.finish();
  if (wanted.emit == Emit::mlir) {
    if (failed(compilation.finishProof()))
      return tool.finish();
    compilation.getModule().print(llvm::outs());
    llvm::outs() << "\n";
    return 0;
  }
  FailureOr<zero::CompiledStep> step = compilation.compile(wanted.compile);
  if (failed(step))
    return tool.finish();
  if (wanted.emit == Emit::llvmIR || wanted.emit == Emit::ptx) {
    if (failed(compilation.finishProof()))
      return tool.finish();
    llvm::outs() << (wanted.emit == Emit::ptx ? step->cuda->ptx : step->code);
    return 0;
  }
  FailureOr<zero::WrittenStep> files = zero::writeStep(
      *step, output, wanted.emit == Emit::library,
      [&] { return compilation.finishProof(); }, code, message);
  if (failed(files))
    return message.empty() ? tool.finish() : tool.fail(code, message);
  return finish(tool, step->name, *files, getSeconds());
}
