//===- Ranks.cpp - Who sums with whom -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Ranks.h"

#include <map>

using namespace mlir;
using namespace zero;

Ranks::Ranks(MeshOp mesh) {
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    axes.push_back({axis.getName(), axis.getSize()});
    numRanks *= axis.getSize();
  }
}

int64_t Ranks::getAxisSize(StringRef name) const {
  for (const Axis &axis : axes)
    if (axis.name.getValue() == name)
      return axis.size;
  return 1;
}

int64_t Ranks::getCoordinate(int64_t rank, StringRef name) const {
  for (const Axis &axis : llvm::reverse(axes)) {
    if (axis.name.getValue() == name)
      return rank % axis.size;
    rank /= axis.size;
  }
  return 0;
}

std::vector<Range> Ranks::getSlices(int64_t elements,
                                    ArrayRef<StringAttr> names) const {
  std::vector<Range> slices(numRanks);
  for (const auto &group : getGroups(names))
    for (auto [i, rank] : llvm::enumerate(group))
      slices[rank] = getSlice(elements, i, group.size());
  return slices;
}

bool Ranks::isOn(ValueType type, int64_t rank) const {
  return llvm::all_of(type.getStageAxes(), [&](StringAttr axis) {
    return llvm::is_contained(type.getCoordinates(axis),
                              getCoordinate(rank, axis));
  });
}

std::vector<bool> Ranks::getHolders(ValueType type) const {
  std::vector<bool> holders;
  for (int64_t rank = 0; rank < numRanks; ++rank)
    holders.push_back(isOn(type, rank));
  return holders;
}

std::vector<std::vector<int64_t>> Ranks::getGroups(ArrayRef<StringAttr> names,
                                                   ValueType type) const {
  std::vector<std::vector<int64_t>> groups = getGroups(names);
  for (std::vector<int64_t> &group : groups)
    llvm::erase_if(group, [&](int64_t rank) { return !isOn(type, rank); });
  llvm::erase_if(groups, [](auto &group) { return group.empty(); });
  return groups;
}

std::vector<int64_t> Ranks::getHeld(ValueType type, int64_t rank) const {
  if (!isOn(type, rank))
    return {};
  // The Cartesian product of the held positions of each dimension.
  std::vector<int64_t> held{0};
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    // The number of this rank's slice, in the order of the mesh.
    int64_t slice = 0;
    int64_t slices = 1;
    SmallVector<StringAttr> sharding = type.getAxesOfDim(dim);
    for (const Axis &axis : axes) {
      if (!llvm::is_contained(sharding, axis.name))
        continue;
      slice = slice * axis.size + getCoordinate(rank, axis.name);
      slices *= axis.size;
    }
    int64_t length = extent / slices;
    std::vector<int64_t> next;
    next.reserve(held.size() * length);
    for (int64_t outer : held)
      for (int64_t i = 0; i < length; ++i)
        next.push_back(outer * extent + slice * length + i);
    held = std::move(next);
  }
  return held;
}

std::vector<std::vector<int64_t>>
Ranks::getGroups(ArrayRef<StringAttr> names) const {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    // The rank's number with its coordinates over |names| set to zero.
    int64_t key = 0;
    int64_t stride = 1;
    int64_t rest = rank;
    for (const Axis &axis : llvm::reverse(axes)) {
      if (!llvm::is_contained(names, axis.name))
        key += rest % axis.size * stride;
      rest /= axis.size;
      stride *= axis.size;
    }
    groups[key].push_back(rank);
  }
  std::vector<std::vector<int64_t>> list;
  for (auto &[key, group] : groups)
    list.push_back(std::move(group));
  return list;
}
