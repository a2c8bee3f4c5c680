//===- AxisTables.cpp - Sets of axes of a mesh, and of stages -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Tables.h"

using namespace mlir;
using namespace zero;

int64_t Tables::getSet(ArrayRef<StringAttr> names) const {
  int64_t set = 0;
  for (StringAttr name : names)
    set |= int64_t(1) << axisRows.lookup(name);
  return set;
}

int64_t Tables::getAxes(ArrayAttr names) const {
  return getAxes(names, nullptr);
}

int64_t Tables::getAxes(ArrayAttr names, ValueType type) const {
  SmallVector<StringAttr> axes(names.getAsRange<StringAttr>());
  int64_t row = findAxes(getSet(axes), type ? getStages(axes, type) : 0);
  assert(row >= 0 && "all sets of calls have a row");
  return row;
}

int64_t Tables::getAxes(const zrt::CallArgument &axes, Operation *call,
                        SymbolTableCollection &symbols) const {
  if (!axes.list)
    return -1;
  return getAxes(axes.list,
                 axes.isAtPlace ? zrt::getPlace(symbols, call) : ValueType());
}

int64_t Tables::findAxes(int64_t set, int64_t stages) const {
  for (size_t row = 0; row < axisSets.size(); ++row)
    if (axisSets[row] == set && axisSetStages[row] == stages)
      return row;
  return -1;
}

/// The coordinates of pipeline stage |index| over the axes that have pipeline
/// stages.
static SmallVector<int64_t> getCoordinates(const Tables &tables,
                                           int64_t index) {
  SmallVector<int64_t> coordinates;
  for (StringAttr axis : llvm::reverse(tables.stageAxes)) {
    int64_t size = tables.axes[tables.axisRows.lookup(axis)].size;
    coordinates.insert(coordinates.begin(), index % size);
    index /= size;
  }
  return coordinates;
}

int64_t Tables::getNumStages() const {
  int64_t count = 1;
  for (StringAttr axis : stageAxes)
    count *= axes[axisRows.lookup(axis)].size;
  return count;
}

int64_t Tables::getStages(ArrayRef<StringAttr> names, ValueType type) const {
  if (llvm::none_of(names, [&](StringAttr axis) {
        return !type.getCoordinates(axis).empty();
      }))
    return 0;
  int64_t stages = 0;
  int64_t count = std::min(getNumStages(), kMaxTiedStages);
  for (int64_t index = 0; index < count; ++index) {
    SmallVector<int64_t> coordinates = getCoordinates(*this, index);
    bool isOn =
        llvm::all_of_zip(stageAxes, coordinates, [&](auto axis, auto c) {
          SmallVector<int64_t> held = type.getCoordinates(axis);
          return held.empty() || llvm::is_contained(held, c);
        });
    stages |= int64_t(isOn) << index;
  }
  return stages;
}

int64_t Tables::getNumRanks(int64_t row) const {
  if (row < 0)
    return 1;
  int64_t ranks = 1;
  int64_t stages = axisSetStages[row];
  int64_t divided = axisSets[row] & ~(stages ? getSet(stageAxes) : 0);
  for (auto [i, axis] : llvm::enumerate(axes))
    if (divided >> i & 1)
      ranks *= axis.size;
  if (!stages)
    return ranks;
  // Selects the stages that differ from the first one only over the set.
  auto agrees = [&](int64_t index) {
    return llvm::all_of_zip(
        stageAxes, getCoordinates(*this, index),
        getCoordinates(*this, llvm::countr_zero(uint64_t(stages))),
        [&](StringAttr axis, int64_t a, int64_t b) {
          return a == b || (axisSets[row] >> axisRows.lookup(axis) & 1);
        });
  };
  int64_t members = 0;
  for (int64_t index = 0; stages >> index; ++index)
    members += (stages >> index & 1) && agrees(index);
  return ranks * members;
}
