//===- ReadParameters.cpp - A list of parameters from JSON ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

#include "dialect/zero/StorageTypes.h"
#include "tools/driver/Nesting.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

namespace json = llvm::json;
using namespace mlir;
using namespace zero;

/// An element type by our name or by that of PyTorch; empty if unknown.
static StringRef getDtype(StringRef name) {
  name.consume_front("torch.");
  return findStorageType(name);
}

namespace {
/// Reads the fields of an object, and knows which fields nobody asked for.
class Fields {
public:
  Fields(const json::Object &object, std::string place, std::string &message)
      : object(object), place(std::move(place)), message(message) {}

  LogicalResult fail(const Twine &text) {
    message = (place + ": " + text).str();
    return failure();
  }
  const json::Value *get(StringRef key) {
    known.insert(key);
    return object.get(key);
  }
  LogicalResult readString(StringRef key, std::string &out) {
    const json::Value *value = get(key);
    if (!value)
      return success();
    std::optional<StringRef> text = value->getAsString();
    if (!text)
      return fail("'" + key + "' must be a string");
    out = text->str();
    return success();
  }
  LogicalResult readBool(StringRef key, bool &out) {
    const json::Value *value = get(key);
    if (!value)
      return success();
    std::optional<bool> flag = value->getAsBoolean();
    if (!flag)
      return fail("'" + key + "' must be true or false");
    out = *flag;
    return success();
  }
  LogicalResult readDtype(StringRef key, std::string &out) {
    if (!get(key))
      return success();
    std::string name;
    if (failed(readString(key, name)))
      return failure();
    out = getDtype(name).str();
    if (out.empty())
      return fail("'" + key + "' must be " + listStorageTypes() + ", got '" +
                  name + "'");
    return success();
  }
  /// Refuses a field that no call has asked for.
  LogicalResult finish() {
    for (const auto &[key, value] : object)
      if (!known.contains(StringRef(key)))
        return fail("unknown field '" + StringRef(key) + "'");
    return success();
  }

private:
  const json::Object &object;
  std::string place;
  std::string &message;
  llvm::StringSet<> known;
};
} // namespace

/// Reads a number or a list of different numbers, each at least 0.
static LogicalResult readStages(const json::Value &value, Fields &fields,
                                std::vector<int64_t> &stages) {
  auto add = [&](const json::Value &one) {
    std::optional<int64_t> number = one.getAsInteger();
    bool isNew = number && *number >= 0 && !llvm::is_contained(stages, *number);
    if (isNew)
      stages.push_back(*number);
    return isNew;
  };
  const json::Array *list = value.getAsArray();
  bool isRight = list ? !list->empty() && llvm::all_of(*list, add) : add(value);
  llvm::sort(stages);
  if (isRight)
    return success();
  return fields.fail("'pipeline_stage' must be a number from 0 on, or a list "
                     "of different ones where the parameter is tied");
}

static LogicalResult readParameter(const json::Object &object, size_t index,
                                   StringRef file, ListedParameter &parameter,
                                   std::string &message) {
  std::string place = (file + ": parameter " + Twine(index)).str();
  if (std::optional<StringRef> name = object.getString("name"))
    place += " '" + name->str() + "'";
  Fields fields(object, place, message);
  if (failed(fields.readString("name", parameter.name)))
    return failure();
  if (parameter.name.empty())
    return fields.fail("'name' is missing");
  const json::Value *shape = fields.get("shape");
  if (!shape || !shape->getAsArray())
    return fields.fail("'shape' must be a list of extents");
  for (const json::Value &extent : *shape->getAsArray()) {
    std::optional<int64_t> number = extent.getAsInteger();
    if (!number || *number < 0)
      return fields.fail("'shape' must be a list of extents, each at least 0");
    parameter.shape.push_back(*number);
  }
  // Values without dimensions are the scalars of a step.
  if (parameter.shape.empty())
    parameter.shape.push_back(1);
  if (failed(fields.readDtype("dtype", parameter.dtype)))
    return failure();
  parameter.gradient = parameter.dtype;
  if (failed(fields.readDtype("gradient", parameter.gradient)) ||
      failed(fields.readString("group", parameter.group)) ||
      failed(fields.readString("unit", parameter.unit)) ||
      failed(fields.readBool("optional", parameter.isOptional)) ||
      failed(fields.readBool("frozen", parameter.isFrozen)))
    return failure();
  std::string absent;
  if (failed(fields.readString("absent", absent)))
    return failure();
  if (fields.get("absent")) {
    if (fields.get("optional"))
      return fields.fail("'optional' and 'absent' say the same; keep 'absent'");
    if (!llvm::is_contained({"refuse", "zero", "skip"}, absent))
      return fields.fail("'absent' must be refuse, zero or skip, got '" +
                         absent + "'");
    parameter.isOptional = absent != "refuse";
    parameter.isSkippedIfAbsent = absent == "skip";
  }
  if (const json::Value *uses = fields.get("uses")) {
    std::optional<int64_t> number = uses->getAsInteger();
    parameter.usesAny = uses->getAsString() == "any";
    if (!parameter.usesAny && (!number || *number < 1))
      return fields.fail("'uses' must be a number from 1 on, or \"any\"");
    parameter.uses = number.value_or(1);
  }
  if (const json::Value *stages = fields.get("pipeline_stage"))
    if (failed(readStages(*stages, fields, parameter.stages)))
      return failure();
  if (fields.get("unit") && parameter.unit.empty())
    return fields.fail("'unit' names no unit; leave it out, or name one");
  if (parameter.isFrozen &&
      (parameter.isOptional || parameter.usesAny || parameter.uses > 1))
    return fields.fail("no gradient of a frozen parameter arrives; leave out "
                       "'absent', 'optional' and 'uses', or 'frozen'");
  return fields.finish();
}

static LogicalResult readGroup(const json::Value &value, StringRef name,
                               StringRef file, HyperValues &hyper,
                               std::string &message) {
  auto fail = [&](const Twine &text) {
    message = (file + ": group '" + name + "': " + text).str();
    return failure();
  };
  const json::Object *object = value.getAsObject();
  if (!object)
    return fail("must be an object of hyperparameters");
  for (const auto &[key, entry] : *object) {
    HyperValue &one = hyper[StringRef(key).str()];
    if (std::optional<StringRef> input = entry.getAsString())
      one.input = input->str();
    else if (std::optional<double> number = entry.getAsNumber())
      one.number = *number;
    else
      return fail("'" + StringRef(key) +
                  "' must be a number, or a string that names an input");
    if (entry.getAsString() && one.input.empty())
      return fail("'" + StringRef(key) + "' names no input");
  }
  return success();
}

LogicalResult zero::readParameterList(StringRef text, StringRef file,
                                      ParameterList &list,
                                      std::string &message) {
  if (isNestedDeeply(text)) {
    message = (file + ": is nested more than " + Twine(kDeepestText) +
               " levels deep, expected a list of parameters")
                  .str();
    return failure();
  }
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    message = (file + ": " + toString(parsed.takeError())).str();
    return failure();
  }
  const json::Array *parameters = parsed->getAsArray();
  if (const json::Object *object = parsed->getAsObject()) {
    Fields fields(*object, file.str(), message);
    if (const json::Value *value = fields.get("parameters"))
      parameters = value->getAsArray();
    if (const json::Value *groups = fields.get("groups")) {
      if (!groups->getAsObject())
        return fields.fail("'groups' must be an object");
      for (const auto &[name, value] : *groups->getAsObject())
        if (failed(readGroup(value, name, file,
                             list.groups[StringRef(name).str()], message)))
          return failure();
    }
    if (failed(fields.finish()))
      return failure();
  }
  if (!parameters) {
    message = (file + ": 'parameters' must be a list").str();
    return failure();
  }
  llvm::StringSet<> names, used;
  for (const auto &[i, value] : llvm::enumerate(*parameters)) {
    ListedParameter parameter;
    const json::Object *object = value.getAsObject();
    if (!object) {
      message = (file + ": parameter " + Twine(i) + " must be an object").str();
      return failure();
    }
    if (failed(readParameter(*object, i, file, parameter, message)))
      return failure();
    if (!names.insert(parameter.name).second) {
      message = (file + ": parameter " + Twine(i) + ": the name '" +
                 parameter.name + "' occurs twice")
                    .str();
      return failure();
    }
    used.insert(parameter.group);
    list.parameters.push_back(std::move(parameter));
  }
  for (const auto &[name, hyper] : list.groups)
    if (!used.contains(name)) {
      message = (file + ": group '" + name + "' has no parameter").str();
      return failure();
    }
  return success();
}
