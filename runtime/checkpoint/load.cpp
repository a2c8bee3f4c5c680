//===- load.cpp - Reads a checkpoint --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank reads the index, the headers of all files, and then the pieces of its
// own state. It reads these twice: first to compare their checksums, and, when
// all ranks have found all of theirs whole, to write the state. So a checkpoint
// that is damaged changes nothing, and no second copy of the state is in
// memory.
//
//===----------------------------------------------------------------------===//

#include "checkpoint/agree.h"
#include "checkpoint/index.h"
#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/state_entries.h"
#include "core/units.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

namespace {

/// A checkpoint, as far as this rank needs it.
class Loader {
public:
  Loader(Step &step, const char *folder)
      : step(step), folder(folder), held(listHeldPieces(step)),
        sources(held.size()) {}

  /// Finds the pieces of the state of this rank, which must have all of it.
  zero_rt_status find(PhaseReport &report) {
    std::string checksum;
    ZERO_RT_TRY(readIndex(folder, index, checksum));
    report.setChecksum(checksum);
    StateNames names(step);
    std::unordered_map<std::string, size_t> byName;
    for (size_t h = 0; h < held.size(); ++h)
      byName[held[h].name] = h;
    for (size_t f = 0; f < index.files.size(); ++f) {
      std::vector<StoredPiece> pieces;
      ZERO_RT_TRY(readRankFile(pathOf(f), index.files[f], pieces));
      for (StoredPiece &piece : pieces) {
        if (zero_rt_status status = names.check(piece))
          return fail(status, "'%s': %s", pathOf(f).c_str(), lastMessage());
        auto found = byName.find(piece.name);
        if (found == byName.end())
          continue;
        const OwnPiece &own = held[found->second];
        if (placeIn(own, piece))
          sources[found->second].push_back({f, std::move(piece)});
      }
    }
    for (size_t h = 0; h < held.size(); ++h)
      ZERO_RT_TRY(checkCovered(h));
    return ZERO_RT_OK;
  }

  /// Reads all pieces and compares their checksums. |isWritten|: also writes
  /// the state.
  zero_rt_status read(bool isWritten) {
    for (size_t h = 0; h < held.size(); ++h)
      ZERO_RT_TRY(readEntry(h, isWritten));
    return ZERO_RT_OK;
  }

  int64_t number() const { return index.number; }

private:
  struct Source {
    size_t file;
    StoredPiece piece;
  };

  std::string pathOf(size_t file) const {
    return pathOfRank(folder, index.save, int64_t(file));
  }

  /// Whether |piece| may have elements of |own|. Sets its box where the file
  /// has none.
  static bool placeIn(const OwnPiece &own, StoredPiece &piece) {
    if (!piece.box.isKnown()) {
      bool isWhole = piece.part.empty() && own.box.isKnown();
      if (!isWhole && piece.part != own.axesPart)
        return false;
      piece.box = isWhole ? wholeOf(own.box) : own.box;
    }
    if (piece.box == own.box)
      return piece.begin < own.end && piece.end > own.begin;
    for (size_t d = 0; d < own.box.dimensions.size(); ++d) {
      const Box::Dimension &a = own.box.dimensions[d];
      const Box::Dimension &b = piece.box.dimensions[d];
      if (a.begin >= b.begin + b.extent || b.begin >= a.begin + a.extent)
        return false;
    }
    return true;
  }

  /// Checks the same as checkCovered of pieces in several boxes, element by
  /// element.
  zero_rt_status checkCoveredByBoxes(size_t h) {
    const OwnPiece &own = held[h];
    std::vector<bool> found(size_t(own.end - own.begin));
    for (const Source &source : sources[h]) {
      int64_t twice = -1;
      forEachRun(own.box, {own.begin, own.end}, source.piece.box,
                 {source.piece.begin, source.piece.end},
                 [&](int64_t inOwn, int64_t, int64_t count) {
                   for (int64_t i = inOwn; i < inOwn + count; ++i) {
                     if (twice < 0 && found[size_t(i - own.begin)])
                       twice = i;
                     found[size_t(i - own.begin)] = true;
                   }
                 });
      if (twice >= 0)
        return fail(ZERO_RT_INVALID_ARGUMENT,
                    "'%s' has element %lld of %s, and so has another piece",
                    pathOf(source.file).c_str(), (long long)twice,
                    describePiece(own).c_str());
    }
    auto missing = std::find(found.begin(), found.end(), false);
    if (missing == found.end())
      return ZERO_RT_OK;
    return failToCover(own, own.begin + (missing - found.begin()));
  }

  /// No file has elements of |own| from |begin| on.
  zero_rt_status failToCover(OwnPiece own, int64_t begin) const {
    own.begin = begin;
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint '%s' lacks elements of %s; load a checkpoint of a "
                "step with the same parameters and the same optimizer",
                folder.c_str(), describePiece(own).c_str());
  }

  zero_rt_status checkCovered(size_t h) {
    const OwnPiece &own = held[h];
    std::vector<Source> &pieces = sources[h];
    if (std::any_of(pieces.begin(), pieces.end(), [&](const Source &source) {
          return !(source.piece.box == own.box);
        }))
      return checkCoveredByBoxes(h);
    std::sort(pieces.begin(), pieces.end(),
              [](const Source &a, const Source &b) {
                return a.piece.begin < b.piece.begin;
              });
    int64_t end = pieces.empty() ? own.begin : pieces[0].piece.begin;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].piece.begin < end)
        return fail(ZERO_RT_INVALID_ARGUMENT,
                    "'%s' and '%s' both have elements of '%s' before element "
                    "%lld",
                    pathOf(pieces[i - 1].file).c_str(),
                    pathOf(pieces[i].file).c_str(), own.name.c_str(),
                    (long long)end);
      if (pieces[i].piece.begin > std::max(end, own.begin))
        break;
      end = pieces[i].piece.end;
    }
    if (end >= own.end)
      return ZERO_RT_OK;
    return failToCover(own, std::max(own.begin, end));
  }

  zero_rt_status readEntry(size_t h, bool isWritten) {
    const OwnPiece &own = held[h];
    int64_t size = elementSize(own.dtype);
    entryBytes.resize(size_t((own.end - own.begin) * size));
    for (const Source &source : sources[h]) {
      const StoredPiece &piece = source.piece;
      std::string path = pathOf(source.file);
      if (path != openPath) { // most pieces of a rank are in one file
        openFile = std::make_unique<OpenFile>();
        ZERO_RT_TRY(openFile->open(path));
        openPath = std::move(path);
      }
      ZERO_RT_TRY(readPiece(openPath, *openFile, piece, pieceBytes));
      auto copy = [&](int64_t inOwn, int64_t inPiece, int64_t count) {
        std::copy_n(pieceBytes.data() + (inPiece - piece.begin) * size,
                    count * size,
                    entryBytes.data() + (inOwn - own.begin) * size);
      };
      Range both = intersect({piece.begin, piece.end}, {own.begin, own.end});
      if (piece.box == own.box)
        copy(both.begin, both.begin, both.size());
      else
        forEachRun(own.box, {own.begin, own.end}, piece.box,
                   {piece.begin, piece.end}, copy);
    }
    if (!isWritten)
      return ZERO_RT_OK;
    return calls::state_write(&step, int64_t(own.entry), entryBytes.data(),
                              int64_t(entryBytes.size()));
  }

  Step &step;
  std::string folder;
  CheckpointIndex index;
  std::vector<OwnPiece> held;
  std::vector<std::vector<Source>> sources; // by held piece
  std::string openPath;
  std::unique_ptr<OpenFile> openFile;
  std::vector<char> pieceBytes, entryBytes;
};

} // namespace

zero_rt_status calls::load(Step *step, const char *folder,
                           int64_t *out_number) {
  std::unique_ptr<Loader> loader;
  std::vector<PhaseReport> reports;
  ZERO_RT_TRY(agree(
      *step, "load",
      [&](PhaseReport &mine) -> zero_rt_status {
        if (!folder || !*folder)
          return fail(ZERO_RT_INVALID_ARGUMENT, "folder is %s",
                      folder ? "empty" : "null");
        ZERO_RT_TRY(requireIdle(*step, "load"));
        ZERO_RT_TRY(requireSharded(*step, "load"));
        loader = std::make_unique<Loader>(*step, folder);
        ZERO_RT_TRY(loader->find(mine));
        return loader->read(/*isWritten=*/false);
      },
      reports));
  for (size_t r = 1; r < reports.size(); ++r)
    if (std::strcmp(reports[r].checksum, reports[0].checksum) != 0)
      return fail(ZERO_RT_MISMATCH,
                  "rank %zu reads another checkpoint in '%s' than rank 0; load "
                  "one folder on all ranks",
                  r, folder);

  zero_rt_status status = agree(
      *step, "load",
      [&](PhaseReport &) -> zero_rt_status {
        ZERO_RT_TRY(loader->read(/*isWritten=*/true));
        // A later write of a parameter alone also sets its master weights.
        return closeWrites(*step, "load");
      },
      reports);
  if (status) { // some of the state is that of the checkpoint
    if (!step->poisonedBy[0])
      poisonStep(*step, "load", status);
    return status;
  }
  if (out_number)
    *out_number = loader->number();
  return ZERO_RT_OK;
}
