//===- RecipeFlags.cpp - The step that options describe -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/RecipeFlags.h"

#include "tools/recipe/Recipe.h"

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

RecipeFlags::RecipeFlags(cl::OptionCategory &category)
    : parameters("parameters", cl::cat(category), cl::value_desc("file.json"),
                 cl::desc("List of parameters (-: stdin)")),
      recipe("recipe", cl::cat(category), cl::desc(describeRecipes())) {}

bool RecipeFlags::isGiven() const {
  return parameters.getNumOccurrences() > 0 || recipe.getNumOccurrences() > 0;
}

StringRef zero::describeParameterLists() {
  return "model.json: {\"parameters\": [{\"name\": \"fc.weight\", "
         "\"shape\": [64, 48], \"dtype\": \"f32\"}, ...]}\n"
         "A parameter may have \"gradient\" (dtype), \"group\", \"unit\",\n"
         "\"absent\", \"frozen\", \"uses\" and \"pipeline_stage\", its number "
         "along the axis\npp of --mesh, or a list of numbers of a tied "
         "parameter. Parameters of one \"unit\" are\n"
         "gathered together at --stage=3. \"absent\" says what a step "
         "does without its gradient: \"refuse\" the step\n(default), take "
         "\"zero\", or \"skip\" the parameter, if the gradient "
         "arrived\nnowhere, "
         "as PyTorch does. \"optional\": true is \"absent\": \"zero\".\n"
         "\"uses\" is the number of pieces of a gradient in a backward "
         "pass,\nor "
         "\"any\", with re-entrant activation checkpointing.\n"
         "\"groups\" gives groups hyperparameters: {\"decay\": {\"wd\": "
         "0.1}}\n";
}

std::unique_ptr<llvm::MemoryBuffer>
RecipeFlags::write(StringRef tool, const MeshAxes &mesh, StringRef name,
                   ExitCode &code, std::string &message) const {
  code = ExitCode::usage;
  for (auto *option : {&parameters, &recipe})
    if (option->empty()) {
      message = ("--" + option->ArgStr + " is missing; --help shows it").str();
      return nullptr;
    }
  Recipe choices;
  auto open = [&](StringRef path, std::string &why) {
    return openInput(tool, path, why);
  };
  if (failed(readRecipe(recipe, open, choices, code, message)))
    return nullptr;
  code = ExitCode::environment;
  std::unique_ptr<llvm::MemoryBuffer> file =
      openInput(tool, parameters, message);
  if (!file)
    return nullptr;
  return writeListedStep(choices, file->getBuffer(), describeInput(parameters),
                         mesh, name, code, message);
}
