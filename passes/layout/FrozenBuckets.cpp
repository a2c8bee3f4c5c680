//===- FrozenBuckets.cpp - Lays frozen parameters out ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/FrozenBuckets.h"

#include "passes/layout/Row.h"
#include "passes/layout/StepShape.h"

using namespace mlir;
using namespace zero;

void zero::declareFrozenBuckets(ModuleOp module, MeshOp mesh,
                                ArrayRef<StringAttr> summed) {
  SymbolTable table(module);
  OpBuilder builder(module.getContext());
  int64_t number = 0;
  for (auto unit : llvm::to_vector(module.getOps<UnitOp>())) {
    llvm::MapVector<Attribute, Row> rows; // by their type
    for (auto member : unit.getMembers().getAsRange<FlatSymbolRefAttr>()) {
      auto parameter = table.lookup<ParameterOp>(member.getAttr());
      if (parameter.getFrozen())
        rows[TypeAttr::get(getRowType(parameter.getValueType(), mesh))].add(
            parameter, mesh);
    }
    for (auto &[type, row] : rows) {
      auto rowType = cast<ValueType>(cast<TypeAttr>(type).getValue());
      row.pad(mesh.getNumRanks(
          llvm::to_vector(llvm::make_filter_range(summed, [&](StringAttr axis) {
            return rowType.getPlacement(axis).kind == PlacementKind::Replicated;
          }))));
      auto bucket = builder.create<FrozenBucketOp>(
          unit.getLoc(), ("f" + Twine(number++)).str(),
          row.withElements(rowType), row.getMembers(builder), row.offsets,
          row.extents, unit.getSymName());
      // Behind the buckets, in front of the first step.
      table.insert(bucket, Block::iterator(*module.getOps<StepOp>().begin()));
    }
  }
}
