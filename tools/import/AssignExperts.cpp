//===- AssignExperts.cpp - Experts on the ranks of an axis ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank of the axis has as many experts as the others, and calls them by
// the same names, as DeepSpeed and Megatron do. So what a rank has under one
// name is a part of a parameter that the axis divides in its first dimension.
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <map>

using namespace mlir;
using namespace zero;

namespace {
/// What a parameter of experts is.
enum class Form {
  none,    // it is no expert's
  each,    // of one expert, which its name numbers among all experts
  local,   // of one expert, which its name numbers among those of a rank
  stacked, // of all experts, one after the other in the first dimension
  unknown, // of experts, by its name, and its shape does not tell how
};

/// The number in a name, and the name around it.
struct Numbered {
  std::string before, after;
  int64_t number = 0;

  std::string withNumber(int64_t other) const {
    return before + std::to_string(other) + after;
  }
};

class ExpertAssigner {
public:
  ExpertAssigner(int64_t numRanks, ParameterList &list, std::string &message)
      : numRanks(numRanks), list(list), message(message),
        forms(list.parameters.size()) {}

  LogicalResult run(ArrayRef<std::string> choices);
  /// What became of the parameters, for a comment in the step.
  std::string describe() const;

private:
  LogicalResult fail(const Twine &text) {
    message = text.str();
    return failure();
  }
  /// Finds out by names and shapes what parameters are.
  void findForms();
  /// Takes "PATTERN=FORM".
  LogicalResult choose(StringRef text);
  /// Checks the experts of one kind of parameter, and keeps the first ones.
  LogicalResult keepLocal(ArrayRef<size_t> experts);
  LogicalResult divide(size_t parameter);

  int64_t numRanks;
  ParameterList &list;
  std::string &message;
  std::vector<Form> forms; // by parameter
  std::vector<bool> dropped = std::vector<bool>(forms.size());
};
} // namespace

/// The number that the modules of |name| have behind one that ends with
/// |before|.
static std::optional<Numbered> findNumberBehind(StringRef name,
                                                StringRef before) {
  for (size_t at = name.find(before); at != StringRef::npos;
       at = name.find(before, at + 1)) {
    size_t begin = at + before.size();
    size_t end = std::min(name.find('.', begin), name.size());
    Numbered found;
    bool isModule = at == 0 || name[at - 1] == '.';
    if (isModule && !name.slice(begin, end).getAsInteger(10, found.number)) {
      found.before = name.take_front(begin).str();
      found.after = name.drop_front(end).str();
      return found;
    }
  }
  return std::nullopt;
}

/// Names of modules whose parts are numbered experts, and what the number
/// counts: of DeepSpeed's MoE, of Megatron, and of models of transformers.
static constexpr std::pair<llvm::StringLiteral, Form> kModules[] = {
    {"deepspeed_experts.", Form::local},
    {"local_experts.", Form::local},
    {"experts.", Form::each}};

/// The last number among the modules of |name|.
static std::optional<Numbered> findLastNumber(StringRef name) {
  size_t end = name.size();
  while (end > 0) {
    size_t begin = name.rfind('.', end - 1);
    begin = begin == StringRef::npos ? 0 : begin + 1;
    Numbered found;
    if (!name.slice(begin, end).getAsInteger(10, found.number)) {
      found.before = name.take_front(begin).str();
      found.after = name.drop_front(end).str();
      return found;
    }
    if (begin == 0)
      break;
    end = begin - 1;
  }
  return std::nullopt;
}

/// The number of the expert in |name|: behind a module of experts, or the last
/// one.
static std::optional<Numbered> findNumber(StringRef name) {
  for (auto [module, form] : kModules)
    if (std::optional<Numbered> found = findNumberBehind(name, module))
      return found;
  return findLastNumber(name);
}

/// The module that has |parameter| itself, if it is one of experts, such as
/// "mlp.experts" of "mlp.experts.gate_up_proj".
static StringRef getStackOf(const ListedParameter &parameter) {
  StringRef module = StringRef(parameter.name).rsplit('.').first;
  return module == "experts" || module.ends_with(".experts") ? module : "";
}

void ExpertAssigner::findForms() {
  std::map<StringRef, int64_t> countOf; // experts, by module
  for (const ListedParameter &parameter : list.parameters)
    if (StringRef module = getStackOf(parameter);
        !module.empty() && parameter.shape.size() == 3)
      countOf[module] = parameter.shape[0];
  for (auto [i, parameter] : llvm::enumerate(list.parameters)) {
    for (auto [module, form] : llvm::reverse(kModules))
      if (findNumberBehind(parameter.name, module))
        forms[i] = form;
    StringRef module = getStackOf(parameter);
    if (module.empty())
      continue;
    // Biases, too, have a row for each expert.
    auto count = countOf.find(module);
    bool isStacked =
        count != countOf.end() && parameter.shape[0] == count->second;
    forms[i] = isStacked ? Form::stacked : Form::unknown;
  }
}

LogicalResult ExpertAssigner::choose(StringRef text) {
  auto [pattern, name] = text.rsplit('=');
  auto form = llvm::StringSwitch<std::optional<Form>>(name)
                  .Case("none", Form::none)
                  .Case("each", Form::each)
                  .Case("local", Form::local)
                  .Case("stacked", Form::stacked)
                  .Default(std::nullopt);
  if (pattern.empty() || !form)
    return fail("--experts must be PATTERN=each, local, stacked or none, such "
                "as --experts='*.moe.w1=stacked', got '" +
                text + "'");
  const ListedParameter *withoutNumber = nullptr;
  if (failed(forEachMatch(
          "experts", pattern, list,
          [&, form = *form](ListedParameter &parameter) {
            forms[&parameter - list.parameters.data()] = form;
            if (form == Form::each && !findNumber(parameter.name))
              withoutNumber = &parameter;
          },
          message)))
    return failure();
  return withoutNumber ? fail("--experts: parameter '" + withoutNumber->name +
                              "' has no number of an expert in its name; "
                              "expected stacked, local or none")
                       : success();
}

/// Whether |a| and |b| are the same but for their names.
static bool areAlike(const ListedParameter &a, const ListedParameter &b) {
  auto getRest = [](const ListedParameter &p) {
    return std::tie(p.shape, p.dtype, p.gradient, p.group, p.unit, p.isOptional,
                    p.isSkippedIfAbsent, p.isFrozen, p.shardedDim, p.isPartial,
                    p.stages, p.uses, p.usesAny);
  };
  return getRest(a) == getRest(b);
}

LogicalResult ExpertAssigner::keepLocal(ArrayRef<size_t> experts) {
  const ListedParameter &first = list.parameters[experts[0]];
  Numbered name = *findNumber(first.name);
  std::map<int64_t, size_t> byNumber;
  for (size_t i : experts) {
    const ListedParameter &other = list.parameters[i];
    byNumber[findNumber(other.name)->number] = i;
    if (!areAlike(first, other))
      return fail("parameters '" + first.name + "' and '" + other.name +
                  "' are of experts that different ranks have under one name, "
                  "and differ in more than their names: in shape, dtype, "
                  "group, unit, uses, --shard or --pipeline-stage, or in "
                  "whether they are frozen or optional");
  }
  int64_t count = experts.size();
  for (int64_t number = 0; number < count; ++number)
    if (!byNumber.count(number))
      return fail("parameter '" + name.withNumber(number) +
                  "' is missing, and the model has " + Twine(count) +
                  " experts beside '" + first.name + "'");
  if (count % numRanks != 0)
    return fail("the model has " + Twine(count) + " experts beside '" +
                first.name + "', expected a multiple of " + kExpertAxis + "=" +
                Twine(numRanks) + "; give that another size");
  for (auto [number, i] : byNumber) {
    if (number >= count / numRanks)
      dropped[i] = true;
    else if (failed(divide(i)))
      return failure();
  }
  return success();
}

LogicalResult ExpertAssigner::divide(size_t i) {
  ListedParameter &parameter = list.parameters[i];
  parameter.isExpert = true;
  if (forms[i] != Form::stacked) {
    // Its part is what the list says.
    if (__builtin_mul_overflow(parameter.shape[0], numRanks,
                               &parameter.shape[0]))
      return fail("parameter '" + parameter.name + "' of " + Twine(numRanks) +
                  " ranks has too many elements");
    return success();
  }
  if (parameter.shape[0] % numRanks == 0)
    return success();
  return fail("parameter '" + parameter.name + "' has " +
              Twine(parameter.shape[0]) + " experts, expected a multiple of " +
              kExpertAxis + "=" + Twine(numRanks) +
              "; give that another size, or add --experts='" + parameter.name +
              "=none'");
}

LogicalResult ExpertAssigner::run(ArrayRef<std::string> choices) {
  findForms();
  for (StringRef choice : choices)
    if (failed(choose(choice)))
      return failure();
  if (auto unknown = llvm::find(forms, Form::unknown); unknown != forms.end()) {
    StringRef name = list.parameters[unknown - forms.begin()].name;
    return fail("parameter '" + name +
                "' is of experts by its name, and no parameter beside it has "
                "three dimensions and as many experts; add --experts='" +
                name + "=stacked', local or none");
  }
  if (llvm::all_of(forms, [](Form form) { return form == Form::none; }))
    return fail("the mesh has " + kExpertAxis + "=" + Twine(numRanks) +
                ", and no parameter is of an expert by its name, such as "
                "'layers.0.mlp.experts.3.w1.weight'; add "
                "--experts='PATTERN=each', local or stacked");
  // By the name without the number.
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> each;
  for (auto [i, form] : llvm::enumerate(forms)) {
    if (form == Form::each) {
      Numbered name = *findNumber(list.parameters[i].name);
      each[{name.before, name.after}].push_back(i);
    } else if (form != Form::none && failed(divide(i))) {
      return failure();
    }
  }
  for (const auto &experts : llvm::make_second_range(each))
    if (failed(keepLocal(experts)))
      return failure();
  std::vector<ListedParameter> kept;
  for (auto [i, parameter] : llvm::enumerate(list.parameters))
    if (!dropped[i])
      kept.push_back(std::move(parameter));
  list.parameters = std::move(kept);
  return success();
}

std::string ExpertAssigner::describe() const {
  int64_t count = llvm::count(dropped, true);
  return count == 0 ? "divides parameters of experts"
                    : "each rank has some of the experts, and names them as "
                      "the first ones; " +
                          std::to_string(count) +
                          " names of other experts are left out";
}

LogicalResult zero::assignExperts(const ImportRequest &request,
                                  int64_t numRanks, ImportedConfig &config,
                                  ParameterList &list, std::string &message) {
  if (numRanks == 1) {
    if (request.experts.empty())
      return success();
    message = "--experts is for a mesh with an axis of experts, such as "
              "--mesh=edp=2:ep=4";
    return failure();
  }
  ExpertAssigner assigner(numRanks, list, message);
  if (failed(assigner.run(request.experts)))
    return failure();
  config.decisions.push_back({"axis " + kExpertAxis.str(),
                              std::to_string(numRanks), assigner.describe()});
  return success();
}
