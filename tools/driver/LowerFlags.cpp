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

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

LowerFlags::LowerFlags(cl::OptionCategory &category)
    : mesh("mesh", cl::cat(category), cl::value_desc("dp=4"),
           cl::desc("Sizes of mesh axes, such as edp=2:tp=4 (default: "
                    "the sizes in the IR)")),
      stage("stage", cl::init("1"), cl::cat(category), cl::value_desc("0|1|2"),
            cl::desc("ZeRO stage (default 1)")),
      shardOver("shard-over", cl::cat(category), cl::value_desc("edp,ep"),
                cl::desc("Axes that divide master weights and optimizer "
                         "state. Ranks along\nother axes hold replicas "
                         "(default: all axes of the gradient's sum)")),
      offload("offload", cl::init("none"), cl::cat(category),
              cl::value_desc("none|optimizer"),
              cl::desc("State in host memory: none (default), or "
                       "optimizer: host memory\nholds master weights and "
                       "optimizer state, and updates run there")),
      bucketBytes("bucket-bytes", cl::init("25MiB"), cl::cat(category),
                  cl::desc("Size at which a bucket is closed (default 25MiB)")),
      until("until", cl::init("scheduled"), cl::cat(category),
            cl::desc("Phase to stop at: logical, sharded, placed, "
                     "lowered or scheduled (default)")) {}

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

LogicalResult LowerFlags::checkNone(bool hasReference,
                                    const llvm::Twine &reason,
                                    std::string &message) const {
  for (const llvm::cl::Option *flag :
       std::initializer_list<const llvm::cl::Option *>{
           &mesh, &stage, &shardOver, &offload, &bucketBytes, &until}) {
    if (flag->getNumOccurrences() == 0 || (hasReference && flag == &mesh))
      continue;
    message = ("--" + flag->ArgStr +
               " applies to the lowering of a logical step, and " + reason +
               "; leave out --" + flag->ArgStr)
                  .str();
    return failure();
  }
  return success();
}

/// Sets |message| to "--FLAG must be EXPECTED, got 'TEXT'HINT".
static LogicalResult reject(const cl::opt<std::string> &flag,
                            const llvm::Twine &expected, std::string &message,
                            const llvm::Twine &hint = "") {
  message = ("--" + flag.ArgStr + " must be " + expected + ", got '" +
             flag.getValue() + "'" + hint)
                .str();
  return failure();
}

/// "25MB" and "1e9" as a user meant them.
static std::string getSizeHint(StringRef text) {
  StringRef digits = text.take_while(llvm::isDigit);
  StringRef unit = text.drop_front(digits.size()).trim();
  for (StringRef prefix : {"K", "M", "G"})
    if (!digits.empty() && (unit.equals_insensitive(prefix) ||
                            unit.equals_insensitive((prefix + "B").str()) ||
                            unit.equals_insensitive((prefix + "iB").str())))
      return ("; did you mean " + digits + prefix + "iB?").str();
  double number;
  if (!text.getAsDouble(number) && number >= 1 && number < 1e18)
    return "; did you mean " + std::to_string(int64_t(number)) + "?";
  return "";
}

/// The axes and sizes that |mesh| names; failure where it does not parse.
static FailureOr<MeshAxes> parseMesh(StringRef mesh) {
  MeshAxes axes;
  SmallVector<StringRef> parts;
  mesh.split(parts, ':');
  for (StringRef part : parts) {
    auto [axis, text] = part.split('=');
    int64_t size = 0;
    if (axis.empty() || text.getAsInteger(10, size) || size < 1)
      return failure();
    axes.push_back({axis.str(), size});
  }
  return axes;
}

FailureOr<MeshAxes> zero::readMesh(const cl::opt<std::string> &flag,
                                   std::string &message) {
  FailureOr<MeshAxes> axes = parseMesh(flag);
  if (failed(axes)) {
    bool hasComma = succeeded(
        parseMesh(llvm::join(llvm::split(StringRef(flag), ','), ":")));
    return reject(flag,
                  "axes and their sizes of at least 1, such as dp=4 or "
                  "edp=2:tp=4",
                  message, hasComma ? "; axes are separated by ':'" : "");
  }
  llvm::StringSet<> seen;
  for (auto &[axis, size] : *axes)
    if (!seen.insert(axis).second)
      return reject(flag, "one size for each axis", message,
                    ", with two sizes for '" + axis + "'");
  return axes;
}

FailureOr<MeshAxes> LowerFlags::getMesh(std::string &message) const {
  if (mesh.empty())
    return MeshAxes{{"dp", 1}};
  return readMesh(mesh, message);
}

LogicalResult LowerFlags::checkAxes(ModuleOp module, StringRef file,
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

LogicalResult LowerFlags::checkMesh(ModuleOp module, StringRef file,
                                    std::string &message) const {
  return checkAxes(module, file, mesh, "--mesh=" + mesh.getValue(), message);
}

LogicalResult LowerFlags::get(LowerOptions &options,
                              std::string &message) const {
  if (mesh.getNumOccurrences() && failed(readMesh(mesh, message)))
    return failure();
  int level = 0;
  if (StringRef(stage).getAsInteger(10, level) || level < 0 || level > 2)
    return reject(stage, "0, 1 or 2", message,
                  stage == "3" ? "; stage 3, which shards parameters, is not "
                                 "supported yet"
                               : "");
  if (offload != "none" && offload != "optimizer")
    return reject(offload, "none or optimizer", message,
                  offload == "cpu" ? "; optimizer keeps the master weights and "
                                     "the optimizer state in host memory and "
                                     "updates them there"
                                   : "");
  std::optional<int64_t> bytes = parseBytes(bucketBytes);
  if (!bytes)
    return reject(bucketBytes,
                  "a whole number of bytes, or of KiB, MiB or GiB, such as "
                  "25MiB",
                  message, getSizeHint(bucketBytes));
  if (until != "logical" && until != "sharded" && until != "placed" &&
      until != "lowered" && until != "scheduled")
    return reject(until, "logical, sharded, placed, lowered or scheduled",
                  message);
  options.mesh = mesh.getValue();
  options.stage = level;
  options.shardOver = shardOver.getValue();
  options.offload = offload.getValue();
  options.bucketBytes = *bytes;
  options.until = until.getValue();
  return success();
}
