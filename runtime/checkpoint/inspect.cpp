//===- inspect.cpp - What is in a checkpoint ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/inspect.h"

#include "checkpoint/index.h"
#include "core/numeric.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace zero_rt;

namespace {

class Inspector {
public:
  Inspector(const std::string &folder, bool readsData,
            std::vector<std::string> &errors)
      : folder(folder), readsData(readsData), errors(errors) {}

  zero_rt_status inspect(CheckpointSummary &summary) {
    CheckpointIndex index;
    std::string checksum;
    ZERO_RT_TRY(readIndex(folder, index, checksum));
    summary.save = index.save;
    summary.number = index.number;
    summary.backwards = index.backwards;
    summary.step = index.step;
    summary.planHash = index.planHash;
    summary.mesh = index.mesh;
    summary.files = int64_t(index.files.size());
    for (size_t f = 0; f < index.files.size(); ++f)
      keep(readFile(pathOfRank(folder, index.save, int64_t(f)), index.files[f],
                    summary));
    for (const auto &[key, pieces] : byValue)
      keep(joinPieces(key, pieces, summary));
    for (const auto &[name, addends] : byName)
      keep(checkAddends(name, addends));
    return ZERO_RT_OK;
  }

  /// Adds a failure to the errors.
  void keep(zero_rt_status status) {
    if (status)
      errors.emplace_back(lastMessage());
  }

private:
  using Key =
      std::tuple<std::string, std::string, int64_t>; // name, part, addend

  zero_rt_status readFile(const std::string &path, const FileDigest &digest,
                          CheckpointSummary &summary) {
    std::vector<StoredPiece> pieces;
    ZERO_RT_TRY(readRankFile(path, digest, pieces));
    summary.bytes += digest.bytes;
    OpenFile file;
    ZERO_RT_TRY(file.open(path));
    std::vector<char> data;
    for (StoredPiece &piece : pieces) {
      Key key(piece.name, piece.part, piece.addend.number);
      bool isScalar = piece.dtype == ZERO_RT_F64 && piece.elements == 1;
      if (isScalar) {
        zero_rt_status status = readPiece(path, file, piece, data);
        keep(status);
        if (!status)
          std::memcpy(&scalars[key], data.data(), sizeof(double));
      } else if (readsData) {
        keep(checkPiece(path, file, piece));
      }
      keep(checkMarks(piece));
      if (isOfAccumulation(piece) && summary.backwards == 0)
        keep(fail(ZERO_RT_INVALID_ARGUMENT,
                  "'%s' has %s, and the index has no backward passes",
                  path.c_str(), describePiece(piece).c_str()));
      std::string of = piece.part.empty() ? "" : "' of part '" + piece.part;
      byName[piece.name + of].insert({piece.addend.number, piece.addend.count});
      byValue[key].push_back(std::move(piece));
    }
    return ZERO_RT_OK;
  }

  /// Checks that all addends of a value are there.
  static zero_rt_status
  checkAddends(const std::string &name,
               const std::set<std::pair<int64_t, int64_t>> &addends) {
    auto count = int64_t(addends.size());
    if (std::all_of(addends.begin(), addends.end(),
                    [&](const auto &addend) { return addend.second == count; }))
      return ZERO_RT_OK;
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' has %zu addends, which are not those of all ranks",
                name.c_str(), addends.size());
  }

  /// Checks that |pieces| have each element of their value once.
  zero_rt_status joinPieces(const Key &key, std::vector<StoredPiece> pieces,
                            CheckpointSummary &summary) {
    std::sort(pieces.begin(), pieces.end(),
              [](const StoredPiece &a, const StoredPiece &b) {
                return a.begin < b.begin;
              });
    const StoredPiece &first = pieces[0];
    summary.values.push_back({first.name, first.part,
                              first.addend.isWhole() ? "" : first.addend.text(),
                              dtypeName(first.dtype), first.elements,
                              scalars[key]});
    int64_t end = 0;
    for (const StoredPiece &piece : pieces) {
      if (piece.dtype != first.dtype || piece.elements != first.elements)
        return fail(ZERO_RT_INVALID_ARGUMENT,
                    "%s has another dtype or number of elements than %s",
                    describePiece(piece).c_str(), describePiece(first).c_str());
      if (piece.begin < end)
        return fail(ZERO_RT_INVALID_ARGUMENT,
                    "the elements of %s before %lld are in two files",
                    describePiece(piece).c_str(), (long long)end);
      if (piece.begin > end)
        return fail(ZERO_RT_INVALID_ARGUMENT,
                    "elements %lld to %lld before %s are in no file",
                    (long long)end, (long long)piece.begin,
                    describePiece(piece).c_str());
      end = piece.end;
    }
    if (end == first.elements)
      return ZERO_RT_OK;
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "elements %lld to %lld behind %s are in no file",
                (long long)end, (long long)first.elements,
                describePiece(pieces.back()).c_str());
  }

  const std::string &folder;
  bool readsData;
  std::vector<std::string> &errors;
  std::map<Key, std::vector<StoredPiece>> byValue;
  /// By name and part: the numbers of addends, and their counts.
  std::map<std::string, std::set<std::pair<int64_t, int64_t>>> byName;
  std::map<Key, double> scalars;
};

} // namespace

CheckpointSummary zero_rt::inspectCheckpoint(const std::string &folder,
                                             bool readsData,
                                             std::vector<std::string> &errors) {
  CheckpointSummary summary;
  Inspector inspector(folder, readsData, errors);
  inspector.keep(
      guarded("inspect", [&] { return inspector.inspect(summary); }));
  return summary;
}
