//===- zero-ckpt.cpp - Lists and checks a checkpoint ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "tools/driver/Tool.h"

#include "checkpoint/inspect.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using zero::ExitCode;
using zero_rt::CheckpointSummary;
using zero_rt::CheckpointValue;
namespace cl = llvm::cl;
namespace json = llvm::json;

static cl::OptionCategory category("zero-ckpt options");
static cl::opt<std::string>
    commandFlag(cl::Positional, cl::desc("<list|verify>"), cl::cat(category));
static cl::opt<std::string> folderFlag(cl::Positional, cl::desc("<folder>"),
                                       cl::cat(category));
static cl::opt<bool> jsonFlag("json", cl::cat(category), cl::ValueDisallowed,
                              cl::desc("Print the result, or the errors, as "
                                       "one JSON object"));

static const char *const kOverview =
    R"(zero-ckpt: lists and checks a checkpoint of zero_rt_step_save

  zero-ckpt list run/checkpoint     its values, from the headers of its files
  zero-ckpt verify run/checkpoint   reads all of it, and compares the checksums

docs/checkpoints.md describes the files. The exit code is 1 if something is
damaged or missing.
)";

static bool isScalar(const CheckpointValue &value) {
  return value.elements == 1 && value.dtype == "f64";
}

static std::string describeMesh(const CheckpointSummary &summary) {
  std::string text;
  for (const auto &[axis, size] : summary.mesh)
    text += (text.empty() ? "" : ":") + axis + "=" + std::to_string(size);
  return text;
}

static json::Object toJson(const CheckpointSummary &summary) {
  json::Array values;
  for (const CheckpointValue &value : summary.values) {
    json::Object object{{"name", value.name},
                        {"part", value.part},
                        {"dtype", value.dtype},
                        {"elements", value.elements}};
    if (!value.addend.empty())
      object["addend"] = value.addend;
    if (isScalar(value) && std::isfinite(value.scalar))
      object["value"] = value.scalar;
    values.push_back(std::move(object));
  }
  json::Object mesh;
  for (const auto &[axis, size] : summary.mesh)
    mesh[axis] = size;
  return json::Object{
      {"save", summary.save},
      {"number", summary.number},
      {"backward_passes", summary.backwards},
      {"step", summary.step},
      {"plan_hash", llvm::formatv("{0:x-16}", summary.planHash).str()},
      {"mesh", std::move(mesh)},
      {"files", summary.files},
      {"bytes", summary.bytes},
      {"values", std::move(values)}};
}

static void print(const CheckpointSummary &summary, bool isVerified) {
  llvm::outs() << llvm::formatv(
      "number {0} of step '{1}' on {2}{3}: {4} in {5} of {6} bytes{7}\n",
      summary.number, summary.step, describeMesh(summary),
      summary.backwards
          ? ", behind " +
                zero::countOf(summary.backwards, "backward pass", "es") +
                " of the next step"
          : "",
      zero::countOf(summary.values.size(), "value"),
      zero::countOf(summary.files, "file"), summary.bytes,
      isVerified ? ", all as they were written" : "");
  if (isVerified)
    return;
  for (const CheckpointValue &value : summary.values) {
    llvm::outs() << "  " << value.name;
    if (!value.part.empty())
      llvm::outs() << " of part " << value.part;
    if (!value.addend.empty())
      llvm::outs() << " of addend " << value.addend;
    llvm::outs() << ": ";
    if (isScalar(value))
      llvm::outs() << llvm::format("%.17g", value.scalar) << "\n";
    else
      llvm::outs() << zero::countOf(value.elements, "element") << " of "
                   << value.dtype << "\n";
  }
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-ckpt", argc, argv);
  if (!tool.parse(category, kOverview, jsonFlag))
    return tool.finish();
  bool isVerify = commandFlag == "verify";
  if (!isVerify && commandFlag != "list")
    return tool.fail(ExitCode::usage, "the command must be list or verify, got "
                                      "'" +
                                          commandFlag + "'");
  if (folderFlag.empty())
    return tool.fail(ExitCode::usage,
                     "the folder of the checkpoint is missing");
  std::vector<std::string> errors;
  CheckpointSummary summary =
      zero_rt::inspectCheckpoint(folderFlag, isVerify, errors);
  for (const std::string &error : errors)
    tool.errors.add(ExitCode::failed, error);
  if (!jsonFlag && errors.empty())
    print(summary, isVerify);
  return tool.finish(errors.empty() ? toJson(summary) : json::Object());
}
