//===- Parameters.cpp - What a run has to know of parameters --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Ranks.h"
#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"
#include "tools/zero-run/Engine.h"
#include "tools/zero-run/Floats.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;
using namespace zero;

std::vector<ParameterInfo> zero::readParameters(ModuleOp module, MeshOp mesh,
                                                bool areFrozen) {
  Ranks ranks(mesh);
  llvm::StringMap<ValueType> arrivalTypes;
  module.walk([&](BackwardOp backward) {
    for (auto [source, type] :
         llvm::zip(backward.getSources().getAsRange<FlatSymbolRefAttr>(),
                   backward.getGradients().getTypes()))
      arrivalTypes[source.getValue()] = cast<ValueType>(type);
  });
  llvm::DenseMap<Attribute, UnitOp> unitOf;
  for (auto unit : module.getOps<UnitOp>())
    for (Attribute member : unit.getMembers())
      unitOf[member] = unit;
  std::vector<ParameterInfo> parameters;
  for (auto op : module.getOps<ParameterOp>()) {
    if (op.getFrozen() != areFrozen)
      continue;
    ParameterInfo info;
    info.name = op.getSymName().str();
    info.elements = op.getNumElements();
    info.storageType = op.getDtype();
    if (UnitOp unit = unitOf.lookup(FlatSymbolRefAttr::get(op)))
      info.gatherType = unit.getTypeToGather(info.storageType);
    ValueType arrival = arrivalTypes.lookup(info.name);
    if (!arrival)
      arrival = op.getValueType();
    info.arrivalType = arrival.getElementType();
    info.optional = op.getOptional();
    info.uses = op.getUses();
    for (auto [dim, extent] : llvm::enumerate(op.getShape()))
      info.shape.push_back(
          extent / mesh.getNumRanks(op.getValueType().getAxesOfDim(dim)));
    // Over axes that are not listed all ranks have one gradient.
    SmallVector<StringAttr> alike;
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
      if (arrival.getPlacement(axis.getName()).kind ==
          PlacementKind::Replicated)
        alike.push_back(axis.getName());
    info.giver.resize(ranks.size());
    for (const auto &group : ranks.getGroups(alike))
      for (int64_t rank : group)
        info.giver[rank] = group.front();
    info.holders = ranks.getHolders(op.getValueType());
    if (op.getValueType().has(PlacementKind::Sharded))
      for (int64_t rank = 0; rank < ranks.size(); ++rank)
        info.held.push_back(ranks.getHeld(op.getValueType(), rank));
    parameters.push_back(info);
  }
  return parameters;
}

std::vector<ParameterInfo> zero::readFrozen(ModuleOp scheduled) {
  llvm::StringSet<> sharded;
  for (auto bucket : scheduled.getOps<FrozenBucketOp>())
    if (bucket.isSharded())
      for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>())
        sharded.insert(member.getValue());
  std::vector<ParameterInfo> frozen =
      readParameters(scheduled, *scheduled.getOps<MeshOp>().begin(),
                     /*areFrozen=*/true);
  llvm::erase_if(frozen, [&](const ParameterInfo &info) {
    return !sharded.contains(info.name);
  });
  return frozen;
}

llvm::StringSet<> zero::findTraveling(ModuleOp scheduled) {
  llvm::StringSet<> names;
  scheduled.walk([&](zrt::BucketTableOp table) {
    if (!table.getUnshardedAttr())
      return;
    auto bucket = scheduled.lookupSymbol<BucketOp>(table.getBucketAttr());
    for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>())
      names.insert(member.getValue());
  });
  return names;
}

std::string zero::checkTravel(const ParameterInfo &info, int64_t rank,
                              std::vector<Number> &read,
                              ArrayRef<Number> whole) {
  std::string wrong;
  for (auto [i, number] : llvm::enumerate(read)) {
    double exact = whole[info.held.empty() ? i : info.held[rank][i]].value;
    Bytes bytes = pack(exact, info.gatherType);
    double expected = unpack(bytes.data(), 1, info.gatherType)[0].value;
    if (wrong.empty() && number.value != expected &&
        !(std::isnan(number.value) && std::isnan(expected)))
      llvm::raw_string_ostream(wrong)
          << "@" << info.name << "[" << i << "] is read as "
          << llvm::format("%.9g", number.value) << " on rank " << rank
          << ", expected " << llvm::format("%.9g", exact) << " rounded to "
          << info.gatherType << ", " << llvm::format("%.9g", expected);
    number = {exact};
  }
  return wrong;
}

std::vector<double> zero::getFrozenValues(const ParameterInfo &info) {
  std::vector<double> values(info.elements);
  for (auto [i, value] : llvm::enumerate(values))
    value = 1 + (i + llvm::xxh3_64bits(info.name)) % 127;
  return values;
}

std::string zero::checkFrozen(const ParameterInfo &frozen, int64_t rank,
                              ArrayRef<Number> read) {
  std::string wrong;
  std::vector<double> expected = frozen.take(getFrozenValues(frozen), rank);
  for (auto [i, number] : llvm::enumerate(read))
    if (wrong.empty() && number.value != expected[i])
      llvm::raw_string_ostream(wrong)
          << "frozen @" << frozen.name << "[" << i << "] on rank " << rank
          << " is " << llvm::format("%.9g", number.value) << ", expected "
          << llvm::format("%.9g", expected[i]);
  return wrong;
}

std::vector<InputInfo> zero::readInputs(StepOp step, MeshOp mesh) {
  Ranks ranks(mesh);
  std::vector<InputInfo> inputs;
  for (BlockArgument argument : step.getBody().getArguments()) {
    InputInfo &info = inputs.emplace_back();
    info.isMaxNorm = StepOp::isMaxNorm(argument);
    SmallVector<StringAttr> axes =
        cast<ValueType>(argument.getType()).getAxes(PlacementKind::Partial);
    info.shares = mesh.getNumRanks(axes);
    if (axes.empty())
      continue;
    info.share.resize(ranks.size());
    for (const auto &group : ranks.getGroups(axes))
      for (auto [i, rank] : llvm::enumerate(group))
        info.share[rank] = i;
  }
  return inputs;
}
