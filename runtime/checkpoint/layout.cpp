//===- layout.cpp - Which rank writes which state -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/layout.h"

#include "core/json.h"
#include "core/numeric.h"
#include "core/stages.h"

#include <algorithm>

using namespace zero_rt;

static std::string nameValue(const zero_rt_library &library, int64_t parameter,
                             const char *role) {
  if (parameter < 0)
    return role;
  int64_t name = library.parameters[parameter].name;
  return std::string(library.strings + name) + "." + role;
}

static int64_t axesOf(const zero_rt_library &library, int64_t set) {
  return set < 0 ? 0 : library.axis_sets[set];
}

/// The axes that divide the parameters of |bucket| into parts. Over axes of
/// pipeline stages ranks have other parameters, and not other parts.
static int64_t partAxes(const zero_rt_library &whole,
                        const zero_rt_library &library, int64_t bucket) {
  return axesOf(library, library.buckets[bucket].rows) & ~whole.stage_axes;
}

/// The coordinates of |rank| over |axes|, and their sizes: "dp=1/4,ep=0/2".
/// Axes of one rank are left out.
static std::string describeCoordinates(const zero_rt_library &library,
                                       int64_t axes, int32_t rank) {
  std::string text;
  for (int64_t a = 0; a < library.num_axes; ++a)
    if (const zero_rt_axis_row &axis = library.axes[a];
        (axes >> a & 1) && axis.size > 1)
      text += (text.empty() ? "" : ",") +
              std::string(library.strings + axis.name) + "=" +
              std::to_string(coordinateOf(library, rank, a)) + "/" +
              std::to_string(axis.size);
  return text;
}

/// The addend of this rank, where ranks that differ over |axes| have one of
/// their own. Only stages that have |parameter| have one.
static Addend addendOf(const Step &step, int32_t parameter, int64_t axes) {
  const zero_rt_library &whole = *step.whole;
  int32_t rank = step.runtime->rank;
  Addend addend{0, 0};
  for (int32_t other : groupOf(whole, axes & whole.stage_axes, rank)) {
    if (stageOf(whole, other).parameters[parameter].bucket < 0)
      continue;
    if (other == rank)
      addend.number = addend.count;
    ++addend.count;
  }
  for (int64_t a = 0; a < whole.num_axes; ++a)
    if ((axes & ~whole.stage_axes) >> a & 1) {
      int64_t size = whole.axes[a].size;
      addend.number = addend.number * size + coordinateOf(whole, rank, a);
      addend.count *= size;
    }
  return addend;
}

std::string zero_rt::describePiece(const Piece &piece) {
  std::string text = "'" + piece.name + "' [" + std::to_string(piece.begin) +
                     ", " + std::to_string(piece.end) + ")";
  if (!piece.part.empty())
    text += " of part " + piece.part;
  return piece.addend.isWhole() ? text
                                : text + " of addend " + piece.addend.text();
}

static OwnPiece makePiece(const Step &step, const StateEntry &entry) {
  const zero_rt_library &library = *step.library;
  OwnPiece piece;
  piece.source = entry;
  piece.name = nameValue(library, entry.parameter, entry.role);
  piece.dtype = ZERO_RT_F64;
  piece.begin = entry.begin;
  piece.end = entry.end;
  piece.elements = 1;
  if (entry.parameter < 0 || entry.buffer < 0)
    return piece;
  const zero_rt_parameter_row &row = library.parameters[entry.parameter];
  piece.axesPart = describeCoordinates(
      library, partAxes(*step.whole, library, row.bucket), step.runtime->rank);
  piece.box = boxOf(*step.whole, entry.parameter, step.runtime->rank);
  piece.part = !piece.box.isKnown()   ? piece.axesPart
               : !piece.box.isWhole() ? piece.box.text()
                                      : "";
  piece.dtype = int32_t(library.buffers[entry.buffer].dtype);
  piece.elements = row.elements;
  return piece;
}

/// The roles of what is there between two backward passes. State of an
/// optimizer has no such names: they are keywords of MLIR, without a hyphen.
static const char *const sumRole = "gradient-sum";
static const char *const arrivalsRole = "gradient-arrivals";

bool zero_rt::isOfAccumulation(const Piece &piece) {
  std::string role = piece.name.substr(piece.name.rfind('.') + 1);
  return role == sumRole || role == arrivalsRole;
}

zero_rt_status zero_rt::checkMarks(const Piece &piece) {
  if (!piece.addend.isWhole() && !isOfAccumulation(piece))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s is not of a step that is under way, and has no addends",
                describePiece(piece).c_str());
  std::string role = piece.name.substr(piece.name.rfind('.') + 1);
  if (!piece.prescaled.isOne() && role != sumRole)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s is no sum of gradients, and has no factor",
                describePiece(piece).c_str());
  return ZERO_RT_OK;
}

static void addSums(const Step &step, int32_t parameter,
                    std::vector<OwnPiece> &pieces) {
  const zero_rt_library &library = *step.library;
  const zero_rt_parameter_row &row = library.parameters[parameter];
  const zero_rt_accumulator_row &sum = library.accumulators[row.bucket];
  Range whole = {row.offset, row.offset + row.elements};
  Range held = intersect(whole, step.held(sum.buffer));
  if (!held.empty()) {
    pieces.push_back(
        makePiece(step, {sumRole, parameter, int32_t(sum.buffer),
                         held.begin - whole.begin, held.end - whole.begin}));
    pieces.back().addend = addendOf(step, parameter, sum.partial);
    pieces.back().prescaled = prescaledOf(sum);
  }
  if (row.optional) {
    pieces.push_back(makePiece(step, {arrivalsRole, parameter, -1, 0, 1}));
    // The step counts the arrivals of each rank.
    int64_t all = (int64_t(1) << library.num_axes) - 1;
    pieces.back().addend = addendOf(step, parameter, all);
  }
}

std::vector<OwnPiece> zero_rt::listHeldPieces(const Step &step, bool hasSums) {
  std::vector<OwnPiece> pieces;
  for (const StateEntry &entry : step.entries)
    pieces.push_back(makePiece(step, entry));
  for (int64_t b = 0; hasSums && b < step.library->num_buckets; ++b)
    for (int32_t p : step.index.parametersOf(b))
      addSums(step, p, pieces);
  for (size_t i = 0; i < pieces.size(); ++i)
    pieces[i].number = i;
  return pieces;
}

/// Whether |holds| is true of the stage of a rank before this one, of those
/// that differ from it over |axes| of stages.
template <typename Holds>
static bool isOnEarlierStage(const Step &step, int64_t axes, Holds holds) {
  int32_t mine = step.runtime->rank;
  for (int32_t rank : groupOf(*step.library, axes, mine)) {
    if (rank == mine)
      break;
    if (holds(stageOf(*step.whole, rank)))
      return true;
  }
  return false;
}

static bool writesScalar(const Step &step, const char *role) {
  const zero_rt_library &library = *step.library;
  int64_t all = (int64_t(1) << library.num_axes) - 1;
  int64_t axes = all & ~step.whole->stage_axes;
  int32_t rank = step.runtime->rank;
  if (groupOf(library, axes, rank).front() != rank)
    return false;
  auto hasRole = [&](const zero_rt_library &stage) {
    for (int64_t s = 0; s < stage.num_states; ++s)
      if (stage.states[s].bucket < 0 &&
          std::string(stage.strings + stage.states[s].role) == role)
        return true;
    return false;
  };
  return !isOnEarlierStage(step, step.whole->stage_axes, hasRole);
}

/// The elements of a bucket that this rank writes of |entry|, of which ranks
/// have addends of their own over |partial|.
static Range findWritten(const Step &step, const StateEntry &entry,
                         int64_t partial) {
  const zero_rt_library &library = *step.library;
  int64_t bucket = library.parameters[entry.parameter].bucket;
  int64_t owners =
      axesOf(library, library.buffers[entry.buffer].owners) | partial;
  // A parameter that is tied over stages is the same on all of them, unless
  // they have slices of it.
  auto hasParameter = [&](const zero_rt_library &stage) {
    return stage.parameters[entry.parameter].bucket >= 0;
  };
  if (isOnEarlierStage(step, step.whole->stage_axes & ~owners, hasParameter))
    return {};
  int64_t all = (int64_t(1) << library.num_axes) - 1;
  int64_t alike = all & ~owners & ~step.whole->stage_axes &
                  ~axesOf(library, library.buckets[bucket].rows);
  std::vector<int32_t> ranks = groupOf(library, alike, step.runtime->rank);
  auto mine = std::find(ranks.begin(), ranks.end(), step.runtime->rank);
  Range held = step.held(entry.buffer);
  Range slice = ownedSlice(held.size(), int32_t(mine - ranks.begin()),
                           int32_t(ranks.size()));
  return {held.begin + slice.begin, held.begin + slice.end};
}

/// Checks a name that is a key of JSON.
static zero_rt_status requireUtf8(const char *what, const std::string &name) {
  if (isUtf8(name))
    return ZERO_RT_OK;
  return fail(ZERO_RT_UNSUPPORTED,
              "the name '%s' is not UTF-8, as a checkpoint needs; rename the "
              "%s",
              name.c_str(), what);
}

zero_rt_status zero_rt::listWrittenPieces(const Step &step, bool hasSums,
                                          std::vector<OwnPiece> &out) {
  const zero_rt_library &whole = *step.whole;
  for (int64_t a = 0; a < whole.num_axes; ++a)
    ZERO_RT_TRY(requireUtf8("axis", whole.strings + whole.axes[a].name));
  std::set<std::string> names;
  std::vector<OwnPiece> held = listHeldPieces(step, hasSums);
  for (OwnPiece &piece : held) {
    if (!names.insert(piece.name).second)
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "two values of the state have the name '%s' in a checkpoint; "
                  "give the parameter or the parameter group another name",
                  piece.name.c_str());
    ZERO_RT_TRY(requireUtf8("parameter or parameter group", piece.name));
    StateEntry entry = piece.source;
    if (entry.parameter < 0 || piece.isArrivals()) {
      if (piece.isArrivals() || writesScalar(step, entry.role))
        out.push_back(std::move(piece));
      continue;
    }
    const zero_rt_parameter_row &row =
        step.library->parameters[entry.parameter];
    int64_t offset = row.offset;
    bool isSum = piece.number >= step.entries.size();
    Range written =
        findWritten(step, entry,
                    isSum ? step.library->accumulators[row.bucket].partial : 0);
    Range cut = intersect({piece.begin, piece.end},
                          {written.begin - offset, written.end - offset});
    if (cut.empty())
      continue;
    piece.begin = cut.begin;
    piece.end = cut.end;
    out.push_back(std::move(piece));
  }
  return ZERO_RT_OK;
}

void StateNames::addSums(const zero_rt_library &library, int64_t parameter) {
  const zero_rt_parameter_row &row = library.parameters[parameter];
  const zero_rt_accumulator_row &sum = library.accumulators[row.bucket];
  Value value = values.at(nameValue(library, parameter, "parameter"));
  value.dtype = int32_t(library.buffers[sum.buffer].dtype);
  value.prescaled = prescaledOf(sum);
  values[nameValue(library, parameter, sumRole)] = value;
  if (row.optional)
    values[nameValue(library, parameter, arrivalsRole)] = {
        ZERO_RT_F64, 1, 0, {}, {}};
}

StateNames::StateNames(const Step &step, bool hasSums) {
  const zero_rt_library &whole = *step.whole;
  auto add = [&](const zero_rt_library &library) {
    std::vector<std::vector<const zero_rt_state_row *>> rows(
        static_cast<size_t>(library.num_buckets));
    for (int64_t s = 0; s < library.num_states; ++s) {
      const zero_rt_state_row &row = library.states[s];
      if (row.bucket < 0)
        values[library.strings + row.role] = {ZERO_RT_F64, 1, 0, {}, {}};
      else
        rows[size_t(row.bucket)].push_back(&row);
    }
    for (int64_t p = 0; p < library.num_parameters; ++p) {
      const zero_rt_parameter_row &parameter = library.parameters[p];
      if (parameter.bucket < 0)
        continue;
      int64_t axes = partAxes(whole, library, parameter.bucket);
      Box box = wholeOf(boxOf(whole, p, 0));
      for (const zero_rt_state_row *row : rows[size_t(parameter.bucket)])
        values[nameValue(library, p, library.strings + row->role)] = {
            int32_t(library.buffers[row->index].dtype),
            parameter.elements,
            axes,
            box,
            {}};
      if (hasSums && library.accumulators)
        addSums(library, p);
      std::set<std::string> &known = parts[axes];
      if (known.empty())
        for (int32_t rank = 0; rank < whole.ranks; ++rank)
          known.insert(describeCoordinates(library, axes, rank));
    }
  };
  add(whole);
  for (int64_t s = 1; s < whole.num_stages; ++s)
    add(*whole.stages[s]);
  parts[0] = {""};
}

/// The extents of the parameter that |box| is in: "24x8".
static std::string shapeOf(const Box &box) {
  std::string text;
  for (const Box::Dimension &dim : box.dimensions)
    text += (text.empty() ? "" : "x") + std::to_string(dim.whole);
  return text;
}

zero_rt_status StateNames::checkBox(const Piece &piece, const Value &value) {
  if (!value.whole.isKnown())
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' has part '%s', and this step was compiled by a "
                "zero-compile that leaves out shapes; compile it again",
                piece.name.c_str(), piece.part.c_str());
  if (piece.box.hasShapeOf(value.whole))
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT, "'%s' has shape %s, expected %s",
              piece.name.c_str(), shapeOf(piece.box).c_str(),
              shapeOf(value.whole).c_str());
}

zero_rt_status StateNames::checkFactor(const Piece &piece, const Value &value) {
  if (piece.prescaled.hasPowersOf(value.prescaled))
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "%s has gradients that callers multiplied by passes^%lld * "
              "tokens^%lld, expected passes^%lld * tokens^%lld; load it with a "
              "step that has the same 'prescaled', or load the begin of that "
              "step",
              describePiece(piece).c_str(),
              (long long)piece.prescaled.passesPower,
              (long long)piece.prescaled.tokensPower,
              (long long)value.prescaled.passesPower,
              (long long)value.prescaled.tokensPower);
}

zero_rt_status StateNames::check(const Piece &piece) const {
  auto found = values.find(piece.name);
  if (found == values.end())
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "it has '%s', which this step does not have; load a checkpoint "
                "of a step with the same parameters and the same optimizer",
                piece.name.c_str());
  const Value &value = found->second;
  if (piece.dtype != value.dtype)
    return fail(ZERO_RT_INVALID_ARGUMENT, "'%s' has dtype %s, expected %s",
                piece.name.c_str(), dtypeName(piece.dtype),
                dtypeName(value.dtype));
  ZERO_RT_TRY(checkMarks(piece));
  ZERO_RT_TRY(checkFactor(piece, value));
  if (piece.box.isKnown())
    return checkBox(piece, value);
  int64_t elements = value.elements;
  bool isWhole = value.whole.isKnown() && piece.part.empty();
  if (isWhole)
    elements = value.whole.elements();
  const std::set<std::string> &known = parts.at(value.axes);
  if (!isWhole && !known.count(piece.part))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' has part '%s', and this step has part '%s'; load it with "
                "the same sizes of the axes that divide this parameter",
                piece.name.c_str(), piece.part.c_str(), known.begin()->c_str());
  if (piece.elements != elements)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' has %lld elements, expected %lld", piece.name.c_str(),
                (long long)piece.elements, (long long)elements);
  return ZERO_RT_OK;
}
