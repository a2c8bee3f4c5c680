//===- StepSource.cpp - Where the step of a command line is ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/StepSource.h"

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

StepSource::StepSource(StringRef tool, cl::OptionCategory &category)
    : tool(tool), input(cl::Positional, cl::desc("<step.mlir>"), cl::init("-"),
                        cl::cat(category)),
      recipe(category), imports(category) {}

LogicalResult StepSource::import(LowerSettings &settings, StringRef name,
                                 Errors &errors) {
  std::string message;
  auto fail = [&] {
    errors.add(ExitCode::usage, message);
    return failure();
  };
  if (!imports.isGiven())
    return succeeded(imports.checkNone(message)) ? success() : fail();
  if (recipe.isGiven() || input.getNumOccurrences() > 0) {
    message = "--import-deepspeed describes the step, and so " +
              (recipe.isGiven() ? "do --parameters and --recipe"
                                : "does '" + input + "'") +
              "; leave out one of them";
    return fail();
  }
  std::optional<MeshAxes> mesh;
  if (settings.mesh.isGiven) {
    FailureOr<MeshAxes> axes = settings.getMesh(message);
    if (failed(axes))
      return fail();
    mesh = *axes;
  }
  ImportedStep step;
  if (failed(imports.import(tool, std::move(mesh), name, step, errors)))
    return failure();
  for (const auto &[option, value] : step.getOptions())
    for (OptionText *own : {&settings.mesh, &settings.stage, &settings.offload,
                            &settings.bucketBytes})
      if (own->name == option && !own->isGiven)
        own->text = value;
  imported = std::move(step.text);
  return success();
}

std::unique_ptr<llvm::MemoryBuffer>
StepSource::open(const LowerSettings &settings, StringRef name, ExitCode &code,
                 std::string &message) {
  if (imported)
    return std::move(imported);
  code = ExitCode::environment;
  if (!recipe.isGiven())
    return openInput(tool, input, message);
  code = ExitCode::usage;
  if (input.getNumOccurrences() > 0) {
    message = "--parameters and --recipe describe the step, and '" + input +
              "' has one, too; leave out one of them";
    return nullptr;
  }
  FailureOr<MeshAxes> mesh = settings.getMesh(message);
  if (failed(mesh))
    return nullptr;
  return recipe.write(tool, *mesh, name, code, message);
}

std::unique_ptr<llvm::MemoryBuffer>
StepSource::importUnits(const LowerSettings &settings, StringRef name,
                        std::string &message) const {
  if (!imports.isGiven() || imports.isFromStdin())
    return nullptr;
  FailureOr<MeshAxes> mesh = settings.getMesh(message);
  if (failed(mesh))
    return nullptr;
  Errors errors(tool);
  errors.keepSilently();
  ImportedStep step;
  if (failed(imports.import(tool, *mesh, name, step, errors,
                            "zero_optimization.stage=3"))) {
    message = errors.getFirstMessage().str();
    return nullptr;
  }
  return std::move(step.text);
}
