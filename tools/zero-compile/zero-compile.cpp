//===- zero-compile.cpp - Compiles a step ahead of time -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Lower.h"
#include "codegen/library/Compile.h"
#include "passes/pipeline/Pipelines.h"
#include "tools/driver/Driver.h"
#include "tools/driver/Tool.h"
#include "tools/recipe/RecipeFlags.h"
#include "tools/zero-compile/PlanTable.h"
#include "tools/zero-compile/WriteStep.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"

#include <chrono>

using namespace mlir;
using zero::ExitCode;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-compile options");

static cl::opt<std::string> input(cl::Positional, cl::desc("<step.mlir>"),
                                  cl::init("-"), cl::cat(category));
static cl::opt<std::string>
    output("o", cl::value_desc("folder"), cl::init("."), cl::cat(category),
           cl::desc("Folder of libNAME.so, NAME.h and NAME.plan.json"));
static cl::opt<std::string>
    name("name", cl::cat(category),
         cl::desc("NAME of the files, and prefix in the header "
                  "(default: the name of\nthe step)"));
enum class Emit { mlir, llvmIR, ptx, object, library };
static cl::opt<std::string>
    emitFlag("emit", cl::init("lib"), cl::cat(category),
             cl::value_desc("lib|obj|llvm|mlir|ptx"),
             cl::desc("Output: lib: libNAME.so, header and plan "
                      "(default);\nobj: NAME.o, header and plan. On "
                      "stdout: llvm: LLVM IR;\nmlir: IR after --until; "
                      "ptx: PTX, which needs --target=cuda"));
static cl::opt<std::string>
    cpu("cpu", cl::init("x86-64-v3"), cl::cat(category),
        cl::desc("CPU of the code: x86-64-v3 (default), x86-64-v4 "
                 "or native. The\nlibrary checks the CPU when it is "
                 "loaded"));
static cl::opt<std::string>
    target("target", cl::init("cpu"), cl::cat(category),
           cl::value_desc("cpu|cuda[:sm_90,...]"),
           cl::desc("Target of the kernels (default cpu). cuda adds "
                    "PTX, which the\ndriver compiles for any GPU from "
                    "sm_80 on. Names such as sm_90\nadd machine code "
                    "for these GPUs, which needs ptxas"));
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

/// What --target says of CUDA; none for a CPU.
static LogicalResult getCudaTarget(std::optional<zero::CudaTargetOptions> &cuda,
                                   std::string &message) {
  auto [kind, archs] = llvm::StringRef(target).split(':');
  if (kind == "cpu" && target == "cpu")
    return success();
  if (kind != "cuda") {
    message = "--target must be cpu or cuda[:sm_90,...], got '" + target + "'";
    return failure();
  }
  cuda.emplace();
  if (target == "cuda")
    return success();
  SmallVector<llvm::StringRef> list;
  archs.split(list, ',');
  for (llvm::StringRef arch : list) {
    if (failed(zero::checkCudaArch(arch, message))) {
      message = "--target: " + message;
      return failure();
    }
    if (llvm::is_contained(cuda->archs, arch)) {
      message = ("--target names " + arch + " twice").str();
      return failure();
    }
    cuda->archs.push_back(arch.str());
  }
  return success();
}

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
  std::optional<zero::CudaTargetOptions> cuda;
  Emit emit = Emit::library;
};
} // namespace

static LogicalResult readOptions(const zero::LowerFlags &flags, Wanted &wanted,
                                 std::string &message) {
  std::optional<Emit> emit = parseEmit(emitFlag);
  if (!emit) {
    message =
        "--emit must be lib, obj, llvm, mlir or ptx, got '" + emitFlag + "'";
    return failure();
  }
  wanted.emit = *emit;
  if (failed(zero::checkCpuName(cpu, message)) ||
      failed(flags.get(wanted.lower, message)) ||
      failed(getCudaTarget(wanted.cuda, message)))
    return failure();
  if (emit == Emit::ptx && !wanted.cuda) {
    message = "--emit=ptx needs --target=cuda";
    return failure();
  }
  if (emit == Emit::ptx)
    wanted.cuda->archs.clear(); // of the same PTX
  if (emit != Emit::mlir && wanted.lower.until != "scheduled") {
    message = "--until=" + wanted.lower.until.getValue() +
              " needs --emit=mlir: only a scheduled step has code";
    return failure();
  }
  return success(name.getNumOccurrences() == 0 ||
                 succeeded(zero::checkLibraryName(name, message)));
}

/// The step of |recipe| on the mesh of |flags|.
static std::unique_ptr<llvm::MemoryBuffer>
writeRecipe(const zero::RecipeFlags &recipe, const zero::LowerFlags &flags,
            ExitCode &code, std::string &message) {
  code = ExitCode::usage;
  if (input.getNumOccurrences() > 0) {
    message = "--parameters and --recipe describe the step, and '" + input +
              "' has one, too; leave out one of them";
    return nullptr;
  }
  FailureOr<zero::MeshAxes> mesh = flags.getMesh(message);
  if (failed(mesh))
    return nullptr;
  return recipe.write("zero-compile", *mesh,
                      name.empty() ? "train" : name.getValue(), code, message);
}

/// Checks that |module| can be lowered as |flags| say and be proved. A lowered
/// step needs a |reference|.
static LogicalResult checkSteps(ModuleOp module, ModuleOp reference,
                                StringRef file, const zero::LowerFlags &flags,
                                ExitCode &code, std::string &message) {
  code = ExitCode::usage;
  if (reference && noProve) {
    message = "--against names what the proof compares with, and --no-prove "
              "skips the proof; leave out one of them";
    return failure();
  }
  if (zero::isLogical(module))
    return flags.checkMesh(module, file, message);
  if (failed(
          flags.checkNone(reference != nullptr, file + " has none", message)))
    return failure();
  code = ExitCode::failed;
  if (reference || noProve)
    return success();
  message = ("step @" + zero::getStepName(module) + " of " + file +
             " is lowered, and is compiled only if it equals the step as "
             "written; name that with --against=step.mlir")
                .str();
  return failure();
}

/// Prints what was written, as words or as JSON.
static int finish(zero::Tool &tool, StringRef name,
                  const zero::WrittenStep &written, double seconds) {
  if (jsonFlag) {
    llvm::json::Object done{{"name", name},
                            {"files", llvm::json::Array(written.files)},
                            {"seconds", seconds}};
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
  zero::LowerFlags flags(category);
  zero::StepFlag stepFlag(category);
  zero::AgainstFlag against(category);
  zero::RecipeFlags recipe(category);
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
          "that zero-translate writes\n\n"
          "writes out/libNAME.so, out/NAME.h and out/NAME.plan.json, where "
          "NAME is the name of\nthe zero.step.\n",
          jsonFlag))
    return tool.finish();

  auto start = std::chrono::steady_clock::now();
  std::string message;
  Wanted wanted;
  if (failed(readOptions(flags, wanted, message)))
    return tool.fail(ExitCode::usage, message);

  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  zero::registerCodegenDialects(registry);
  MLIRContext context(registry);
  ExitCode code;
  std::string file = zero::describeInput(input).str();
  std::optional<zero::LoadedStep> loaded;
  if (recipe.isGiven()) {
    auto text = writeRecipe(recipe, flags, code, message);
    if (!text)
      return tool.fail(code, message);
    file = text->getBufferIdentifier().str();
    loaded.emplace(context, std::move(text), stepFlag, "compiled", tool.errors);
  } else {
    loaded.emplace(context, input, stepFlag, "compiled", tool.errors);
  }
  ModuleOp module = loaded->getModule();
  if (!module)
    return tool.finish();
  std::optional<zero::LoadedStep> written;
  ModuleOp reference;
  if (against.getNumOccurrences() > 0) {
    written.emplace(context, against, stepFlag, "compared", tool.errors);
    reference = written->getModule();
    if (!reference)
      return tool.finish();
  }
  if (failed(checkSteps(module, reference, file, flags, code, message)))
    return tool.fail(code, message);
  if (reference && failed(zero::checkReference(module, file, reference,
                                               zero::describeInput(against),
                                               flags, code, message)))
    return message.empty() ? tool.finish() : tool.fail(code, message);
  zero::ProofNote proof;
  if (noProve) {
    if (failed(zero::lower(module, wanted.lower)))
      return tool.finish();
  } else {
    FailureOr<zero::ProofSummary> summary =
        zero::lowerAndProve(module, wanted.lower, reference);
    if (failed(summary))
      return tool.finish();
    proof = {true, zero::getPreconditions(*summary)};
  }
  if (wanted.emit == Emit::mlir) {
    module.print(llvm::outs());
    llvm::outs() << "\n";
    return 0;
  }

  zero::CompileOptions compileOptions;
  compileOptions.name = name;
  compileOptions.target.cpu = cpu;
  compileOptions.cuda = std::move(wanted.cuda);
  compileOptions.proof = std::move(proof);
  if (wanted.emit == Emit::llvmIR)
    compileOptions.target.output = zero::CpuOutput::llvmIR;
  FailureOr<zero::CompiledStep> step =
      zero::compileStep(module, compileOptions);
  if (failed(step))
    return tool.finish();
  if (wanted.emit == Emit::llvmIR || wanted.emit == Emit::ptx) {
    llvm::outs() << (wanted.emit == Emit::ptx ? step->cuda->ptx : step->code);
    return 0;
  }
  FailureOr<zero::WrittenStep> files = zero::writeStep(
      *step, output, wanted.emit == Emit::library, code, message);
  if (failed(files))
    return tool.fail(code, message);
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return finish(tool, step->name, *files, seconds);
}
