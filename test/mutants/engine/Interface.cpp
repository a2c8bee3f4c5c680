//===- Interface.cpp - What callers and checkpoints see of a step ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Judge.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

using namespace mlir;
using namespace zero;

std::string test::getInterface(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  MeshOp mesh = *module.getOps<MeshOp>().begin();
  int64_t ranks = mesh.getNumRanks();
  for (auto op : module.getOps<ParameterOp>()) {
    os << op.getSymName() << " " << op.getValueType() << " " << op.getUses()
       << op.getOptional() << "\n";
  }
  for (auto op : module.getOps<ActivationOp>())
    os << op.getSymName() << " " << op.getTensorType() << " over "
       << op.getAxis() << " " << op.getFrom() << " " << op.getTo() << "\n";
  for (auto op : module.getOps<BucketOp>())
    os << op.getSymName() << " " << op.getArrivalType() << "\n";
  for (auto step : module.getOps<StepOp>())
    for (BlockArgument argument : step.getBody().getArguments())
      os << argument.getType() << (argument == step.getTokens()) << "\n";
  module.walk([&](ReturnOp op) { os << op.getNames() << "\n"; });
  for (auto program : module.getOps<zrt::ProgramOp>()) {
    os << program.getResultNames() << "\n";
    for (zrt::SlotsOp input : program.getInputSlots()) {
      os << input.isTokens();
      if (ArrayAttr over = input.getOverAttr())
        for (auto axis : over.getAsRange<StringAttr>())
          if (mesh.getNumRanks({axis}) > 1)
            os << " over " << axis.getValue();
      os << "\n";
    }
  }
  // A bucket of pads alone has nothing to bind or to save.
  auto isEmpty = [&](FlatSymbolRefAttr symbol) {
    auto bucket = module.lookupSymbol<BucketOp>(symbol);
    return llvm::all_of(
        bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
        [&](FlatSymbolRefAttr member) {
          return module.lookupSymbol<ParameterOp>(member).getNumElements() == 0;
        });
  };
  module.walk([&](zrt::StateOp op) {
    if (isEmpty(op.getBucketAttr()))
      return;
    auto buffer = cast<zrt::BufferOp>(
        SymbolTable::lookupNearestSymbolFrom(op, op.getBufferAttr()));
    os << op.getRole() << " of " << op.getBucket() << " in " << op.getBuffer()
       << " of " << buffer.getValueType().getElementType() << "\n";
  });
  module.walk([&](zrt::ScalarStateOp op) { os << op.getRole() << "\n"; });
  module.walk([&](zrt::BucketTableOp op) {
    if (isEmpty(op.getBucketAttr()))
      return;
    os << op.getParameters() << " " << op.getMasterAttr();
    auto gradient = cast<zrt::BufferOp>(
        SymbolTable::lookupNearestSymbolFrom(op, op.getGradientAttr()));
    if (ranks > 1)
      os << ScaleAttr::get(op->getContext(),
                           gradient.getValueType().getScale());
    for (StringAttr axis :
         gradient.getValueType().getAxes(PlacementKind::Partial))
      if (mesh.getNumRanks({axis}) > 1)
        os << " over " << axis.getValue();
    os << "\n";
  });
  // Callers find frozen parameters that are sharded there.
  module.walk([&](zrt::FrozenTableOp op) {
    os << op.getBucket() << " in " << op.getParameters() << "\n";
  });
  return text;
}
