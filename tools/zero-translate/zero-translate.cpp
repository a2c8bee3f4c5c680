//===- zero-translate.cpp - Writes a step from other descriptions ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"
#include "tools/driver/Tool.h"
#include "tools/recipe/Recipe.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using zero::ExitCode;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-translate options");
static cl::opt<std::string>
    parameters("parameters", cl::cat(category), cl::value_desc("file.json"),
               cl::desc("List of parameters (-: stdin)"));
static cl::opt<std::string> recipeText("recipe", cl::cat(category),
                                       cl::desc(zero::describeRecipes()));
static cl::opt<std::string>
    meshText("mesh", cl::init("dp=1"), cl::cat(category),
             cl::value_desc("dp=4"),
             cl::desc("Data-parallel axes and their sizes, such as dp=4 "
                      "(default dp=1)\nor node=2,dp=8"));
static cl::opt<std::string> name("name", cl::init("train"), cl::cat(category),
                                 cl::desc("Name of the step (default train)"));
static cl::opt<std::string> output("o", cl::init("-"), cl::cat(category),
                                   cl::value_desc("file"),
                                   cl::desc("Output (default: stdout)"));
static cl::opt<bool> jsonFlag("json", cl::cat(category), cl::ValueDisallowed,
                              cl::desc("Print errors as one JSON object"));

/// Reads "node=2,dp=8".
static LogicalResult readMesh(zero::MeshAxes &mesh, std::string &message) {
  SmallVector<StringRef> axes;
  StringRef(meshText).split(axes, ',');
  for (StringRef axis : axes) {
    auto [axisName, size] = axis.split('=');
    int64_t number = 0;
    bool isName = !axisName.empty() && llvm::isAlpha(axisName[0]) &&
                  llvm::all_of(axisName, [](char c) {
                    return llvm::isAlnum(c) || c == '_';
                  });
    if (!isName || size.getAsInteger(10, number) || number < 1 ||
        llvm::any_of(
            mesh, [&, axisName = axisName](
                      const auto &other) { return other.first == axisName; })) {
      message = "--mesh must be AXIS=SIZE,... with different axes, such as "
                "dp=4, got '" +
                meshText + "'";
      return failure();
    }
    mesh.push_back({axisName.str(), number});
  }
  return success();
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-translate", argc, argv);
  if (!tool.parse(category,
                  "zero-translate: writes the step of a list of parameters\n\n"
                  "  zero-translate --parameters=model.json "
                  "--recipe=adamw,max_norm=1,wd=0.1 --mesh=dp=4 -o step.mlir\n"
                  "\nmodel.json: {\"parameters\": [{\"name\": \"fc.weight\", "
                  "\"shape\": [64, 48], \"dtype\": \"f32\"}, ...]}\n"
                  "A parameter may have \"gradient\" (dtype), \"group\", "
                  "\"optional\", \"frozen\" and \"uses\".\n\"groups\" gives "
                  "groups hyperparameters: {\"decay\": {\"wd\": 0.1}}\n",
                  jsonFlag))
    return tool.finish();
  for (auto *option : {&parameters, &recipeText})
    if (option->empty())
      return tool.fail(ExitCode::usage,
                       "--" + option->ArgStr + " is missing; --help shows it");
  std::string message;
  zero::Recipe recipe;
  zero::MeshAxes mesh;
  if (failed(zero::readRecipe(recipeText, recipe, message)) ||
      failed(readMesh(mesh, message)))
    return tool.fail(ExitCode::usage, message);
  std::unique_ptr<llvm::MemoryBuffer> file =
      zero::openInput("zero-translate", parameters, message);
  if (!file)
    return tool.fail(ExitCode::environment, message);
  zero::ParameterList list;
  std::string text;
  if (failed(zero::readParameterList(
          file->getBuffer(), zero::describeInput(parameters), list, message)) ||
      failed(zero::writeStep(recipe, list, mesh, name, text, message)))
    return tool.fail(ExitCode::failed, message);
  // What the verifier says of the step it says here.
  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  MLIRContext context(registry);
  auto sources = std::make_shared<llvm::SourceMgr>();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    tool.errors.add(diagnostic, *sources);
    return success();
  });
  context.printOpOnDiagnostic(false);
  sources->AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, "<the step that was written>"),
      llvm::SMLoc());
  if (!parseSourceFile<ModuleOp>(sources, &context))
    return tool.finish();
  if (jsonFlag && output == "-")
    return tool.finish(llvm::json::Object{{"step", text}});
  std::unique_ptr<llvm::ToolOutputFile> out = openOutputFile(output, &message);
  if (!out)
    return tool.fail(ExitCode::environment, message);
  out->os() << text;
  out->keep();
  return tool.finish(llvm::json::Object{{"file", output.getValue()}});
}
