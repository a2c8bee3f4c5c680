//===- Activations.cpp - What stages send, in tables and plan -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Activations.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

void zero::addActivations(ModuleOp module, Tables &tables) {
  for (auto op : module.getOps<ActivationOp>()) {
    RankedTensorType type = op.getTensorType();
    zero_rt_activation_row row = {};
    row.name = tables.strings.add(op.getSymName());
    row.dtype = getDtype(type.getElementType());
    row.axis = tables.axisRows.lookup(op.getAxisAttr());
    row.from = op.getFrom();
    row.to = op.getTo();
    row.num_dims = type.getRank();
    for (auto [d, extent] : llvm::enumerate(type.getShape()))
      row.dims[d] = ShapedType::isDynamic(extent) ? -1 : extent;
    tables.activations.push_back(row);
    tables.activationNames.push_back(op.getSymName().str());
  }
}

json::Array zero::describeActivations(ModuleOp module) {
  json::Array list;
  for (auto op : module.getOps<ActivationOp>()) {
    RankedTensorType type = op.getTensorType();
    json::Array shape;
    for (int64_t extent : type.getShape())
      shape.push_back(ShapedType::isDynamic(extent) ? json::Value("?")
                                                    : json::Value(extent));
    std::string dtype;
    llvm::raw_string_ostream(dtype) << type.getElementType();
    json::Object object{
        {"name", op.getSymName()},         {"shape", std::move(shape)},
        {"dtype", std::move(dtype)},       {"axis", op.getAxis()},
        {"from", int64_t(op.getFrom())},   {"to", int64_t(op.getTo())},
        {"header", !type.hasStaticShape()}};
    if (type.hasStaticShape())
      object["bytes"] =
          type.getNumElements() * type.getElementTypeBitWidth() / 8;
    list.push_back(std::move(object));
  }
  return list;
}
