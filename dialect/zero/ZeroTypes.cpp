//===- ZeroTypes.cpp - !zero.value: verify, query -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/StorageTypes.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;

#define GET_TYPEDEF_CLASSES
#include "dialect/zero/ZeroTypes.cpp.inc"

void ZeroDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/zero/ZeroTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Construction and queries
//===----------------------------------------------------------------------===//

static void sortPlacements(SmallVectorImpl<AxisPlacement> &placements,
                           SmallVectorImpl<AxisCoordinate> &present) {
  llvm::erase_if(placements, [](const AxisPlacement &p) {
    return p.kind == PlacementKind::Replicated && !p.reduced;
  });
  llvm::sort(placements, [](const AxisPlacement &l, const AxisPlacement &r) {
    return l.axis.getValue() < r.axis.getValue();
  });
  llvm::sort(present, [](const AxisCoordinate &l, const AxisCoordinate &r) {
    return std::make_pair(l.axis.getValue(), l.coordinate) <
           std::make_pair(r.axis.getValue(), r.coordinate);
  });
}

ValueType ValueType::getSorted(MLIRContext *context, ArrayRef<int64_t> shape,
                               Type elementType,
                               SmallVector<AxisPlacement> placements,
                               SmallVector<AxisCoordinate> present,
                               SmallVector<ScaleFactor> scale,
                               MemorySpace space) {
  sortPlacements(placements, present);
  return get(context, shape, elementType, placements, present,
             multiply(scale, {}), space);
}

ValueType ValueType::getSortedChecked(
    function_ref<InFlightDiagnostic()> emitError, MLIRContext *context,
    ArrayRef<int64_t> shape, Type elementType,
    SmallVector<AxisPlacement> placements, SmallVector<AxisCoordinate> present,
    SmallVector<ScaleFactor> scale, MemorySpace space) {
  sortPlacements(placements, present);
  return getChecked(emitError, context, shape, elementType, placements, present,
                    scale, space);
}

AxisPlacement ValueType::getPlacement(StringAttr axis) const {
  for (const AxisPlacement &p : getPlacements())
    if (p.axis == axis)
      return p;
  return {axis, PlacementKind::Replicated, 0, false};
}

ValueType ValueType::withPlacement(AxisPlacement placement) const {
  SmallVector<AxisPlacement> placements(getPlacements());
  llvm::erase_if(placements, [&](const AxisPlacement &p) {
    return p.axis == placement.axis;
  });
  placements.push_back(placement);
  return getSorted(
      getContext(), getShape(), getElementType(), std::move(placements),
      SmallVector<AxisCoordinate>(getPresent()), Scale(getScale()), getSpace());
}

ValueType ValueType::withElementType(Type type) const {
  return get(getContext(), getShape(), type, getPlacements(), getPresent(),
             getScale(), getSpace());
}

ValueType ValueType::withShape(ArrayRef<int64_t> shape) const {
  return get(getContext(), shape, getElementType(), getPlacements(),
             getPresent(), getScale(), getSpace());
}

ValueType ValueType::withScale(ArrayRef<ScaleFactor> scale) const {
  return get(getContext(), getShape(), getElementType(), getPlacements(),
             getPresent(), multiply(scale, {}), getSpace());
}

ValueType ValueType::withSpace(MemorySpace space) const {
  return get(getContext(), getShape(), getElementType(), getPlacements(),
             getPresent(), getScale(), space);
}

SmallVector<StringAttr> ValueType::getAxes(PlacementKind kind) const {
  SmallVector<StringAttr> axes;
  for (const AxisPlacement &p : getPlacements())
    if (p.kind == kind)
      axes.push_back(p.axis);
  return axes;
}

bool ValueType::has(PlacementKind kind) const {
  return llvm::any_of(getPlacements(),
                      [&](const AxisPlacement &p) { return p.kind == kind; });
}

bool ValueType::hasPlacementOf(ValueType other) const {
  return getPlacements() == other.getPlacements() &&
         getPresent() == other.getPresent() && getSpace() == other.getSpace();
}

SmallVector<StringAttr> ValueType::getAxesOfDim(int64_t dim) const {
  SmallVector<StringAttr> axes;
  for (const AxisPlacement &p : getPlacements())
    if (p.kind == PlacementKind::Sharded && p.dim == dim)
      axes.push_back(p.axis);
  return axes;
}

bool ValueType::hasRowsOf(ValueType other) const {
  if (getShape() != other.getShape() || getPresent() != other.getPresent())
    return false;
  for (size_t dim = 0; dim + 1 < getShape().size(); ++dim)
    if (getAxesOfDim(dim) != other.getAxesOfDim(dim))
      return false;
  return true;
}

int64_t zero::getExponent(ArrayRef<ScaleFactor> monomial, StringRef symbol) {
  for (const ScaleFactor &factor : monomial)
    if (factor.symbol.getValue() == symbol)
      return factor.exponent;
  return 0;
}

SmallVector<StringAttr> ValueType::getStageAxes() const {
  SmallVector<StringAttr> axes;
  for (const AxisCoordinate &c : getPresent())
    if (axes.empty() || axes.back() != c.axis)
      axes.push_back(c.axis);
  return axes;
}

SmallVector<int64_t> ValueType::getCoordinates(StringAttr axis) const {
  SmallVector<int64_t> coordinates;
  for (const AxisCoordinate &c : getPresent())
    if (c.axis == axis)
      coordinates.push_back(c.coordinate);
  return coordinates;
}

SmallVector<SmallVector<AxisCoordinate>> ValueType::getStages() const {
  SmallVector<SmallVector<AxisCoordinate>> stages(1);
  for (StringAttr axis : getStageAxes()) {
    SmallVector<SmallVector<AxisCoordinate>> longer;
    for (const auto &stage : stages)
      for (int64_t coordinate : getCoordinates(axis)) {
        longer.push_back(stage);
        longer.back().push_back({axis, coordinate});
      }
    stages = std::move(longer);
  }
  return stages;
}

bool ValueType::isOnStage(ArrayRef<AxisCoordinate> stage) const {
  return llvm::all_of(stage, [&](const AxisCoordinate &c) {
    SmallVector<int64_t> coordinates = getCoordinates(c.axis);
    return coordinates.empty() || llvm::is_contained(coordinates, c.coordinate);
  });
}

ValueType ValueType::withoutStages(StringAttr axis) const {
  SmallVector<AxisCoordinate> present(getPresent());
  llvm::erase_if(present,
                 [&](const AxisCoordinate &c) { return c.axis == axis; });
  return get(getContext(), getShape(), getElementType(), getPlacements(),
             present, getScale(), getSpace());
}

ValueType ValueType::withStages(ArrayRef<AxisCoordinate> coordinates) const {
  // Over an axis of pipeline stages a value is whole, or several stages have an
  // addend each.
  SmallVector<AxisPlacement> placements(getPlacements());
  llvm::erase_if(placements, [&](const AxisPlacement &p) {
    return llvm::any_of(
        coordinates, [&](const AxisCoordinate &c) { return c.axis == p.axis; });
  });
  return getSorted(
      getContext(), getShape(), getElementType(), std::move(placements),
      SmallVector<AxisCoordinate>(coordinates), Scale(getScale()), getSpace());
}

SmallVector<AxisCoordinate> ValueType::getFirstStage() const {
  SmallVector<AxisCoordinate> first;
  for (const AxisCoordinate &c : getPresent())
    if (first.empty() || first.back().axis != c.axis)
      first.push_back(c);
  return first;
}

bool ValueType::isShare() const {
  return !isScaled() && getPresent().empty() &&
         llvm::all_of(getPlacements(), [](const AxisPlacement &placement) {
           return placement.kind == PlacementKind::Partial &&
                  placement.axis.getValue() != kMicroAxis;
         });
}

int64_t ValueType::getNumElements() const {
  int64_t product = 1;
  for (int64_t extent : getShape())
    product *= extent;
  return product;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult ValueType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> shape, Type elementType,
                                ArrayRef<AxisPlacement> placements,
                                ArrayRef<AxisCoordinate> present,
                                ArrayRef<ScaleFactor> scale,
                                MemorySpace space) {
  // value_c1
  if (!isStorageType(elementType))
    return emitError() << "element type must be " << listStorageTypes()
                       << ", got " << elementType;
  // value_c9
  if (!areExtentsInRange(shape))
    return emitError() << "must have at most " << kMaxElements
                       << " elements and no negative dimension";
  for (auto [i, p] : llvm::enumerate(placements)) {
    // value_c2
    if (i > 0 && placements[i - 1].axis == p.axis)
      return emitError() << "axis '" << p.axis.getValue()
                         << "' has two placements, "
                         << stringifyPlacementKind(placements[i - 1].kind)
                         << " and " << stringifyPlacementKind(p.kind);
    // value_c7
    if (p.reduced && p.kind != PlacementKind::Replicated &&
        p.kind != PlacementKind::Sharded)
      return emitError() << "axis '" << p.axis.getValue() << "' is reduced and "
                         << stringifyPlacementKind(p.kind)
                         << ": it would be summed over twice";
    // value_c3
    if (p.kind == PlacementKind::Sharded &&
        p.dim >= static_cast<int64_t>(std::max<size_t>(shape.size(), 1)))
      return emitError() << "axis '" << p.axis.getValue()
                         << "' shards dimension " << p.dim
                         << " of a value with "
                         << countOf(shape.size(), "dimension");
    if (p.kind == PlacementKind::Sharded && shape.empty())
      return emitError() << "axis '" << p.axis.getValue()
                         << "' shards a scalar";
    // value_c5
    if (p.axis.getValue() == kMicroAxis &&
        (p.reduced || (p.kind != PlacementKind::Partial &&
                       p.kind != PlacementKind::Replicated)))
      return emitError() << "time ('micro') can only be partial, got "
                         << (p.reduced ? "reduced"
                                       : stringifyPlacementKind(p.kind));
  }
  // value_c8
  for (auto [i, c] : llvm::enumerate(present)) {
    if (i > 0 && present[i - 1] == c)
      return emitError() << "coordinate " << c.coordinate << " of axis '"
                         << c.axis.getValue() << "' is listed twice";
    for (const AxisPlacement &p : placements)
      if (p.axis == c.axis && p.kind == PlacementKind::Sharded)
        return emitError() << "axis '" << c.axis.getValue()
                           << "' shards a value that is on some of its "
                              "coordinates only";
    bool isAlone = (i == 0 || present[i - 1].axis != c.axis) &&
                   (i + 1 == present.size() || present[i + 1].axis != c.axis);
    for (const AxisPlacement &p : placements)
      if (isAlone && p.axis == c.axis && p.kind != PlacementKind::Replicated)
        return emitError() << "axis '" << c.axis.getValue() << "' is "
                           << stringifyPlacementKind(p.kind)
                           << " of a value that is on one of its coordinates, "
                              "where nobody has another part";
  }
  // value_c4
  for (auto [i, f] : llvm::enumerate(scale)) {
    if (f.exponent == 0)
      return emitError() << "scale symbol '" << f.symbol.getValue()
                         << "' has exponent 0";
    if (i > 0 && scale[i - 1].symbol == f.symbol)
      return emitError() << "scale symbol '" << f.symbol.getValue()
                         << "' is listed twice";
  }
  // value_c6
  if (space == MemorySpace::host && shape.empty())
    return emitError() << "a scalar is in no space, got '"
                       << stringifyMemorySpace(space) << "'";
  return success();
}
