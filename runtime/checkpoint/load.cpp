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
// Sums of gradients of a step that is under way have addends. A rank takes its
// own one, or adds several where it has a sum over more ranks, or where ranks
// are fewer. Sums are scaled where callers multiply gradients by another factor
// (prescaled.h).
//
//===----------------------------------------------------------------------===//

#include "checkpoint/accumulation.h"
#include "checkpoint/agree.h"
#include "checkpoint/index.h"
#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/state_entries.h"
#include "core/units.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

using namespace zero_rt;

namespace {

/// A checkpoint, as far as this rank needs it.
class Loader {
public:
  /// |atBegin|: leaves out the gradients of the step in which it was saved.
  Loader(Step &step, const char *folder, bool atBegin)
      : step(step), folder(folder), atBegin(atBegin) {}

  /// Finds the pieces of the state of this rank, which must have all of it.
  zero_rt_status find(PhaseReport &report) {
    std::string checksum;
    ZERO_RT_TRY(readIndex(folder, index, checksum));
    report.setChecksum(checksum);
    bool hasSums = index.backwards > 0;
    if (hasSums && !atBegin)
      ZERO_RT_TRY(findResumption(step, index, resumption));
    held = listHeldPieces(step, hasSums && !atBegin);
    sources.resize(held.size());
    numAddends.resize(held.size());
    StateNames names(step, hasSums && !atBegin);
    std::unordered_map<std::string, size_t> byName;
    for (size_t h = 0; h < held.size(); ++h)
      byName[held[h].name] = h;
    for (size_t f = 0; f < index.files.size(); ++f) {
      std::vector<StoredPiece> pieces;
      ZERO_RT_TRY(readRankFile(pathOf(f), index.files[f], pieces));
      for (StoredPiece &piece : pieces) {
        if (hasSums && atBegin && isOfAccumulation(piece))
          continue;
        if (zero_rt_status status = names.check(piece))
          return fail(status, "'%s': %s", pathOf(f).c_str(), lastMessage());
        auto found = byName.find(piece.name);
        if (found == byName.end())
          continue;
        const OwnPiece &own = held[found->second];
        if (!placeIn(own, piece))
          continue;
        int64_t &count = numAddends[found->second];
        if (count != 0 && count != piece.addend.count)
          return fail(ZERO_RT_INVALID_ARGUMENT,
                      "'%s': %s is of another number of addends than another "
                      "piece",
                      pathOf(f).c_str(), describePiece(piece).c_str());
        count = piece.addend.count;
        Quotient quotient;
        if (!divide(own.prescaled, piece.prescaled, resumption.passes,
                    quotient))
          return fail(ZERO_RT_INVALID_ARGUMENT,
                      "'%s': %s has a factor that is not known, and cannot be "
                      "compared; load the begin of that step",
                      pathOf(f).c_str(), describePiece(piece).c_str());
        if (own.addend.takes(piece.addend))
          sources[found->second].push_back({f, std::move(piece)});
      }
    }
    for (size_t h = 0; h < held.size(); ++h)
      ZERO_RT_TRY(checkCovered(h));
    return ZERO_RT_OK;
  }

  /// Reads all pieces and compares their checksums.
  zero_rt_status check() {
    for (size_t h = 0; h < held.size(); ++h)
      ZERO_RT_TRY(readEntry(h));
    return ZERO_RT_OK;
  }

  zero_rt_status writeState() {
    for (size_t h = 0; h < step.entries.size(); ++h) {
      ZERO_RT_TRY(readEntry(h));
      ZERO_RT_TRY(calls::state_write(&step, int64_t(h), entryBytes.data(),
                                     int64_t(entryBytes.size())));
    }
    // A later write of a parameter alone also sets its master weights.
    return closeWrites(step, "load");
  }

  /// Brings the step to where it was saved, if that was within a step.
  zero_rt_status resume() {
    if (resumption.backwards == 0)
      return ZERO_RT_OK;
    ZERO_RT_TRY(resumeAccumulation(step, resumption.backwards));
    for (size_t h = step.entries.size(); h < held.size(); ++h) {
      ZERO_RT_TRY(readEntry(h));
      ZERO_RT_TRY(writeSum(held[h]));
    }
    return step.device().finish();
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

  using Sources = std::vector<Source>;

  /// Checks the same as checkCovered of pieces in several boxes, element by
  /// element.
  zero_rt_status checkCoveredByBoxes(const OwnPiece &own,
                                     const Sources &pieces) const {
    std::vector<bool> found(size_t(own.end - own.begin));
    for (const Source &source : pieces) {
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

  /// Checks that |pieces|, of one addend, have each element of |own| once.
  zero_rt_status checkCovered(const OwnPiece &own, Sources pieces) const {
    if (std::any_of(pieces.begin(), pieces.end(), [&](const Source &source) {
          return !(source.piece.box == own.box);
        }))
      return checkCoveredByBoxes(own, pieces);
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

  /// Checks that the files have each element once, of each addend.
  zero_rt_status checkCovered(size_t h) const {
    const OwnPiece &own = held[h];
    std::map<int64_t, Sources> byAddend;
    for (const Source &source : sources[h])
      byAddend[source.piece.addend.number].push_back(source);
    if (numAddends[h] == 0)
      return failToCover(own, own.begin);
    for (const auto &[number, pieces] : byAddend)
      ZERO_RT_TRY(checkCovered(own, pieces));
    int64_t count = own.addend.countTaken(numAddends[h]);
    if (int64_t(byAddend.size()) == count)
      return ZERO_RT_OK;
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint '%s' has %zu addends of %s, expected %lld: files "
                "are missing or of another save",
                folder.c_str(), byAddend.size(), describePiece(own).c_str(),
                (long long)count);
  }

  /// Reads the elements of held piece |h| to |entryBytes|.
  zero_rt_status readEntry(size_t h) {
    const OwnPiece &own = held[h];
    int64_t size = elementSize(own.dtype);
    entryBytes.assign(size_t((own.end - own.begin) * size), 0);
    int64_t numTaken = own.addend.countTaken(numAddends[h]);
    auto getFactor = [&](const Source &source) {
      Quotient factor;
      divide(own.prescaled, source.piece.prescaled, resumption.passes, factor);
      return factor;
    };
    bool isAdded =
        numTaken > 1 ||
        std::any_of(sources[h].begin(), sources[h].end(),
                    [&](const Source &s) { return !getFactor(s).isOne(); });
    std::vector<double> sums(isAdded ? size_t(own.end - own.begin) : 0);
    for (const Source &source : sources[h]) {
      const StoredPiece &piece = source.piece;
      Quotient factor = getFactor(source);
      std::string path = pathOf(source.file);
      if (path != openPath) { // most pieces of a rank are in one file
        openFile = std::make_unique<OpenFile>();
        ZERO_RT_TRY(openFile->open(path));
        openPath = std::move(path);
      }
      ZERO_RT_TRY(readPiece(openPath, *openFile, piece, pieceBytes));
      auto copy = [&](int64_t inOwn, int64_t inPiece, int64_t count) {
        const char *from = pieceBytes.data() + (inPiece - piece.begin) * size;
        if (!isAdded) {
          std::copy_n(from, count * size,
                      entryBytes.data() + (inOwn - own.begin) * size);
          return;
        }
        std::vector<double> addends(static_cast<size_t>(count));
        convert(ZERO_RT_F64, addends.data(), own.dtype, from, count);
        for (int64_t i = 0; i < count; ++i)
          sums[size_t(inOwn - own.begin + i)] +=
              addends[size_t(i)] * factor.numerator / factor.denominator;
      };
      Range both = intersect({piece.begin, piece.end}, {own.begin, own.end});
      if (piece.box == own.box)
        copy(both.begin, both.begin, both.size());
      else
        forEachRun(own.box, {own.begin, own.end}, piece.box,
                   {piece.begin, piece.end}, copy);
    }
    if (isAdded)
      convert(own.dtype, entryBytes.data(), ZERO_RT_F64, sums.data(),
              int64_t(sums.size()));
    return own.isArrivals() ? checkArrivals(own, numTaken) : ZERO_RT_OK;
  }

  int64_t readArrivals() const {
    double count = 0;
    std::memcpy(&count, entryBytes.data(), sizeof(count));
    bool isCount = count >= 0 && count <= double(mostBackwards) &&
                   count == std::floor(count);
    return isCount ? int64_t(count) : -1;
  }

  zero_rt_status checkArrivals(const OwnPiece &own, int64_t addends) const {
    int64_t count = readArrivals();
    if (count >= 0 && count <= addends * index.backwards)
      return ZERO_RT_OK;
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint '%s' has no number of backward passes in '%s'",
                folder.c_str(), own.name.c_str());
  }

  /// Makes |entryBytes| the elements of |own|, which is no state.
  zero_rt_status writeSum(const OwnPiece &own) {
    if (own.isArrivals()) {
      // Those of neighbours may be more than this rank has backward passes.
      step.window.setDelivered(own.source.parameter,
                               std::min(readArrivals(), resumption.backwards));
      return ZERO_RT_OK;
    }
    void *memory = nullptr;
    ZERO_RT_TRY(dataOf(step, own.source, &memory));
    ZERO_RT_TRY(step.device().finish());
    return step.device().copy(memory, entryBytes.data(),
                              int64_t(entryBytes.size()));
  }

  Step &step;
  std::string folder;
  bool atBegin;
  CheckpointIndex index;
  Resumption resumption;
  std::vector<OwnPiece> held;
  std::vector<Sources> sources;    // by held piece
  std::vector<int64_t> numAddends; // by held piece; 0: the files have none
  std::string openPath;
  std::unique_ptr<OpenFile> openFile;
  std::vector<char> pieceBytes, entryBytes;
};

} // namespace

static zero_rt_status loadCheckpoint(Step *step, const char *folder,
                                     bool atBegin, int64_t *out_number) {
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
        loader = std::make_unique<Loader>(*step, folder, atBegin);
        ZERO_RT_TRY(loader->find(mine));
        return loader->check();
      },
      reports));
  for (size_t r = 1; r < reports.size(); ++r)
    if (std::strcmp(reports[r].checksum, reports[0].checksum) != 0)
      return fail(ZERO_RT_MISMATCH,
                  "rank %zu reads another checkpoint in '%s' than rank 0; load "
                  "one folder on all ranks",
                  r, folder);

  zero_rt_status status = agree(
      *step, "load", [&](PhaseReport &) { return loader->writeState(); },
      reports);
  if (!status)
    status = agree(
        *step, "load", [&](PhaseReport &) { return loader->resume(); },
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

zero_rt_status calls::load(Step *step, const char *folder,
                           int64_t *out_number) {
  return loadCheckpoint(step, folder, /*atBegin=*/false, out_number);
}

zero_rt_status calls::load_begin(Step *step, const char *folder,
                                 int64_t *out_number) {
  return loadCheckpoint(step, folder, /*atBegin=*/true, out_number);
}
