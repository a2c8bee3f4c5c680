//===- zero-translate.cpp - Writes a step from other descriptions ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"
#include "tools/driver/Tool.h"
#include "tools/import/ImportFlags.h"
#include "tools/import/Keys.h"
#include "tools/import/Lint.h"
#include "tools/recipe/RecipeFlags.h"

#include "codegen/library/WriteFile.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using zero::ExitCode;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-translate options");
static zero::OptionText mesh{"mesh", "dp=1"};
static zero::TextFlag
    meshFlag(mesh, category, "dp=4",
             "Data-parallel axes and their sizes, such as dp=4 "
             "(default dp=1)\nor node=2:dp=8");
static cl::opt<std::string> name("name", cl::init("train"), cl::cat(category),
                                 cl::desc("Name of the step (default train)"));
static cl::opt<std::string> output("o", cl::init("-"), cl::cat(category),
                                   cl::value_desc("file"),
                                   cl::desc("Output (default: stdout)"));
static cl::opt<std::string>
    lintFlag("lint-deepspeed", cl::cat(category),
             cl::value_desc("ds_config.json"),
             cl::desc("Print what a configuration of DeepSpeed really does, "
                      "and what\nis wrong with it; exit code 1 for an error"));
static cl::opt<bool>
    keysFlag("deepspeed-keys", cl::cat(category), cl::ValueDisallowed,
             cl::desc("Print what becomes of each key of DeepSpeed's "
                      "configuration"));
static cl::opt<bool> jsonFlag("json", cl::cat(category), cl::ValueDisallowed,
                              cl::desc("Print errors as one JSON object"));

/// What an import leaves to zero-compile and to the caller.
static llvm::json::Object describeImport(const zero::ImportedStep &step) {
  llvm::json::Object options;
  for (const auto &[option, value] : step.getOptions())
    options[option] = value;
  llvm::json::Object result{{"options", std::move(options)},
                            {"parameters", step.numParameters},
                            {"elements", step.numElements}};
  if (step.config.accumulation)
    result["accumulation"] = *step.config.accumulation;
  return result;
}

/// Whether the verifier accepts the step |text|. Adds its errors to |errors|.
static bool verifies(llvm::MemoryBufferRef text, zero::Errors &errors) {
  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  MLIRContext context(registry);
  zero::LoadedStep loaded(context, llvm::MemoryBuffer::getMemBuffer(text),
                          /*name=*/"", "written", errors);
  return static_cast<bool>(loaded.getModule());
}

/// Prints the findings in the configuration of --lint-deepspeed.
static int lint(zero::Tool &tool, const zero::ImportRequest &request) {
  std::optional<llvm::json::Value> root = zero::readConfigFile(
      request.tool, request.config, request.changes, tool.errors);
  if (!root)
    return tool.finish();
  zero::ImportedStep step;
  std::vector<zero::Finding> findings =
      zero::lintConfig(request, *root->getAsObject(), step, tool.errors);
  if (step.text)
    verifies(step.text->getMemBufferRef(), tool.errors);
  bool isWrong = llvm::any_of(findings, [](const zero::Finding &finding) {
    return finding.severity == zero::Severity::error;
  });
  if (!jsonFlag)
    zero::printFindings(findings, zero::describeInput(lintFlag), llvm::outs());
  int code = tool.finish(
      llvm::json::Object{{"findings", zero::listFindings(findings)}});
  return code == 0 && isWrong ? static_cast<int>(ExitCode::failed) : code;
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-translate", argc, argv);
  zero::RecipeFlags flags(category);
  zero::ImportFlags imports(category);
  std::string overview =
      ("zero-translate: writes the step of a list of parameters, or of a "
       "configuration\n\n"
       "  zero-translate --parameters=model.json "
       "--recipe=adamw,max_norm=1,wd=0.1 --mesh=dp=4 -o step.mlir\n"
       "  zero-translate --import-deepspeed=ds_config.json "
       "--model=model.json --mesh=dp=4 -o step.mlir\n\n" +
       zero::describeParameterLists())
          .str();
  if (!tool.parse(category, overview, jsonFlag))
    return tool.finish();
  if (keysFlag) {
    llvm::outs() << (jsonFlag ? zero::listConfigKeys()
                              : zero::describeConfigKeys());
    return 0;
  }
  std::string message;
  FailureOr<zero::MeshAxes> axes = zero::readMesh(mesh, message);
  if (failed(axes))
    return tool.fail(ExitCode::usage, message);
  std::optional<zero::MeshAxes> given;
  if (mesh.isGiven)
    given = *axes;
  if (lintFlag.getNumOccurrences() > 0) {
    if (!flags.isGiven() && !imports.isGiven())
      return lint(tool, imports.getRequest("zero-translate", lintFlag,
                                           std::move(given), name));
    return tool.fail(ExitCode::usage,
                     "--lint-deepspeed writes no step; leave out "
                     "--import-deepspeed, --parameters and --recipe");
  }
  if (flags.isGiven() && imports.isGiven())
    return tool.fail(ExitCode::usage,
                     "--parameters and --recipe describe the step, and so does "
                     "--import-deepspeed; leave out one of them");
  std::unique_ptr<llvm::MemoryBuffer> written;
  zero::ImportedStep imported;
  if (imports.isGiven()) {
    if (failed(imports.import("zero-translate", given, name, imported,
                              tool.errors)))
      return tool.finish();
    written = std::move(imported.text);
  } else {
    ExitCode code = ExitCode::usage;
    if (succeeded(imports.checkNone(message)))
      written = flags.write("zero-translate", *axes, name, code, message);
    if (!written)
      return tool.fail(code, message);
  }
  StringRef text = written->getBuffer();
  if (!verifies(written->getMemBufferRef(), tool.errors))
    return tool.finish();
  llvm::json::Object result;
  if (imports.isGiven())
    result = describeImport(imported);
  if (jsonFlag && output == "-") {
    result["step"] = text;
    return tool.finish(std::move(result));
  }
  if (output == "-")
    llvm::outs() << text;
  else if (failed(zero::writeFile(output, text, message)))
    return tool.fail(ExitCode::environment, message);
  result["file"] = output.getValue();
  return tool.finish(std::move(result));
}
