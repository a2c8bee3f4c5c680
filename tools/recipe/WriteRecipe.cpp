//===- WriteRecipe.cpp - Writes the logical step of a recipe --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Symbols.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero;

namespace {
class StepWriter : private Symbols {
public:
  StepWriter(const Recipe &recipe, const ParameterList &list,
             const MeshAxes &mesh, std::string &text, std::string &message)
      : recipe(recipe), list(list), mesh(mesh), os(text), message(message) {}

  LogicalResult run(StringRef name);

private:
  struct Group {
    std::string symbol;
    bool isSkippedIfAbsent = false;
    std::vector<size_t> members; // of trained
    std::vector<std::pair<std::string, HyperValue>> hyper;
  };

  LogicalResult fail(const Twine &text) {
    message = text.str();
    return failure();
  }
  LogicalResult findGroups();
  LogicalResult findHyper(StringRef name, Group &group);
  void writeDeclarations();
  void writeStep(StringRef name);
  void writeUpdates(StringRef gradients);

  std::string type(size_t parameter, StringRef dtype, StringRef rest);
  bool isDividedExpert(const ListedParameter &parameter) const {
    return parameter.isExpert && !recipe.expertAxis.empty();
  }
  /// ", partial = [dp, micro]": the axes over which the gradient of |parameter|
  /// is summed, and those over which it is when it |arrives|.
  std::string addends(size_t parameter, bool arrives);
  /// ", sharded = [tp : 0], on = [pp : 1]", or parts of that.
  std::string placement(const ListedParameter &parameter);
  /// The value of an input: "%lr", or "%in0" where its name is no name of
  /// MLIR's or one of the step's own.
  std::string argument(StringRef input);
  /// The value of a schedule, "%lr".
  std::string scheduled(StringRef schedule);
  /// An argument, a schedule's value or a number.
  std::string operand(const HyperValue &value);
  void addInput(const HyperValue &value) {
    if (!value.input.empty() && !llvm::is_contained(inputs, value.input))
      inputs.push_back(value.input);
  }
  /// |write|(i) of all trained parameters, separated by commas.
  std::string each(llvm::function_ref<std::string(size_t)> write);
  /// "%r#2", or "%r" if there is one.
  std::string result(StringRef name, size_t i) {
    return ("%" + name + (trained.size() > 1 ? "#" + Twine(i) : Twine())).str();
  }
  std::string results(StringRef name) {
    return ("%" + name +
            (trained.size() > 1 ? ":" + Twine(trained.size()) : Twine()))
        .str();
  }

  const Recipe &recipe;
  const ParameterList &list;
  const MeshAxes &mesh;
  llvm::raw_string_ostream os;
  std::string &message;
  std::vector<const ListedParameter *> trained;
  std::vector<std::string> batchAxes;
  std::vector<Group> groups;
  std::vector<std::string> inputs;
  std::string meshSymbol;
  std::string optimizerSymbol;
  std::string lossScaleSymbol;
  std::map<std::string, std::string> scheduleSymbols;
};
} // namespace

/// |text|, which defines @NAME, with |symbol| in place of that.
static std::string rename(StringRef text, StringRef name, StringRef symbol) {
  std::string own = ("@" + name).str();
  auto [before, after] = text.split(own);
  return (before + symbol + after).str();
}

std::string StepWriter::type(size_t parameter, StringRef dtype,
                             StringRef rest) {
  std::string text = "!zero.value<";
  for (int64_t extent : trained[parameter]->shape)
    text += std::to_string(extent) + "x";
  return (text + dtype + placement(*trained[parameter]) + rest + ">").str();
}

std::string StepWriter::placement(const ListedParameter &parameter) {
  std::vector<std::string> axes;
  if (isDividedExpert(parameter))
    axes.push_back(recipe.expertAxis);
  if (!recipe.tensorAxis.empty() && parameter.shardedDim)
    axes.push_back(recipe.tensorAxis + " : " +
                   std::to_string(*parameter.shardedDim));
  std::string text;
  if (!axes.empty())
    text = ", sharded = [" + llvm::join(axes, ", ") + "]";
  if (recipe.pipelineAxis.empty())
    return text;
  auto place = [&](int64_t stage) {
    return recipe.pipelineAxis + " : " + std::to_string(stage);
  };
  return text + ", on = [" +
         llvm::join(llvm::map_range(parameter.stages, place), ", ") + "]";
}

std::string StepWriter::addends(size_t parameter, bool arrives) {
  std::vector<std::string> axes = batchAxes;
  // Their all-to-all has summed over the batches along the axis of experts.
  bool isExpert = isDividedExpert(*trained[parameter]);
  if (isExpert)
    llvm::erase(axes, recipe.expertAxis);
  if (!recipe.pipelineAxis.empty() && trained[parameter]->stages.size() > 1)
    axes.push_back(recipe.pipelineAxis);
  if (!recipe.tensorAxis.empty() && trained[parameter]->isPartial)
    axes.push_back(recipe.tensorAxis);
  if (arrives)
    axes.push_back("micro");
  std::string text;
  if (!axes.empty())
    text = ", partial = [" + llvm::join(axes, ", ") + "]";
  if (arrives && isExpert)
    text += ", reduced = [" + recipe.expertAxis + "]";
  return text;
}

std::string StepWriter::argument(StringRef input) {
  bool isName = llvm::isAlpha(input[0]) && llvm::all_of(input, [](char c) {
                  return llvm::isAlnum(c) || c == '_' || c == '.';
                });
  if (isName &&
      !llvm::is_contained({"g", "d", "r", "c", "norm", "tokens"}, input))
    return ("%" + input).str();
  return "%in" + std::to_string(
                     std::distance(inputs.begin(), llvm::find(inputs, input)));
}

std::string StepWriter::scheduled(StringRef schedule) {
  std::string name = schedule.str();
  while (llvm::is_contained(inputs, name))
    name += "_now";
  return "%" + name;
}

std::string StepWriter::operand(const HyperValue &value) {
  if (!value.schedule.empty())
    return scheduled(value.schedule);
  return value.input.empty() ? formatReal(value.number) : argument(value.input);
}

std::string StepWriter::each(llvm::function_ref<std::string(size_t)> write) {
  std::string text;
  for (size_t i = 0; i < trained.size(); ++i)
    text += (i ? ", " : "") + write(i);
  return text;
}

/// The values of the hyperparameters of |group|: of the group itself, else of
/// the recipe, else of the optimizer.
LogicalResult StepWriter::findHyper(StringRef name, Group &group) {
  HyperValues own;
  if (auto it = list.groups.find(name.str()); it != list.groups.end())
    own = it->second;
  for (const OptimizerHyper &hyper : recipe.optimizer.hyper) {
    HyperValue value;
    auto inGroup = own.find(hyper.name);
    auto inRecipe = recipe.hyper.find(hyper.name);
    if (inGroup != own.end())
      value = inGroup->second;
    else if (inRecipe != recipe.hyper.end())
      value = inRecipe->second;
    else if (hyper.name == "lr")
      value.input = "lr";
    else if (hyper.number)
      continue; // the optimizer has it
    else
      return fail("group '" + name + "' needs a value of '" + hyper.name +
                  "'; add " + hyper.name + "=X to the recipe, or '" +
                  hyper.name + "' to the group");
    own.erase(hyper.name);
    addInput(value);
    group.hyper.push_back({hyper.name, value});
  }
  if (own.empty())
    return success();
  return fail("group '" + name + "' has a value of '" + own.begin()->first +
              "', and " + recipe.optimizer.name +
              " has no such hyperparameter");
}

LogicalResult StepWriter::findGroups() {
  for (const ListedParameter &parameter : list.parameters)
    if (!parameter.isFrozen)
      trained.push_back(&parameter);
  if (trained.empty())
    return fail("no parameter is trained");
  // A parameter that is skipped if its gradient is absent has counters of its
  // own, and so a group.
  llvm::MapVector<std::pair<StringRef, StringRef>, std::vector<size_t>> members;
  for (auto [i, parameter] : llvm::enumerate(trained))
    members[{parameter->group, parameter->isSkippedIfAbsent
                                   ? StringRef(parameter->name)
                                   : StringRef()}]
        .push_back(i);
  for (auto &[key, indices] : members) {
    auto [name, alone] = key;
    Group group;
    group.isSkippedIfAbsent = !alone.empty();
    group.symbol = unique((alone.empty() ? name : alone).str(), ".group");
    group.members = indices;
    if (failed(findHyper(name, group)))
      return failure();
    groups.push_back(std::move(group));
  }
  return success();
}

void StepWriter::writeDeclarations() {
  os << "zero.mesh " << meshSymbol << " <[";
  llvm::interleaveComma(mesh, os, [&](const auto &axis) {
    os << "\"" << axis.first << "\" = " << axis.second;
  });
  os << "]>\n\n";
  for (const ListedParameter &parameter : list.parameters) {
    os << "zero.parameter " << symbol(parameter.name) << " : ";
    for (int64_t extent : parameter.shape)
      os << extent << "x";
    os << parameter.dtype << placement(parameter);
    if (parameter.isFrozen)
      os << " frozen";
    if (parameter.isOptional)
      os << " optional";
    if (parameter.usesAny)
      os << " uses any";
    else if (parameter.uses > 1)
      os << " uses " << parameter.uses;
    os << "\n";
  }
  os << "\n";
  for (const Group &group : groups) {
    os << "zero.group " << group.symbol << " [";
    llvm::interleaveComma(group.members, os,
                          [&](size_t i) { os << symbol(trained[i]->name); });
    os << (group.isSkippedIfAbsent ? "] absent skip\n" : "]\n");
  }
  os << writeUnits(list, recipe.gatherDtype, *this) << "\n"
     << rename(recipe.optimizer.text, recipe.optimizer.symbol, optimizerSymbol)
     << "\n";
  if (!recipe.lossScale.empty())
    os << rename(recipe.lossScale, "loss_scale", lossScaleSymbol) << "\n";
  for (const auto &[schedule, text] : recipe.schedules)
    os << rename(text, schedule, scheduleSymbols[schedule]) << "\n";
}

void StepWriter::writeUpdates(StringRef gradients) {
  for (const Group &group : groups) {
    os << "  zero.update " << group.symbol << " with " << optimizerSymbol
       << "(";
    llvm::interleaveComma(group.members, os,
                          [&](size_t i) { os << result(gradients, i); });
    os << ") hyper(";
    size_t numInputs = 0;
    llvm::interleaveComma(group.hyper, os, [&](const auto &hyper) {
      const auto &[name, value] = hyper;
      // Quoted where a symbol is.
      os << StringRef(symbol(name)).drop_front() << " = " << operand(value);
      numInputs += !value.input.empty() || !value.schedule.empty();
    });
    os << ")\n      : (";
    llvm::interleaveComma(group.members, os, [&](size_t i) {
      os << type(i, recipe.accumulator, "");
    });
    os << "), (";
    llvm::interleaveComma(llvm::seq(numInputs), os,
                          [&](size_t) { os << "!zero.value<f64>"; });
    os << ")\n";
  }
}

void StepWriter::writeStep(StringRef name) {
  std::string axes = llvm::join(batchAxes, ", ");
  // What is left to divide by stands in the types.
  std::string weight, prescaled, scaled;
  if (recipe.normalization == Normalization::tokens) {
    weight = "tokens : -1";
    scaled = "tokens : 1";
  } else if (recipe.normalization == Normalization::mean) {
    weight = "accumulation : -1";
    prescaled = recipe.isLossDivided ? "accumulation : -1" : "";
    scaled = recipe.isLossDivided ? "" : "accumulation : 1";
    if (!recipe.isSumOfRanks)
      for (const std::string &axis : batchAxes) {
        weight += ", " + axis + " : -1";
        scaled += (scaled.empty() ? "" : ", ") + axis + " : 1";
      }
  }
  if (!recipe.lossScale.empty()) {
    prescaled = "loss_scale : 1" + (prescaled.empty() ? "" : ", " + prescaled);
    scaled += (scaled.empty() ? "" : ", ") + std::string("loss_scale : 1");
  }
  if (!scaled.empty())
    scaled = ", scaled = [" + scaled + "]";
  bool hasTokens = recipe.normalization == Normalization::tokens;
  std::string tokens = "!zero.value<f64, partial = [" + axes + "]>";

  os << "// Inputs of apply, in order: " << llvm::join(inputs, ", ")
     << (hasTokens ? ", tokens" : "") << "\n";
  os << "zero.step " << symbol(name) << " on " << meshSymbol << " normalize("
     << weight << ")";
  if (recipe.nonfinite != "skip")
    os << " nonfinite " << recipe.nonfinite;
  if (!recipe.lossScale.empty())
    os << " loss_scale " << lossScaleSymbol;
  if (recipe.oneBackward)
    os << " one_backward";
  os << " (";
  llvm::interleaveComma(inputs, os, [&](StringRef input) {
    os << argument(input) << ": !zero.value<f64> {zero.name = \"";
    llvm::printEscapedString(input, os);
    os << "\"}";
  });
  if (hasTokens)
    os << (inputs.empty() ? "" : ", ") << "%tokens: " << tokens
       << " {zero.tokens}";
  os << ") {\n";
  std::string arriving = each([&](size_t i) {
    return type(i, trained[i]->gradient, addends(i, /*arrives=*/true) + scaled);
  });
  os << "  " << results("g") << " = zero.micro_batches in "
     << recipe.accumulator << " {\n    " << results("d") << " = zero.backward("
     << each([&](size_t i) { return symbol(trained[i]->name); })
     << ") prescaled(" << prescaled << ")"
     << (recipe.tensorAxis.empty() ? ""
                                   : " replicated [" + recipe.tensorAxis + "]")
     << "\n        : " << arriving << "\n    zero.yield "
     << each([&](size_t i) { return result("d", i); })
     << "\n        : " << arriving << "\n  }\n";
  os << "  " << results("r") << " = zero.reduce "
     << each([&](size_t i) { return result("g", i); });
  if (!recipe.reduceDtype.empty())
    os << " reduce_dtype " << recipe.reduceDtype;
  os << "\n      : " << each([&](size_t i) {
    return type(i, recipe.accumulator, addends(i, /*arrives=*/false) + scaled);
  }) << "\n";
  std::string sums =
      each([&](size_t i) { return type(i, recipe.accumulator, ""); });
  std::string reduced = each([&](size_t i) { return result("r", i); });
  os << "  %norm = zero.norm " << reduced << "\n      : " << sums << "\n";
  if (recipe.maxNorm)
    os << "  " << results("c") << " = zero.clip " << reduced << " by %norm max "
       << operand(*recipe.maxNorm) << "\n      : " << sums
       << " by !zero.value<f64>\n";
  for (const auto &[schedule, scheduleSymbol] : scheduleSymbols)
    os << "  " << scheduled(schedule) << " = zero.read_schedule "
       << scheduleSymbol << "\n";
  writeUpdates(recipe.maxNorm ? "c" : "r");
  std::string names = "norm", values = "%norm", types = "!zero.value<f64>";
  for (const auto &entry : scheduleSymbols) {
    names += ", " + entry.first;
    values += ", " + scheduled(entry.first);
    types += ", !zero.value<f64>";
  }
  os << "  zero.return [" << names << "] " << values << " : " << types
     << "\n}\n";
}

LogicalResult StepWriter::run(StringRef name) {
  for (const ListedParameter &parameter : list.parameters)
    take(parameter.name);
  if (!take(name))
    return fail("parameter '" + name +
                "' has the name of the step; add --name=NAME with another one");
  meshSymbol = unique("cluster", ".mesh");
  optimizerSymbol = unique(recipe.optimizer.name, ".optimizer");
  if (!recipe.lossScale.empty())
    lossScaleSymbol = unique("loss_scale", ".scale");
  for (const auto &entry : recipe.schedules)
    scheduleSymbols[entry.first] = unique(entry.first, ".schedule");
  for (const auto &axis : mesh)
    if (axis.first != recipe.tensorAxis && axis.first != recipe.pipelineAxis)
      batchAxes.push_back(axis.first);
  if (batchAxes.empty())
    return fail("the mesh has no data-parallel axis; add one, such as dp=1");
  if (failed(findGroups()))
    return failure();
  if (recipe.maxNorm)
    addInput(*recipe.maxNorm);
  for (const std::string &input : inputs)
    if (llvm::any_of(input, [](unsigned char c) { return c < ' '; })) {
      std::string escaped;
      llvm::raw_string_ostream stream(escaped);
      llvm::printEscapedString(input, stream);
      return fail("the name of input '" + escaped +
                  "' has a control character; give it another name");
    }
  writeDeclarations();
  writeStep(name);
  return success();
}

LogicalResult zero::writeStep(const Recipe &recipe, const ParameterList &list,
                              const MeshAxes &mesh, StringRef name,
                              std::string &text, std::string &message) {
  return StepWriter(recipe, list, mesh, text, message).run(name);
}
