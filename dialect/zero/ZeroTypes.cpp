//===- ZeroTypes.cpp - !zero.value: parse, print, verify, query -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

static void sortLists(SmallVectorImpl<AxisPlacement> &placements,
                      SmallVectorImpl<AxisCoordinate> &present) {
  llvm::erase_if(placements, [](const AxisPlacement &p) {
    return p.kind == PlacementKind::Replicated && !p.presummed;
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
  sortLists(placements, present);
  return get(context, shape, elementType, placements, present,
             multiply(scale, {}), space);
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
                                ArrayRef<AxisCoordinate> /*present*/,
                                ArrayRef<ScaleFactor> scale,
                                MemorySpace space) {
  // value_c1
  if (!elementType.isF16() && !elementType.isBF16() && !elementType.isF32() &&
      !elementType.isF64())
    return emitError() << "element type must be f16, bf16, f32 or f64, got "
                       << elementType;
  for (auto [i, p] : llvm::enumerate(placements)) {
    // value_c2
    if (i > 0 && placements[i - 1].axis == p.axis)
      return emitError() << "axis '" << p.axis.getValue()
                         << "' has two placements, "
                         << stringifyPlacementKind(placements[i - 1].kind)
                         << " and " << stringifyPlacementKind(p.kind);
    // value_c3
    if (p.kind == PlacementKind::Sharded &&
        p.dim >= static_cast<int64_t>(std::max<size_t>(shape.size(), 1)))
      return emitError() << "axis '" << p.axis.getValue()
                         << "' shards dimension " << p.dim
                         << " of a value with " << shape.size()
                         << " dimensions";
    if (p.kind == PlacementKind::Sharded && shape.empty())
      return emitError() << "axis '" << p.axis.getValue()
                         << "' shards a scalar";
    // value_c5
    if (p.axis.getValue() == kMicroAxis &&
        (p.presummed || (p.kind != PlacementKind::Partial &&
                         p.kind != PlacementKind::Replicated)))
      return emitError() << "time ('micro') can only be partial, got "
                         << (p.presummed ? "presummed"
                                         : stringifyPlacementKind(p.kind));
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

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

/// Parses `[` scale-factor (`,` scale-factor)* `]` or the same in parentheses.
/// Keeps duplicates, so that the verifier can name them.
ParseResult zero::parseScaleFactors(AsmParser &parser, Scale &scale,
                                    AsmParser::Delimiter delimiter) {
  MLIRContext *context = parser.getContext();
  auto parseFactor = [&]() -> ParseResult {
    ScaleFactor factor;
    StringAttr symbol;
    if (succeeded(parser.parseOptionalSymbolName(symbol))) {
      factor.symbol = StringAttr::get(context, "@" + symbol.getValue());
    } else {
      StringRef keyword;
      if (parser.parseKeyword(&keyword))
        return failure();
      factor.symbol = StringAttr::get(context, keyword);
    }
    SMLoc loc;
    if (parser.parseColon() || parser.getCurrentLocation(&loc) ||
        parser.parseInteger(factor.exponent))
      return failure();
    if (std::abs(factor.exponent) > kMaxExponent)
      return parser.emitError(loc)
             << "exponent must be within -" << kMaxExponent << " and "
             << kMaxExponent << ", got " << factor.exponent;
    scale.push_back(factor);
    return success();
  };
  if (parser.parseCommaSeparatedList(delimiter, parseFactor))
    return failure();
  llvm::sort(scale, [](const ScaleFactor &l, const ScaleFactor &r) {
    return l.symbol.getValue() < r.symbol.getValue();
  });
  return success();
}

void zero::printScaleFactors(AsmPrinter &printer, ArrayRef<ScaleFactor> scale) {
  llvm::interleaveComma(scale, printer, [&](const ScaleFactor &f) {
    StringRef name = f.symbol.getValue();
    if (name.consume_front("@"))
      printer.printSymbolName(name);
    else
      printer << name;
    printer << " : " << f.exponent;
  });
}

static std::optional<PlacementKind> kindFromKeyword(StringRef keyword) {
  for (PlacementKind kind :
       {PlacementKind::Sharded, PlacementKind::Partial,
        PlacementKind::PartialMax, PlacementKind::PartialMin,
        PlacementKind::PartialOr, PlacementKind::Varying})
    if (stringifyPlacementKind(kind) == keyword)
      return kind;
  return std::nullopt;
}

/// Parses `axis` or `axis : integer` into |name| and |number|.
static ParseResult parseAxis(AsmParser &parser, StringAttr &name,
                             int64_t &number, bool &hasNumber) {
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  name = StringAttr::get(parser.getContext(), keyword);
  hasNumber = succeeded(parser.parseOptionalColon());
  return hasNumber ? parser.parseInteger(number) : success();
}

/// Parses `device` or `host`.
static ParseResult parseSpace(AsmParser &parser, MemorySpace &space) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<MemorySpace> known = symbolizeMemorySpace(keyword);
  if (!known)
    return parser.emitError(loc)
           << "expected device or host, got '" << keyword << "'";
  space = *known;
  return success();
}

Type ValueType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SmallVector<AxisPlacement> placements;
  SmallVector<AxisCoordinate> present;
  Scale scale;
  MemorySpace space = MemorySpace::device;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return {};

  auto parseClause = [&]() -> ParseResult {
    SMLoc clauseLoc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return failure();
    if (keyword == "scaled")
      return parseScaleFactors(parser, scale, AsmParser::Delimiter::Square);
    if (keyword == "space")
      return parseSpace(parser, space);
    std::optional<PlacementKind> kind = kindFromKeyword(keyword);
    if (!kind && keyword != "presummed" && keyword != "on")
      return parser.emitError(clauseLoc)
             << "expected sharded, partial, partial_max, partial_min, "
                "partial_or, varying, presummed, on, scaled or space, got '"
             << keyword << "'";
    return parser.parseCommaSeparatedList(
        AsmParser::Delimiter::Square, [&]() -> ParseResult {
          StringAttr axis;
          int64_t number = 0;
          bool hasNumber = false;
          SMLoc axisLoc = parser.getCurrentLocation();
          if (parseAxis(parser, axis, number, hasNumber))
            return failure();
          if (number < 0)
            return parser.emitError(axisLoc)
                   << "expected a number >= 0, got " << number;
          if (keyword == "on") {
            present.push_back({axis, number});
            return hasNumber
                       ? success()
                       : parser.emitError(axisLoc, "expected a coordinate");
          }
          if (hasNumber && kind != PlacementKind::Sharded)
            return parser.emitError(axisLoc)
                   << "only a sharded axis has a dimension";
          // `presummed` joins what another clause says of the axis.
          if (keyword == "presummed") {
            auto *it = llvm::find_if(placements, [&](const AxisPlacement &p) {
              return p.axis == axis;
            });
            if (it != placements.end())
              it->presummed = true;
            else
              placements.push_back({axis, PlacementKind::Replicated, 0, true});
            return success();
          }
          placements.push_back({axis, *kind, number, false});
          return success();
        });
  };
  while (succeeded(parser.parseOptionalComma()))
    if (parseClause())
      return {};
  if (parser.parseGreater())
    return {};
  sortLists(placements, present);
  return parser.getChecked<ValueType>(loc, parser.getContext(), shape,
                                      elementType, placements, present, scale,
                                      space);
}

void ValueType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t extent : getShape())
    printer << extent << "x";
  printer << getElementType();
  for (PlacementKind kind :
       {PlacementKind::Sharded, PlacementKind::Partial,
        PlacementKind::PartialMax, PlacementKind::PartialMin,
        PlacementKind::PartialOr, PlacementKind::Varying}) {
    if (!has(kind))
      continue;
    printer << ", " << stringifyPlacementKind(kind) << " = [";
    llvm::interleaveComma(getAxes(kind), printer, [&](StringAttr axis) {
      printer << axis.getValue();
      if (int64_t dim = getPlacement(axis).dim)
        printer << " : " << dim;
    });
    printer << "]";
  }
  SmallVector<StringAttr> presummed;
  for (const AxisPlacement &p : getPlacements())
    if (p.presummed)
      presummed.push_back(p.axis);
  if (!presummed.empty()) {
    printer << ", presummed = [";
    llvm::interleaveComma(presummed, printer,
                          [&](StringAttr axis) { printer << axis.getValue(); });
    printer << "]";
  }
  if (!getPresent().empty()) {
    printer << ", on = [";
    llvm::interleaveComma(getPresent(), printer, [&](const AxisCoordinate &c) {
      printer << c.axis.getValue() << " : " << c.coordinate;
    });
    printer << "]";
  }
  if (isScaled()) {
    printer << ", scaled = [";
    printScaleFactors(printer, getScale());
    printer << "]";
  }
  if (isOnHost())
    printer << ", space = " << stringifyMemorySpace(getSpace());
  printer << ">";
}
