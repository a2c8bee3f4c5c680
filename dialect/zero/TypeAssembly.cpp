//===- TypeAssembly.cpp - How !zero.value is written ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace zero;

/// Parses `[` scale-factor (`,` scale-factor)* `]` or the same in parentheses.
/// Keeps duplicates, so that the verifier can name them.
ParseResult zero::parseScaleFactors(AsmParser &parser, Scale &scale,
                                    AsmParser::Delimiter delimiter) {
  MLIRContext *context = parser.getContext();
  auto parseFactor = [&]() -> ParseResult {
    ScaleFactor factor;
    StringAttr symbol;
    SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalSymbolName(symbol)))
      return parser.emitError(loc)
             << "expected '" << kLossScale << "' instead of @"
             << symbol.getValue()
             << ": which loss scale it is the zero.step says";
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    factor.symbol = StringAttr::get(context, keyword);
    if (parser.parseColon() || parser.getCurrentLocation(&loc) ||
        parser.parseInteger(factor.exponent))
      return failure();
    if (factor.exponent < -kMaxExponent || factor.exponent > kMaxExponent)
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

ParseResult zero::parseMonomial(AsmParser &parser, Scale &scale,
                                AsmParser::Delimiter delimiter) {
  SMLoc loc = parser.getCurrentLocation();
  if (parseScaleFactors(parser, scale, delimiter))
    return failure();
  for (auto [i, factor] : llvm::enumerate(scale))
    if (factor.exponent == 0 || (i > 0 && scale[i - 1].symbol == factor.symbol))
      return parser.emitError(loc)
             << "expected each symbol once and no exponent 0, got ("
             << toString(scale) << ")";
  return success();
}

void zero::printScaleFactors(AsmPrinter &printer, ArrayRef<ScaleFactor> scale) {
  llvm::interleaveComma(scale, printer, [&](const ScaleFactor &f) {
    printer << f.symbol.getValue() << " : " << f.exponent;
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

ParseResult zero::parseValueBody(AsmParser &parser, ValueType &type) {
  MLIRContext *context = parser.getContext();
  SmallVector<int64_t> shape;
  Type elementType;
  SmallVector<AxisPlacement> placements;
  SmallVector<AxisCoordinate> present;
  Scale scale;
  MemorySpace space = MemorySpace::device;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return failure();

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
    if (!kind && keyword != "reduced" && keyword != "on")
      return parser.emitError(clauseLoc)
             << "expected sharded, partial, partial_max, partial_min, "
                "partial_or, varying, reduced, on, scaled or space, got '"
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
          // `reduced` adds to the placement that another clause gives the axis.
          if (keyword == "reduced") {
            auto *it = llvm::find_if(placements, [&](const AxisPlacement &p) {
              return p.axis == axis;
            });
            if (it != placements.end())
              it->reduced = true;
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
      return failure();
  type = ValueType::getSortedChecked(
      [&] { return parser.emitError(loc); }, context, shape, elementType,
      std::move(placements), std::move(present), std::move(scale), space);
  return success(static_cast<bool>(type));
}

Type ValueType::parse(AsmParser &parser) {
  ValueType type;
  if (parser.parseLess() || parseValueBody(parser, type) ||
      parser.parseGreater())
    return {};
  return type;
}

void ValueType::print(AsmPrinter &printer) const {
  printer << "<";
  printValueBody(printer, *this);
  printer << ">";
}

void zero::printValueBody(AsmPrinter &printer, ValueType type) {
  for (int64_t extent : type.getShape())
    printer << extent << "x";
  printer << type.getElementType();
  for (PlacementKind kind :
       {PlacementKind::Sharded, PlacementKind::Partial,
        PlacementKind::PartialMax, PlacementKind::PartialMin,
        PlacementKind::PartialOr, PlacementKind::Varying}) {
    if (!type.has(kind))
      continue;
    printer << ", " << stringifyPlacementKind(kind) << " = [";
    llvm::interleaveComma(type.getAxes(kind), printer, [&](StringAttr axis) {
      printer << axis.getValue();
      if (int64_t dim = type.getPlacement(axis).dim)
        printer << " : " << dim;
    });
    printer << "]";
  }
  SmallVector<StringAttr> reduced;
  for (const AxisPlacement &p : type.getPlacements())
    if (p.reduced)
      reduced.push_back(p.axis);
  if (!reduced.empty()) {
    printer << ", reduced = [";
    llvm::interleaveComma(reduced, printer,
                          [&](StringAttr axis) { printer << axis.getValue(); });
    printer << "]";
  }
  if (!type.getPresent().empty()) {
    printer << ", on = [";
    llvm::interleaveComma(
        type.getPresent(), printer, [&](const AxisCoordinate &c) {
          printer << c.axis.getValue() << " : " << c.coordinate;
        });
    printer << "]";
  }
  if (type.isScaled()) {
    printer << ", scaled = [";
    printScaleFactors(printer, type.getScale());
    printer << "]";
  }
  if (type.isOnHost())
    printer << ", space = " << stringifyMemorySpace(type.getSpace());
}
