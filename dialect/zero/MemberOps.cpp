//===- MemberOps.cpp - Ops that list parameters: group, unit, bucket ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zero/StorageTypes.h"
#include "dialect/zero/Suggest.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace zero;

/// Calls |visit| for each member; fails at the first that is no parameter or is
/// listed twice.
static LogicalResult
forEachMember(Operation *op, ArrayAttr members, SymbolTableCollection &symbols,
              function_ref<LogicalResult(size_t, ParameterOp)> visit) {
  llvm::DenseSet<Attribute> seen;
  for (auto [i, member] :
       llvm::enumerate(members.getAsRange<FlatSymbolRefAttr>())) {
    auto parameter = symbols.lookupNearestSymbolFrom<ParameterOp>(op, member);
    if (!parameter)
      return op->emitOpError()
             << "member " << member << " is not a zero.parameter of this module"
             << suggest<ParameterOp>(op, member);
    if (!seen.insert(member).second)
      return op->emitOpError() << "member " << member << " is listed twice";
    if (failed(verifyTrained(op, parameter)))
      return failure();
    if (failed(visit(i, parameter)))
      return failure();
  }
  return success();
}

/// group_c2
static LogicalResult verifySkippedGroup(GroupOp group,
                                        SymbolTableCollection &symbols) {
  if (group.getMembers().empty())
    return group.emitOpError() << "has 'absent skip' and no member whose "
                                  "gradient could arrive; leave 'absent skip' "
                                  "out";
  llvm::DenseSet<Attribute> members(group.getMembers().begin(),
                                    group.getMembers().end());
  for (auto other : group->getParentOfType<ModuleOp>().getOps<GroupOp>())
    for (Attribute member : other.getMembers())
      if (other != group && members.contains(member)) {
        InFlightDiagnostic diag = group.emitOpError()
                                  << "has 'absent skip', and its member "
                                  << member << " is in another group, too";
        diag.attachNote(other.getLoc()) << "the other group is here";
        return diag;
      }
  for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>()) {
    auto parameter =
        symbols.lookupNearestSymbolFrom<ParameterOp>(group, member);
    if (parameter.getOptional())
      continue;
    InFlightDiagnostic diag = group.emitOpError()
                              << "has 'absent skip', and its member " << member
                              << " is not optional: a step without its "
                                 "gradient is refused; declare it 'optional'";
    diag.attachNote(parameter.getLoc()) << member << " is declared here";
    return diag;
  }
  return success();
}

LogicalResult GroupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // group_c1
  if (failed(forEachMember(*this, getMembers(), symbols,
                           [](size_t, ParameterOp) { return success(); })))
    return failure();
  return getSkipsAbsent() ? verifySkippedGroup(*this, symbols) : success();
}

LogicalResult BucketOp::verify() {
  // bucket_c5
  ValueType type = getValueType();
  int64_t last = static_cast<int64_t>(type.getShape().size()) - 1;
  if (last < 0 || type.getPlacements().size() != static_cast<size_t>(last) ||
      type.isScaled() || type.isOnHost())
    return emitOpError() << "must have one row, or one dimension for each axis "
                            "that shards its members in front of the last, got "
                         << type;
  for (int64_t dim = 0; dim < last; ++dim)
    if (type.getAxesOfDim(dim).size() != 1 || type.getShape()[dim] < 1)
      return emitOpError() << "dimension " << dim
                           << " must be sharded over one axis, got " << type;
  if (!isStorageType(getArrivalType()))
    return emitOpError() << "gradients must arrive in " << listStorageTypes()
                         << ", got " << getArrivalType();
  if (getOffsets().size() != getMembers().size() ||
      getExtents().size() != getMembers().size())
    return emitOpError() << "has " << countOf(getMembers().size(), "member")
                         << " but " << countOf(getOffsets().size(), "offset")
                         << " and " << countOf(getExtents().size(), "extent");
  // bucket_c2. The elements after the last member are its pad.
  int64_t end = 0;
  for (auto [member, offset, extent] :
       llvm::zip_equal(getMembers(), getOffsets(), getExtents())) {
    if (offset != end)
      return emitOpError() << "member " << member << " must begin at " << end
                           << ", where the one before ends, got " << offset;
    if (extent < 0 || extent > getRowLength() - end)
      return emitOpError() << "member " << member << " has an interval of "
                           << countOf(extent, "element") << " from " << offset
                           << " on, in a row of " << getRowLength();
    end = offset + extent;
  }
  if (end != getRowLength())
    return emitOpError() << "members fill " << end << " of "
                         << countOf(getRowLength(), "element");
  return success();
}

static bool anyMember(BucketOp bucket, SymbolTableCollection &symbols,
                      function_ref<bool(ParameterOp)> holds) {
  return llvm::any_of(
      bucket.getMembers().getAsRange<FlatSymbolRefAttr>(), [&](auto member) {
        return holds(
            symbols.lookupNearestSymbolFrom<ParameterOp>(bucket, member));
      });
}

bool BucketOp::arrivesInOnePiece(SymbolTableCollection &symbols) {
  return !anyMember(*this, symbols,
                    [](ParameterOp member) { return member.getUses() != 1; });
}

bool BucketOp::arrivesNarrower(SymbolTableCollection &symbols) {
  return getArrivalType() != getDtype() &&
         holdsEveryNumber(getDtype(), getArrivalType()) &&
         arrivesInOnePiece(symbols);
}

bool BucketOp::isOpenToTheEnd(SymbolTableCollection &symbols) {
  return anyMember(*this, symbols,
                   [](ParameterOp member) { return member.isUsedAnyTimes(); });
}

int64_t BucketOp::getNumHeld(ParameterOp parameter) {
  int64_t rows = 1;
  for (int64_t extent : getShape().drop_back())
    rows *= extent;
  return parameter.getNumElements() / rows;
}

/// Checks that no two ops of the kind of |op| share a member, once for all of
/// them: at the first one.
template <typename OpT> static LogicalResult verifyNoSharedMember(OpT op) {
  auto module = dyn_cast_if_present<ModuleOp>(op->getParentOp());
  if (!module || *module.template getOps<OpT>().begin() != op)
    return success();
  llvm::DenseMap<Attribute, OpT> ownerOf;
  for (auto owner : module.template getOps<OpT>())
    for (Attribute member : owner.getMembers()) {
      auto [it, isNew] = ownerOf.insert({member, owner});
      if (isNew || it->second == owner) // listed twice: see forEachMember
        continue;
      InFlightDiagnostic diag =
          owner.emitOpError() << "member " << member << " is in another "
                              << owner->getName().stripDialect() << " as well";
      diag.attachNote(it->second.getLoc()) << "the other one is here";
      return diag;
    }
  return success();
}

LogicalResult UnitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // unit_c1
  if (getMembers().empty())
    return emitOpError() << "has no members: nothing would be gathered";
  if (failed(verifyNoSharedMember(*this)))
    return failure();
  // unit_c1, unit_c2
  return forEachMember(*this, getMembers(), symbols,
                       [](size_t, ParameterOp) { return success(); });
}

/// bucket_c6
static LogicalResult verifyUnit(BucketOp bucket,
                                SymbolTableCollection &symbols) {
  if (!bucket.getUnitAttr())
    return success();
  auto unit =
      symbols.lookupNearestSymbolFrom<UnitOp>(bucket, bucket.getUnitAttr());
  if (!unit)
    return bucket.emitOpError()
           << "unit " << bucket.getUnitAttr()
           << " is not a zero.unit of this module"
           << suggest<UnitOp>(bucket, bucket.getUnitAttr());
  llvm::DenseSet<Attribute> members(unit.getMembers().begin(),
                                    unit.getMembers().end());
  for (Attribute member : bucket.getMembers())
    if (!members.contains(member)) {
      InFlightDiagnostic diag = bucket.emitOpError()
                                << "is of unit " << bucket.getUnitAttr()
                                << ", and member " << member << " is not";
      diag.attachNote(unit.getLoc()) << "the unit is here";
      return diag;
    }
  return success();
}

LogicalResult BucketOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // bucket_c1
  if (getMembers().empty())
    return emitOpError() << "has no members: no gradient would arrive in it";
  if (failed(verifyNoSharedMember(*this)) || failed(verifyUnit(*this, symbols)))
    return failure();
  Type storage;
  auto getSharding = [](ValueType type) {
    return type.getAxes(PlacementKind::Sharded);
  };
  return forEachMember(
      *this, getMembers(), symbols,
      [&](size_t i, ParameterOp parameter) -> LogicalResult {
        // bucket_c5
        if (getSharding(parameter.getValueType()) !=
            getSharding(getValueType()))
          return emitOpError()
                 << "member @" << parameter.getSymName() << " is "
                 << parameter.getValueType()
                 << ", sharded over other axes than " << getValueType();
        if (parameter.getValueType().getPresent() !=
            getValueType().getPresent())
          return emitOpError() << "member @" << parameter.getSymName() << " is "
                               << parameter.getValueType()
                               << ", on other stages than " << getValueType();
        // bucket_c3
        if (getExtents()[i] < getNumHeld(parameter))
          return emitOpError()
                 << "member @" << parameter.getSymName() << " has "
                 << countOf(getNumHeld(parameter), "element")
                 << " and an interval of " << getExtents()[i];
        // bucket_c4
        if (storage && storage != parameter.getDtype())
          return emitOpError() << "member @" << parameter.getSymName()
                               << " is stored in " << parameter.getDtype()
                               << " and the ones before in " << storage;
        storage = parameter.getDtype();
        return success();
      });
}
