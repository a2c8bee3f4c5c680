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
