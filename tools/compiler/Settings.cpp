//===- Settings.cpp - The options of a compile ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/Settings.h"

#include "tools/driver/Nesting.h"
#include "tools/plan/PlanBytes.h"
#include "tools/plan/PlanTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

/// What --target says of CUDA; none for a CPU.
static LogicalResult getCudaTarget(StringRef target,
                                   std::optional<CudaTargetOptions> &cuda,
                                   std::string &message) {
  if (target == "cpu")
    return success();
  auto [kind, archs] = target.split(':');
  if (kind != "cuda") {
    message = ("--target must be cpu or cuda[:sm_90,...], got '" + target + "'")
                  .str();
    return failure();
  }
  cuda.emplace();
  if (target == "cuda")
    return success();
  SmallVector<StringRef> list;
  archs.split(list, ',');
  for (StringRef arch : list) {
    if (failed(checkCudaArch(arch, message))) {
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

LogicalResult CompileSettings::get(LowerOptions &lower, CompileOptions &compile,
                                   std::string &message) const {
  int64_t most;
  if (failed(checkCpuName(cpu.text, message)) ||
      failed(LowerSettings::get(lower, message)) ||
      failed(getCudaTarget(target.text, compile.cuda, message)) ||
      failed(readMaxBytes(maxBytes, most, message)) ||
      (name.isGiven && failed(checkLibraryName(name.text, message))))
    return failure();
  compile.name = name.text;
  compile.target.cpu = cpu.text;
  return success();
}

LogicalResult CompileSettings::checkMemory(StringRef plan,
                                           std::string &message) const {
  int64_t most;
  if (failed(readMaxBytes(maxBytes, most, message)))
    return failure();
  if (!most)
    return success();
  json::Value read = cantFail(json::parse(plan));
  int64_t needed = getMostBytes(*read.getAsObject(), "device");
  if (needed <= most)
    return success();
  message = describeExcess(needed, most) +
            "; zero-explain --max-bytes=" + maxBytes.text +
            " says at which --stage and --offload it fits";
  return failure();
}

/// Puts |value| into |option|.
static LogicalResult setOption(OptionText &option, const json::Value &value,
                               std::string &message) {
  if (std::optional<StringRef> text = value.getAsString())
    option.text = text->str();
  else if (std::optional<int64_t> number = value.getAsInteger())
    option.text = std::to_string(*number);
  else {
    message =
        ("options: '" + option.name + "' must be a string or a whole number")
            .str();
    return failure();
  }
  option.isGiven = true;
  return success();
}

LogicalResult zero::readSettings(StringRef text, CompileSettings &settings,
                                 std::string &message) {
  constexpr const char *kExpected =
      "options: must be an object of JSON, such as {\"stage\": 2}";
  if (isNestedDeeply(text)) {
    message = kExpected;
    return failure();
  }
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    message = "options: " + toString(parsed.takeError());
    return failure();
  }
  const json::Object *object = parsed->getAsObject();
  if (!object) {
    message = kExpected;
    return failure();
  }
  SmallVector<OptionText *> known;
  for (OptionText LowerSettings::*option : kLowerOptions)
    // Only a scheduled step has code, so --until is not for clients.
    if (option != &LowerSettings::until)
      known.push_back(&(settings.*option));
  known.append({&settings.name, &settings.step, &settings.cpu, &settings.target,
                &settings.maxBytes, &settings.cache});
  for (const auto &[key, value] : *object) {
    auto **option = llvm::find_if(known, [&key = key](OptionText *option) {
      return option->name == StringRef(key);
    });
    if (option == known.end()) {
      message =
          "options: unknown option '" + StringRef(key).str() + "', expected " +
          llvm::join(
              llvm::map_range(known,
                              [](OptionText *option) { return option->name; }),
              ", ");
      return failure();
    }
    if (failed(setOption(**option, value, message)))
      return failure();
  }
  return success();
}
