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
                           [&](size_t, ParameterOp parameter) {
                             return verifyTrained(*this, parameter);
                           })))
    return failure();
  return getSkipsAbsent() ? verifySkippedGroup(*this, symbols) : success();
}

/// bucket_c5 and frozen_bucket_c3: checks the rows of |type|, which |numAxes|
/// axes shard.
static LogicalResult verifyRows(Operation *op, ValueType type,
                                int64_t numAxes) {
  int64_t last = static_cast<int64_t>(type.getShape().size()) - 1;
  if (last < 0 || numAxes != last || type.isScaled())
    return op->emitOpError() << "must have one row, or one dimension for each "
                                "axis that shards its members in front of the "
                                "last, got "
                             << type;
  for (int64_t dim = 0; dim < last; ++dim)
    if (type.getAxesOfDim(dim).size() != 1 || type.getShape()[dim] < 1)
      return op->emitOpError()
             << "dimension " << dim << " must be sharded over one axis, got "
             << type;
  return success();
}

/// bucket_c2 and frozen_bucket_c2. The elements after the last member are its
/// pad.
static LogicalResult verifyIntervals(LaidOut op) {
  size_t members = op.getMembers().size();
  if (op.getOffsets().size() != members || op.getExtents().size() != members)
    return op->emitOpError()
           << "has " << countOf(members, "member") << " but "
           << countOf(op.getOffsets().size(), "offset") << " and "
           << countOf(op.getExtents().size(), "extent");
  int64_t end = 0, length = op.getRowLength();
  for (auto [member, offset, extent] :
       llvm::zip_equal(op.getMembers(), op.getOffsets(), op.getExtents())) {
    if (offset != end)
      return op->emitOpError()
             << "member " << member << " must begin at " << end
             << ", where the one before ends, got " << offset;
    if (extent < 0 || extent > length - end)
      return op->emitOpError() << "member " << member << " has an interval of "
                               << countOf(extent, "element") << " from "
                               << offset << " on, in a row of " << length;
    end = offset + extent;
  }
  if (end != length)
    return op->emitOpError()
           << "members fill " << end << " of " << countOf(length, "element");
  return success();
}

LogicalResult BucketOp::verify() {
  // bucket_c5
  ValueType type = getValueType();
  if (failed(verifyRows(*this, type, type.getPlacements().size())))
    return failure();
  if (type.isOnHost())
    return emitOpError() << "must be on the device, got " << type;
  if (!isStorageType(getArrivalType()))
    return emitOpError() << "gradients must arrive in " << listStorageTypes()
                         << ", got " << getArrivalType();
  // bucket_c2
  return verifyIntervals(cast<LaidOut>(getOperation()));
}

LogicalResult FrozenBucketOp::verify() {
  ValueType type = getValueType();
  for (const AxisPlacement &placement : type.getPlacements())
    if (placement.kind != PlacementKind::Sharded || placement.reduced)
      return emitOpError() << "must be replicated or sharded, got " << type;
  int64_t last = static_cast<int64_t>(type.getShape().size()) - 1;
  if (failed(verifyRows(*this, type,
                        llvm::count_if(type.getPlacements(),
                                       [&](const AxisPlacement &placement) {
                                         return placement.dim != last;
                                       }))))
    return failure();
  return verifyIntervals(cast<LaidOut>(getOperation()));
}

bool FrozenBucketOp::isSharded() {
  ValueType type = getValueType();
  return !type.getAxesOfDim(type.getShape().size() - 1).empty();
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

int64_t zero::getNumHeld(LaidOut layout, ParameterOp parameter) {
  int64_t rows = 1;
  for (int64_t extent : layout.getValueType().getShape().drop_back())
    rows *= extent;
  return parameter.getNumElements() / rows;
}

/// Checks that no two ops of the kind of |op| share a member, once for all of
/// them: at the first one.
template <typename OpT> static LogicalResult verifyNoSharedMember(OpT op) {
  auto module = dyn_cast_if_present<ModuleOp>(op->getParentOp());
  if (!module)
    return success();
  // From here backwards: parameters come first, and there may be many.
  for (Operation *other = op->getPrevNode(); other;
       other = other->getPrevNode())
    if (isa<OpT>(other))
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

/// unit_c3, of the type alone.
static LogicalResult verifyGatherDtype(UnitOp unit) {
  std::optional<Type> type = unit.getGatherDtype();
  if (!type || isStorageType(*type))
    return success();
  InFlightDiagnostic diag = unit.emitOpError()
                            << "gather_dtype must be " << listStorageTypes()
                            << ", got " << *type;
  if (isa<FloatType>(*type) && type->getIntOrFloatBitWidth() == 8)
    diag << ", whose numbers need a scale for each parameter";
  return diag;
}

/// unit_c3, of |member|.
static LogicalResult verifyHoldsGathered(UnitOp unit, ParameterOp member) {
  std::optional<Type> type = unit.getGatherDtype();
  if (!type || holdsEveryNumber(member.getDtype(), *type))
    return success();
  InFlightDiagnostic diag =
      unit.emitOpError()
      << "member @" << member.getSymName() << " is of " << member.getDtype()
      << ", which does not hold every number of gather dtype " << *type
      << "; leave out gather_dtype, or the parameter";
  diag.attachNote(member.getLoc()) << "@" << member.getSymName() << " is here";
  return diag;
}

LogicalResult UnitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // unit_c1
  if (getMembers().empty())
    return emitOpError() << "has no members: nothing would be gathered";
  if (failed(verifyGatherDtype(*this)))
    return failure();
  if (failed(verifyNoSharedMember(*this)))
    return failure();
  ParameterOp first;
  return forEachMember(*this, getMembers(), symbols,
                       [&](size_t, ParameterOp member) -> LogicalResult {
                         if (!first)
                           first = member;
                         if (failed(verifyHoldsGathered(*this, member)))
                           return failure();
                         // unit_c2
                         if (member.getValueType().getPresent() ==
                             first.getValueType().getPresent())
                           return success();
                         InFlightDiagnostic diag =
                             emitOpError()
                             << "member @" << member.getSymName()
                             << " is on other pipeline stages than member @"
                             << first.getSymName()
                             << "; put them into units of their own";
                         for (ParameterOp each : {member, first})
                           diag.attachNote(each.getLoc())
                               << "@" << each.getSymName() << " is here";
                         return diag;
                       });
}

ValueType UnitOp::getPlace(SymbolTableCollection &symbols) {
  if (getMembers().empty())
    return nullptr;
  auto first = symbols.lookupNearestSymbolFrom<ParameterOp>(
      *this, cast<FlatSymbolRefAttr>(getMembers()[0]));
  return first ? first.getValueType() : ValueType();
}

/// unit_order_c2
static LogicalResult verifyBeginnings(UnitOrderOp order, UnitOrderOp other,
                                      SymbolTableCollection &symbols) {
  llvm::DenseMap<Attribute, ValueType> places;
  SmallVector<SmallVector<AxisCoordinate>> stages;
  for (auto unit : order->getParentOfType<ModuleOp>().getOps<UnitOp>()) {
    ValueType place = unit.getPlace(symbols);
    if (!place)
      return success(); // an error of the unit
    places[FlatSymbolRefAttr::get(unit)] = place;
    for (auto &stage : place.getStages())
      if (!llvm::is_contained(stages, stage))
        stages.push_back(std::move(stage));
  }
  for (const auto &stage : stages) {
    auto getUnits = [&](UnitOrderOp op) {
      return llvm::to_vector(
          llvm::make_filter_range(op.getUnits(), [&](Attribute unit) {
            ValueType place = places.lookup(unit);
            return place && place.isOnStage(stage);
          }));
    };
    SmallVector<Attribute> mine = getUnits(order), others = getUnits(other);
    bool isSame = mine == others && order.getUnits() != other.getUnits();
    if (mine.empty() || others.empty() || mine[0] != others[0] || isSame)
      continue;
    InFlightDiagnostic diag = order.emitOpError()
                              << "begins with unit " << mine[0];
    for (const AxisCoordinate &c : stage)
      diag << (&c == stage.begin() ? " on the pipeline stage " : ", ")
           << c.axis.getValue() << " = " << c.coordinate;
    diag << ", as another order does; the first unit says which order begins";
    diag.attachNote(other.getLoc()) << "the other one is here";
    return diag;
  }
  return success();
}

LogicalResult UnitOrderOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto module = cast<ModuleOp>((*this)->getParentOp());
  // unit_order_c1
  llvm::DenseSet<Attribute> listed;
  for (auto name : getUnits().getAsRange<FlatSymbolRefAttr>()) {
    if (!symbols.lookupNearestSymbolFrom<UnitOp>(*this, name))
      return emitOpError() << name << " is not a zero.unit of this module"
                           << suggest<UnitOp>(*this, name);
    if (!listed.insert(name).second)
      return emitOpError() << "lists unit " << name << " twice, expected once";
  }
  for (auto unit : module.getOps<UnitOp>())
    if (!listed.contains(FlatSymbolRefAttr::get(unit))) {
      InFlightDiagnostic diag = emitOpError()
                                << "does not list unit @" << unit.getSymName()
                                << ", expected each unit of the module";
      diag.attachNote(unit.getLoc()) << "the unit is here";
      return diag;
    }
  if (listed.empty())
    return emitOpError() << "lists no unit, and the module has none";
  // unit_order_c3
  if (auto prefetch = int64_t(getPrefetch()); prefetch < 0)
    return emitOpError() << "gathers " << prefetch
                         << " units ahead, expected at least 0";
  // unit_order_c2
  for (auto other : module.getOps<UnitOrderOp>())
    if (other != *this && other->isBeforeInBlock(*this) &&
        failed(verifyBeginnings(*this, other, symbols)))
      return failure();
  return success();
}

/// bucket_c6 and frozen_bucket_c1
static LogicalResult verifyUnit(LaidOut bucket, FlatSymbolRefAttr name,
                                SymbolTableCollection &symbols) {
  auto unit = symbols.lookupNearestSymbolFrom<UnitOp>(bucket, name);
  if (!unit)
    return bucket->emitOpError()
           << "unit " << name << " is not a zero.unit of this module"
           << suggest<UnitOp>(bucket, name);
  llvm::DenseSet<Attribute> members(unit.getMembers().begin(),
                                    unit.getMembers().end());
  for (Attribute member : bucket.getMembers())
    if (!members.contains(member)) {
      InFlightDiagnostic diag = bucket->emitOpError()
                                << "is of unit " << name << ", and member "
                                << member << " is not";
      diag.attachNote(unit.getLoc()) << "the unit is here";
      return diag;
    }
  return success();
}

/// bucket_c3, bucket_c5, frozen_bucket_c2 and frozen_bucket_c3, of a member.
static LogicalResult verifyMember(LaidOut bucket, size_t i,
                                  ParameterOp parameter) {
  ValueType type = bucket.getValueType();
  auto getRowAxes = [](ValueType value, bool hasRows) {
    size_t last = value.getShape().size() - 1;
    auto axes = value.getAxes(PlacementKind::Sharded);
    llvm::erase_if(axes, [&](StringAttr axis) {
      return hasRows && size_t(value.getPlacement(axis).dim) == last;
    });
    return axes;
  };
  if (getRowAxes(parameter.getValueType(), false) != getRowAxes(type, true))
    return bucket->emitOpError() << "member @" << parameter.getSymName()
                                 << " is " << parameter.getValueType()
                                 << ", sharded over other axes than " << type;
  if (parameter.getValueType().getPresent() != type.getPresent())
    return bucket->emitOpError()
           << "member @" << parameter.getSymName() << " is "
           << parameter.getValueType() << ", on other stages than " << type;
  if (bucket.getExtents()[i] < getNumHeld(bucket, parameter))
    return bucket->emitOpError()
           << "member @" << parameter.getSymName() << " has "
           << countOf(getNumHeld(bucket, parameter), "element")
           << " and an interval of " << bucket.getExtents()[i];
  return success();
}

LogicalResult BucketOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // bucket_c1
  if (getMembers().empty())
    return emitOpError() << "has no members: no gradient would arrive in it";
  auto laidOut = cast<LaidOut>(getOperation());
  if (failed(verifyNoSharedMember(*this)) ||
      (getUnitAttr() && failed(verifyUnit(laidOut, getUnitAttr(), symbols))))
    return failure();
  Type storage;
  return forEachMember(*this, getMembers(), symbols,
                       [&](size_t i, ParameterOp parameter) -> LogicalResult {
                         if (failed(verifyTrained(*this, parameter)) ||
                             failed(verifyMember(laidOut, i, parameter)))
                           return failure();
                         // bucket_c4
                         if (storage && storage != parameter.getDtype())
                           return emitOpError()
                                  << "member @" << parameter.getSymName()
                                  << " is stored in " << parameter.getDtype()
                                  << " and the ones before in " << storage;
                         storage = parameter.getDtype();
                         return success();
                       });
}

LogicalResult FrozenBucketOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // frozen_bucket_c1
  if (getMembers().empty())
    return emitOpError() << "has no members: nothing would be gathered";
  auto laidOut = cast<LaidOut>(getOperation());
  if (failed(verifyNoSharedMember(*this)) ||
      failed(verifyUnit(laidOut, getUnitAttr(), symbols)))
    return failure();
  return forEachMember(
      *this, getMembers(), symbols,
      [&](size_t i, ParameterOp parameter) -> LogicalResult {
        if (!parameter.getFrozen())
          return emitOpError()
                 << "member @" << parameter.getSymName()
                 << " is not frozen: its gradient needs a zero.bucket";
        if (failed(verifyMember(laidOut, i, parameter)))
          return failure();
        // frozen_bucket_c3
        if (getValueType().getElementType() != parameter.getDtype())
          return emitOpError()
                 << "member @" << parameter.getSymName() << " is stored in "
                 << parameter.getDtype() << " and the bucket in "
                 << getValueType().getElementType();
        return success();
      });
}
