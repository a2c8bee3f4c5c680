//===- index.cpp - The index of a checkpoint ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/index.h"

#include "checkpoint/checksum.h"
#include "comm/communicator.h"
#include "core/json.h"
#include "core/status.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace zero_rt;

static constexpr const char *indexFormat = "zero-opt checkpoint";
/// Since version 2 a part is a box; layout.h.
static constexpr int64_t indexVersion = 3;
/// Of checkpoints without an accumulation in progress.
static constexpr int64_t betweenStepsVersion = 2;
/// An index of the maximum number of ranks is smaller.
static constexpr int64_t mostIndexBytes = int64_t(1) << 27;

std::string zero_rt::pathOfIndex(const std::string &folder) {
  return folder + "/checkpoint.json";
}

std::string zero_rt::pathOfSave(const std::string &folder, int64_t save) {
  return folder + "/save-" + std::to_string(save);
}

std::string zero_rt::pathOfRank(const std::string &folder, int64_t save,
                                int64_t rank) {
  char name[48];
  std::snprintf(name, sizeof(name), "/rank-%05lld.safetensors",
                (long long)rank);
  return pathOfSave(folder, save) + name;
}

int64_t zero_rt::readSaveName(const std::string &name) {
  long long save = 0;
  if (std::sscanf(name.c_str(), "save-%18lld", &save) != 1 || save < 1 ||
      save > mostSaves || name != "save-" + std::to_string(save))
    return 0;
  return save;
}

/// JSON has no numbers that are not finite.
static std::string formatNumber(double value) {
  char number[32] = "null";
  if (std::isfinite(value))
    std::snprintf(number, sizeof(number), "%.17g", value);
  return number;
}

/// The checksum of the text before it ends the text.
static std::string formatEnd(const std::string &text) {
  return "  \"checksum\": \"" + Checksum::of(text) + "\"\n}\n";
}

std::string zero_rt::formatIndex(const CheckpointIndex &index) {
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx",
                (unsigned long long)index.planHash);
  std::string text =
      "{\n  \"format\": " + quote(indexFormat) + ",\n  \"version\": " +
      std::to_string(index.backwards ? indexVersion : betweenStepsVersion) +
      ",\n  \"save\": " + std::to_string(index.save) +
      ",\n  \"number\": " + std::to_string(index.number) +
      (index.backwards
           ? ",\n  \"backward_passes\": " + std::to_string(index.backwards) +
                 ",\n  \"batch_ranks\": " + std::to_string(index.batchRanks)
           : "") +
      ",\n  \"step\": " + quote(index.step) +
      ",\n  \"plan_hash\": " + quote(hash);
  const char *comma = "";
  text += ",\n  \"mesh\": {";
  for (const auto &[axis, size] : index.mesh) {
    text += comma + quote(axis) + ": " + std::to_string(size);
    comma = ", ";
  }
  comma = "";
  text += "},\n  \"scalars\": {";
  for (const auto &[name, value] : index.scalars) {
    text += comma + quote(name) + ": " + formatNumber(value);
    comma = ", ";
  }
  comma = "";
  text += "},\n  \"loss_scale\": " + formatNumber(index.lossScale) +
          ",\n  \"files\": [";
  for (const FileDigest &file : index.files) {
    text += std::string(comma) +
            "\n    {\"bytes\": " + std::to_string(file.bytes) +
            ", \"checksum\": " + quote(file.checksum) + "}";
    comma = ",";
  }
  text += "\n  ],\n";
  return text + formatEnd(text);
}

static zero_rt_status readFields(const Json &root, CheckpointIndex &out) {
  const std::string *format = root.findText("format");
  if (!format || *format != indexFormat)
    return fail(ZERO_RT_INVALID_ARGUMENT, "it is no index of a checkpoint");
  auto count = [&](const char *key, int64_t least,
                   int64_t &value) -> zero_rt_status {
    const Json *found = root.find(key);
    if (found && found->isCount(value) && value >= least)
      return ZERO_RT_OK;
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' must be a whole number of at least %lld", key,
                (long long)least);
  };
  int64_t version = 0;
  ZERO_RT_TRY(count("version", 1, version));
  if (version > indexVersion)
    return fail(ZERO_RT_UNSUPPORTED,
                "it has version %lld, this runtime reads 1 to %lld; use a "
                "later runtime",
                (long long)version, (long long)indexVersion);
  ZERO_RT_TRY(count("save", 1, out.save));
  if (out.save > mostSaves)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'save' is %lld, expected at most %lld", (long long)out.save,
                (long long)mostSaves);
  ZERO_RT_TRY(count("number", 0, out.number));
  if (version > betweenStepsVersion)
    ZERO_RT_TRY(count("backward_passes", 1, out.backwards));
  if (out.backwards && root.find("batch_ranks"))
    ZERO_RT_TRY(count("batch_ranks", 0, out.batchRanks));
  if (out.backwards > mostBackwards)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'backward_passes' is %lld, expected at most %lld",
                (long long)out.backwards, (long long)mostBackwards);
  const std::string *step = root.findText("step");
  const std::string *hash = root.findText("plan_hash");
  const Json *mesh = root.find("mesh");
  if (!step || !hash || !mesh)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "it must have 'step', 'plan_hash' and 'mesh'");
  out.step = *step;
  out.planHash = std::strtoull(hash->c_str(), nullptr, 16);
  int64_t ranks = 1;
  for (const auto &[axis, value] : mesh->members) {
    int64_t size = 0;
    if (!value.isCount(size) || size < 1 || size > mostRanks / ranks)
      return fail(ZERO_RT_INVALID_ARGUMENT, "'mesh' must have sizes of axes");
    out.mesh.emplace_back(axis, size);
    ranks *= size;
  }
  const Json *files = root.find("files");
  if (!files || files->items.size() != size_t(ranks))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'files' must list a file for each of %lld ranks",
                (long long)ranks);
  if (out.batchRanks > ranks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'batch_ranks' is %lld, expected at most %lld",
                (long long)out.batchRanks, (long long)ranks);
  for (const Json &item : files->items) {
    FileDigest &file = out.files.emplace_back();
    const Json *bytes = item.find("bytes");
    const std::string *checksum = item.findText("checksum");
    if (!bytes || !bytes->isCount(file.bytes) || !checksum)
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "file %zu must have bytes and a checksum",
                  out.files.size() - 1);
    file.checksum = *checksum;
  }
  return ZERO_RT_OK;
}

static zero_rt_status parseIndex(const OpenFile &file, CheckpointIndex &out,
                                 std::string &outChecksum) {
  if (file.size() > mostIndexBytes)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "it has %lld bytes, expected at most %lld",
                (long long)file.size(), (long long)mostIndexBytes);
  std::string text(size_t(file.size()), '\0');
  ZERO_RT_TRY(file.read(text.data(), text.size(), 0));
  std::string end = formatEnd("");
  if (text.size() < end.size())
    return fail(ZERO_RT_INVALID_ARGUMENT, "it is truncated");
  std::string before = text.substr(0, text.size() - end.size());
  end = formatEnd(before);
  if (text.compare(before.size(), end.size(), end) != 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "it does not end with the checksum of its content: it is "
                "damaged or truncated, or was edited");
  outChecksum = Checksum::of(before);
  Json root;
  ZERO_RT_TRY(readJson(text, root));
  return readFields(root, out);
}

zero_rt_status zero_rt::readIndex(const std::string &folder,
                                  CheckpointIndex &out,
                                  std::string &outChecksum) {
  std::string path = pathOfIndex(folder);
  OpenFile file;
  ZERO_RT_TRY(file.open(path));
  if (zero_rt_status status = parseIndex(file, out, outChecksum))
    return fail(status, "'%s': %s", path.c_str(), lastMessage());
  return ZERO_RT_OK;
}
