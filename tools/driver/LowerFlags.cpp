//===- LowerFlags.cpp - Options of the way to the scheduled phase ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options are strings, and are read here: what LLVM says of a value that does
// not parse goes to stderr, also where errors are to be JSON, and does not say
// which values there are.
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"

#include "dialect/zero/ZeroDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

TextFlag::TextFlag(OptionText &option, cl::OptionCategory &category,
                   StringRef value, StringRef description)
    : opt(option.name, cl::location(option.text), cl::cat(category),
          cl::value_desc(value), cl::desc(description),
          cl::callback(
              [&option](const std::string &) { option.isGiven = true; })) {}

LowerFlags::LowerFlags(LowerSettings &settings, cl::OptionCategory &category)
    : mesh(settings.mesh, category, "dp=4",
           "Sizes of mesh axes, such as edp=2:tp=4 or edp=2,tp=4 (default: "
           "the sizes in the IR)"),
      stage(settings.stage, category, "0|1|2|3",
            "ZeRO stage (default 1). Stage 3 shards the "
            "parameters of each zero.unit"),
      shardOver(settings.shardOver, category, "edp,ep",
                "Axes that divide master weights and optimizer "
                "state. Ranks along\nother axes hold replicas "
                "(default: all axes of the gradient's sum)"),
      keepAfterForward(settings.keepAfterForward, category, "none|last|all",
                       "Units of stage 3 that a caller keeps from the forward "
                       "to the backward\npass, in memory of their own: none "
                       "(default), last or all. A step may\nsay so itself"),
      unitOrder(settings.unitOrder, category, "calls|declared",
                "Order in which a caller of stage 3 unshards units: that of "
                "its calls\n(default), and it says what to gather ahead; or "
                "declared: as the step\nlists units, backward in reverse, or "
                "as its zero.unit_order says. The\nlibrary gathers the next "
                "unit ahead, and another unit is an error"),
      prefetchUnits(settings.prefetchUnits, category, "N",
                    "Units of the declared order that are gathered ahead "
                    "(default 1, or as the\nstep's zero.unit_order says); "
                    "there is memory for N + 1 units"),
      reduce(settings.reduce, category, "backward|apply",
             "When stage 3 sums gradients over the ranks: in each backward "
             "pass\n(backward, default); or once a step, and each rank keeps "
             "whole gradients\nof all backward passes (apply)"),
      accumulate(settings.accumulate, category, "in-place|apart",
                 "Where stage 1 sums the gradients of several backward passes. "
                 "in-place\n(default): where they arrive, in the type of the "
                 "sum. apart: gradients stay\nas they arrive, and a step of "
                 "one backward pass has no other copy of them,\none of "
                 "several has both. So less memory for the one, and more for "
                 "the other"),
      offload(settings.offload, category, "none|optimizer|parameters",
              "State in host memory: none (default), "
              "optimizer: host memory\nholds master weights and "
              "optimizer state, and updates run there;\nparameters: at stage 3 "
              "slices of units are there, too"),
      bucketBytes(settings.bucketBytes, category, "",
                  "Size at which a bucket is closed (default 25MiB)"),
      until(settings.until, category, "",
            "Phase to stop at: logical, sharded, placed, "
            "lowered or scheduled (default)") {}

std::optional<int64_t> zero::parseBytes(StringRef text) {
  int64_t unit = 1;
  if (text.consume_back("GiB"))
    unit = int64_t(1) << 30;
  else if (text.consume_back("MiB"))
    unit = int64_t(1) << 20;
  else if (text.consume_back("KiB"))
    unit = int64_t(1) << 10;
  int64_t count;
  if (text.getAsInteger(10, count) || count < 1 ||
      count > std::numeric_limits<int64_t>::max() / unit)
    return std::nullopt;
  return count * unit;
}

LogicalResult LowerSettings::checkNone(bool hasReference,
                                       const llvm::Twine &reason,
                                       std::string &message) const {
  for (OptionText LowerSettings::*member : kLowerOptions) {
    const OptionText &option = this->*member;
    if (!option.isGiven || (hasReference && &option == &mesh))
      continue;
    message = ("--" + option.name +
               " applies to the lowering of a logical step, and " + reason +
               "; leave out --" + option.name)
                  .str();
    return failure();
  }
  return success();
}

/// Sets |message| to "--FLAG must be EXPECTED, got 'TEXT'HINT".
static LogicalResult reject(const OptionText &option,
                            const llvm::Twine &expected, std::string &message,
                            const llvm::Twine &hint = "") {
  message = ("--" + option.name + " must be " + expected + ", got '" +
             option.text + "'" + hint)
                .str();
  return failure();
}

/// "25MB" and "1e9" as a user meant them.
static std::string getSizeHint(StringRef text) {
  StringRef digits = text.take_while(llvm::isDigit);
  StringRef unit = text.drop_front(digits.size()).trim();
  for (StringRef prefix : {"K", "M", "G"})
    if (!digits.empty() &&
        (unit.equals_insensitive(prefix) ||
         unit.equals_insensitive((prefix + "B").str()) ||
         unit.equals_insensitive((prefix + "iB").str())) &&
        text != (digits + prefix + "iB").str())
      return ("; did you mean " + digits + prefix + "iB?").str();
  double number;
  if (!text.getAsDouble(number) && number >= 1 && number < 1e18)
    return "; did you mean " + std::to_string(int64_t(number)) + "?";
  return "";
}

std::string zero::separateByColons(StringRef mesh) {
  std::string text = mesh.str();
  std::replace(text.begin(), text.end(), ',', ':');
  return text;
}

/// The axes and sizes that |mesh| names; failure where it does not parse.
static FailureOr<MeshAxes> parseMesh(StringRef mesh) {
  MeshAxes axes;
  SmallVector<StringRef> parts;
  std::string text = separateByColons(mesh);
  StringRef(text).split(parts, ':');
  for (StringRef part : parts) {
    auto [axis, text] = part.split('=');
    int64_t size = 0;
    if (axis.empty() || text.getAsInteger(10, size) || size < 1)
      return failure();
    axes.push_back({axis.str(), size});
  }
  return axes;
}

FailureOr<MeshAxes> zero::readMesh(const OptionText &mesh,
                                   std::string &message) {
  FailureOr<MeshAxes> axes = parseMesh(mesh.text);
  if (failed(axes))
    return reject(mesh,
                  "axes and their sizes of at least 1, such as dp=4 or "
                  "edp=2:tp=4",
                  message);
  llvm::StringSet<> seen;
  for (auto &[axis, size] : *axes)
    if (!seen.insert(axis).second)
      return reject(mesh, "one size for each axis", message,
                    ", with two sizes for '" + axis + "'");
  return axes;
}

FailureOr<MeshAxes> LowerSettings::getMesh(std::string &message) const {
  if (mesh.text.empty())
    return MeshAxes{{"dp", 1}};
  return readMesh(mesh, message);
}

LogicalResult LowerSettings::checkAxes(ModuleOp module, StringRef file,
                                       StringRef mesh, StringRef flag,
                                       std::string &message) {
  if (mesh.empty())
    return success();
  auto axes = parseMesh(mesh);
  if (failed(axes))
    return failure();
  for (auto &[axis, size] : *axes) {
    SmallVector<std::string> known;
    for (auto op : module.getOps<MeshOp>())
      for (auto own : op.getAxes().getAsRange<MeshAxisAttr>())
        known.push_back("'" + own.getName().str() + "'");
    if (llvm::is_contained(known, "'" + axis + "'"))
      continue;
    message = (flag + " sets axis '" + axis + "', which the mesh of " + file +
               " does not have; its axes are " + llvm::join(known, ", "))
                  .str();
    return failure();
  }
  return success();
}

LogicalResult LowerSettings::checkMesh(ModuleOp module, StringRef file,
                                       std::string &message) const {
  return checkAxes(module, file, mesh.text, "--mesh=" + mesh.text, message);
}

LogicalResult LowerSettings::get(LowerOptions &options,
                                 std::string &message) const {
  if (mesh.isGiven && failed(readMesh(mesh, message)))
    return failure();
  int level = 0;
  if (StringRef(stage.text).getAsInteger(10, level) || level < 0 || level > 3)
    return reject(stage, "0, 1, 2 or 3", message);
  if (offload.text != "none" && offload.text != "optimizer" &&
      offload.text != "parameters")
    return reject(offload, "none, optimizer or parameters", message,
                  offload.text == "cpu"
                      ? "; optimizer keeps the master weights and "
                        "the optimizer state in host memory and "
                        "updates them there"
                      : "");
  if (keepAfterForward.text != "none" && keepAfterForward.text != "last" &&
      keepAfterForward.text != "all")
    return reject(keepAfterForward, "none, last or all", message);
  if (keepAfterForward.text != "none" && level != 3)
    return reject(keepAfterForward, "none at stage " + stage.text, message,
                  "; parameters are whole there, or give --stage=3");
  if (unitOrder.text != "calls" && unitOrder.text != "declared")
    return reject(unitOrder, "calls or declared", message);
  if (unitOrder.text == "declared" && level != 3)
    return reject(unitOrder, "calls at stage " + stage.text, message,
                  "; parameters are whole there, or give --stage=3");
  int64_t prefetch = -1;
  if (!prefetchUnits.text.empty() &&
      (StringRef(prefetchUnits.text).getAsInteger(10, prefetch) ||
       prefetch < 0))
    return reject(prefetchUnits, "a whole number of units, such as 2", message);
  if (prefetch >= 0 && unitOrder.text != "declared")
    return reject(prefetchUnits, "left out without --unit-order=declared",
                  message,
                  "; where the order is that of the calls, the caller says "
                  "what to gather ahead");
  if (reduce.text != "backward" && reduce.text != "apply")
    return reject(reduce, "backward or apply", message);
  if (reduce.text == "apply" && level != 3)
    return reject(reduce, "backward at stage " + stage.text, message,
                  "; stage 1 reduces at apply and stage 2 in each backward "
                  "pass, or give --stage=3");
  if (accumulate.text != "in-place" && accumulate.text != "apart")
    return reject(accumulate, "in-place or apart", message);
  bool reducesAtApply = level == 1 || (level == 3 && reduce.text == "apply");
  if (accumulate.text == "apart" && !reducesAtApply)
    return reject(accumulate, "in-place at stage " + stage.text, message,
                  level == 0
                      ? "; stage 0 sums over the ranks in place, too, or give "
                        "--stage=1"
                      : "; gradients stay as they arrive there in any case");
  std::optional<int64_t> bytes = parseBytes(bucketBytes.text);
  if (!bytes)
    return reject(bucketBytes,
                  "a whole number of bytes, or of KiB, MiB or GiB, such as "
                  "25MiB",
                  message, getSizeHint(bucketBytes.text));
  if (until.text != "logical" && until.text != "sharded" &&
      until.text != "placed" && until.text != "lowered" &&
      until.text != "scheduled")
    return reject(until, "logical, sharded, placed, lowered or scheduled",
                  message);
  options.mesh = separateByColons(mesh.text);
  options.stage = level;
  options.shardOver = shardOver.text;
  options.keepAfterForward = keepAfterForward.text;
  options.unitOrder = unitOrder.text;
  options.prefetchUnits = prefetch;
  options.reduce = reduce.text;
  options.accumulate = accumulate.text;
  options.offload = offload.text;
  options.bucketBytes = *bytes;
  options.until = until.text;
  return success();
}
