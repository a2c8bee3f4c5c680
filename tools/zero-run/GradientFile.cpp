//===- GradientFile.cpp - Gradients of a run, from a file -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/GradientFile.h"

#include "dialect/zero/Suggest.h"
#include "tools/zero-run/Floats.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace zero;

/// The name of |type| in the format: F32 for f32.
static std::string getFormatName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return StringRef(name).upper();
}

static std::string describe(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// What the author of |name| may have meant.
static std::string suggestParameter(StringRef name,
                                    ArrayRef<ParameterInfo> parameters) {
  const ParameterInfo *nearest = nullptr;
  unsigned least = getMaxEdits(name);
  for (const ParameterInfo &info : parameters) {
    unsigned distance = name.edit_distance(info.name, true, least);
    if (distance > least || (nearest && distance == least))
      continue;
    least = distance;
    nearest = &info;
  }
  if (nearest)
    return "; did you mean '" + nearest->name + "'?";
  SmallVector<StringRef> names;
  for (const ParameterInfo &info : parameters.take_front(8))
    names.push_back(info.name);
  return "; the step has " + llvm::join(names, ", ") +
         (names.size() < parameters.size() ? ", ..." : "");
}

namespace {
struct Key {
  int64_t step = 0;
  int64_t backward = 0;
  int64_t rank = 0;
  StringRef parameter;
};
} // namespace

static std::string makeKey(int64_t step, int64_t backward, int64_t rank,
                           StringRef parameter) {
  return llvm::formatv("{0}/{1}/{2}/{3}", step, backward, rank, parameter)
      .str();
}

/// A number beyond this is a mistake; nobody has that many steps in a file.
static constexpr int64_t kLargest = 999999;

/// Reads |text|; there is one way to write a key.
static std::optional<Key> parseKey(StringRef text) {
  Key key;
  StringRef rest = text;
  for (int64_t *number : {&key.step, &key.backward, &key.rank}) {
    auto [part, after] = rest.split('/');
    if (part.getAsInteger(10, *number) || *number < 0 || *number > kLargest)
      return std::nullopt;
    rest = after;
  }
  key.parameter = rest;
  if (rest.empty() || makeKey(key.step, key.backward, key.rank, rest) != text)
    return std::nullopt;
  return key;
}

LogicalResult GradientFile::add(size_t index,
                                ArrayRef<ParameterInfo> parameters,
                                int64_t ranks, std::string &message) {
  const StoredTensor &tensor = file.tensors[index];
  std::string quoted = "'" + tensor.name + "'";
  std::optional<Key> key = parseKey(tensor.name);
  if (!key)
    return fail(message,
                quoted +
                    " is not a key STEP/BACKWARD/RANK/PARAMETER with "
                    "numbers from 0 to 999999, such as 0/0/0/" +
                    (parameters.empty() ? "w" : parameters.front().name));
  const auto *info = llvm::find_if(parameters, [&](const ParameterInfo &one) {
    return one.name == key->parameter;
  });
  if (info == parameters.end())
    return fail(message, quoted + " names no parameter of the step: '" +
                             key->parameter + "'" +
                             suggestParameter(key->parameter, parameters));
  if (key->rank >= ranks)
    return fail(message,
                llvm::formatv("{0} names rank {1}, expected 0 to {2} as in the "
                              "mesh; enlarge --mesh or remove the tensor",
                              quoted, key->rank, ranks - 1)
                    .str());
  if (!info->holders[key->rank])
    return fail(message,
                llvm::formatv("{0} names rank {1}, whose pipeline stage does "
                              "not have '{2}'; rank {3} is the first that has "
                              "it",
                              quoted, key->rank, info->name, info->getHolder())
                    .str());
  std::string dtype = getFormatName(info->arrivalType);
  if (tensor.dtype != dtype)
    return fail(message,
                llvm::formatv("{0} has dtype {1}, expected {3} as gradients of "
                              "'{2}' arrive; convert the tensor",
                              quoted, tensor.dtype, info->name, dtype)
                    .str());
  if (ArrayRef(tensor.shape) != ArrayRef(info->shape))
    return fail(message,
                llvm::formatv("{0} has shape {1}, expected {3} of '{2}'; "
                              "reshape the tensor",
                              quoted, describe(tensor.shape), info->name,
                              describe(info->shape))
                    .str());
  int64_t bytes = info->getNumHeld() * getWidth(info->arrivalType);
  if (static_cast<int64_t>(tensor.bytes.size()) != bytes)
    return fail(message, llvm::formatv(
                             "{0} has {1} bytes, expected {4} for {2} elements "
                             "of {3}; correct data_offsets",
                             quoted, tensor.bytes.size(), info->getNumHeld(),
                             dtype, bytes)
                             .str());
  tensors[tensor.name] = index;
  present.try_emplace({key->step, key->backward}, index);
  return success();
}

FailureOr<GradientFile> GradientFile::open(StringRef path,
                                           ArrayRef<ParameterInfo> parameters,
                                           int64_t ranks,
                                           std::string &message) {
  FailureOr<SafetensorsFile> file = SafetensorsFile::open(path, message);
  if (failed(file))
    return failure();
  GradientFile gradients;
  gradients.path = path.str();
  gradients.file = std::move(*file);
  for (size_t i = 0; i < gradients.file.tensors.size(); ++i)
    if (failed(gradients.add(i, parameters, ranks, message)))
      return fail(message, "'" + path + "': " + message);
  return gradients;
}

int64_t GradientFile::getSteps() const {
  return present.empty() ? 0 : present.rbegin()->first.first + 1;
}

std::vector<int64_t> GradientFile::getBackwards(int64_t steps) const {
  std::vector<int64_t> backwards(steps, 1);
  for (const auto &[place, tensor] : present)
    if (place.first < steps)
      backwards[place.first] =
          std::max(backwards[place.first], place.second + 1);
  return backwards;
}

LogicalResult GradientFile::checkTaken(int64_t steps,
                                       ArrayRef<int64_t> backwards,
                                       std::string &message) const {
  for (const auto &[place, tensor] : present) {
    auto [step, backward] = place;
    std::string start =
        "'" + path + "': '" + file.tensors[tensor].name + "' names ";
    if (step >= steps)
      return fail(message,
                  llvm::formatv("{0}step {1}, and --steps={2} runs {3}; "
                                "give --steps={4}",
                                start, step, steps,
                                steps == 1
                                    ? "step 0 only"
                                    : "steps 0 to " + std::to_string(steps - 1),
                                step + 1)
                      .str());
    int64_t made = backwards[step % backwards.size()];
    if (backward >= made)
      return fail(
          message,
          llvm::formatv("{0}backward pass {1}, and step {2} makes {3}; give "
                        "more with --accumulation",
                        start, backward, step, made)
              .str());
  }
  return success();
}

std::optional<std::vector<double>>
GradientFile::find(int64_t step, int64_t backward, int64_t rank,
                   const ParameterInfo &info) const {
  auto it = tensors.find(makeKey(step, backward, rank, info.name));
  if (it == tensors.end())
    return std::nullopt;
  std::vector<double> values;
  values.reserve(info.getNumHeld());
  for (const Number &number : unpack(file.tensors[it->second].bytes.data(),
                                     info.getNumHeld(), info.arrivalType))
    values.push_back(number.value);
  return values;
}
