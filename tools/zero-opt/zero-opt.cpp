//===- zero-opt.cpp - MLIR's opt driver with the zero dialects ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProveEachPass.h"
#include "tools/driver/Driver.h"
#include "tools/driver/Tool.h"
#include "tools/zero-opt/Plugins.h"

#include "mlir/Debug/CLOptionsSetup.h"
#include "mlir/Debug/Counter.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

#include <map>

using namespace mlir;
using zero::ExitCode;
namespace cl = llvm::cl;

static cl::opt<bool>
    proveEach("prove-each",
              cl::desc("Prove after each pass that the step equals the "
                       "step before the first pass, if that step can be "
                       "proved"));

static const char *const kName = "zero-opt";

static int fail(ExitCode code, const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), kName) << message << "\n";
  return static_cast<int>(code);
}

/// Options that --help shows; --help-hidden has MLIR's and LLVM's others.
static constexpr StringRef kShown[] = {"o",
                                       "pass-pipeline",
                                       "prove-each",
                                       "load-pass-plugin",
                                       "help-hidden",
                                       "split-input-file",
                                       "verify-diagnostics",
                                       "help",
                                       "verify-each",
                                       "mlir-print-ir-after-all",
                                       "version",
                                       "mlir-print-ir-after-change"};

/// Our passes and pipelines, with what they do, for the top of --help. Hides
/// the options that are not shown, MLIR's list of all passes among them.
static std::string arrangeHelp() {
  std::map<StringRef, StringRef> ours;
  for (auto &entry : cl::getRegisteredOptions()) {
    StringRef name = entry.getKey();
    const PassRegistryEntry *pass = PassInfo::lookup(name);
    if (!pass)
      pass = PassPipelineInfo::lookup(name);
    if (pass && name.starts_with("zero-"))
      ours[name] = pass->getPassDescription();
    if (!llvm::is_contained(kShown, name) &&
        entry.second->getOptionHiddenFlag() == cl::NotHidden)
      entry.second->setHiddenFlag(cl::Hidden);
  }
  std::string text =
      "zero-opt: runs passes on the update of a training step\n\n"
      "  zero-opt step.mlir --zero-lower=\"mesh=dp=4 stage=2 "
      "until=sharded\"\n\n"
      "Passes and pipelines of the zero dialects:\n";
  llvm::raw_string_ostream os(text);
  for (auto [name, description] : ours)
    os << "  --" << llvm::left_justify(name, 28) << " " << description << "\n";
  os << "\n--help-hidden shows the options of these passes, MLIR's own passes "
        "and all other\noptions.\n";
  return text;
}

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<input file>"),
                                      cl::init("-"));
static cl::opt<std::string> outputFile("o", cl::desc("Output file, or stdout"),
                                       cl::value_desc("filename"),
                                       cl::init("-"));

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  zero::initProcess(kName);
  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  registerTransformsPasses();
  zero::registerZeroPasses();
  // As registerAndParseCLIOptions, which exits with another code.
  MlirOptMainConfig::registerCLOptions(registry);
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  tracing::DebugCounter::registerCLOptions();
  if (std::string missing = zero::findMissingPlugin(argc, argv);
      !missing.empty())
    return fail(ExitCode::usage, missing);
  zero::parseAllOptions(kName, argc, argv, arrangeHelp());
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects())
    return asMainReturnCode(
        MlirOptMain(argc, argv, inputFile, outputFile, registry));

  zero::ProveEachPass::Result result;
  MlirOptMainConfig proving = config;
  proving.setPassPipelineSetupFn([&](PassManager &pm) {
    if (proveEach)
      pm.addInstrumentation(
          std::make_unique<zero::ProveEachPass>(nullptr, result));
    return config.setupPassPipeline(pm);
  });
  std::string message;
  auto input = zero::openInput(kName, inputFile, message);
  if (!input)
    return fail(ExitCode::environment, message);
  auto output = openOutputFile(outputFile, &message);
  if (!output)
    return fail(ExitCode::environment, message);
  auto sources = std::make_shared<llvm::SourceMgr>();
  llvm::MemoryBufferRef text = *input;
  sources->AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  // With this option, diagnostics are for MLIR to compare.
  if (!config.shouldVerifyDiagnostics())
    zero::registerDiagnostics(registry, sources);
  if (failed(MlirOptMain(output->os(), llvm::MemoryBuffer::getMemBuffer(text),
                         registry, proving)) ||
      !result.broken.empty())
    return static_cast<int>(ExitCode::failed);
  output->os().flush();
  if (std::error_code error = output->os().error();
      error && outputFile != "-") {
    output->os().clear_error();
    return fail(ExitCode::environment,
                "cannot write '" + outputFile + "': " + error.message());
  }
  // Keeps the file, which is removed otherwise.
  output->keep();
  return 0;
}
