//===- Assembly.cpp - Custom directives of the assembly format ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Assembly.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace zero;
using Delimiter = AsmParser::Delimiter;

/// The source from the next token on, without a minus. A source ends with a 0.
static const char *skipMinus(AsmParser &parser) {
  const char *next = parser.getCurrentLocation().getPointer();
  if (*next == '-')
    for (++next; llvm::isSpace(*next);)
      ++next;
  return next;
}

/// The digits of the number in hexadecimal at |next|; 0 if there is none.
static size_t countHexDigits(const char *next) {
  size_t digits = 0;
  if (next[0] == '0' && next[1] == 'x')
    while (llvm::isHexDigit(next[2 + digits]))
      ++digits;
  return digits;
}

/// Whether a whole number in decimal is at |next|.
static bool isDecimalInteger(const char *next) {
  if (!llvm::isDigit(*next) || countHexDigits(next) > 0)
    return false;
  while (llvm::isDigit(*next))
    ++next;
  return *next != '.';
}

/// A real number, spelled as a float or an integer, as f64. As elsewhere in
/// MLIR, a number in hexadecimal is the bits of the float.
static ParseResult parseDouble(AsmParser &parser, double &value) {
  constexpr size_t kDigits = 2 * sizeof(double);
  const char *next = skipMinus(parser);
  if (size_t digits = countHexDigits(next); digits > 0 && digits != kDigits)
    return parser.emitError(parser.getCurrentLocation())
           << "a number in hexadecimal is the " << kDigits
           << " digits of an f64, got " << StringRef(next, 2 + digits)
           << "; write the number in decimal";
  if (!isDecimalInteger(next))
    return parser.parseFloat(value);
  APInt integer;
  OptionalParseResult result = parser.parseOptionalInteger(integer);
  if (!result.has_value() || failed(*result))
    return failure();
  value = integer.signedRoundToDouble();
  return success();
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

ParseResult zero::parsePlacedType(OpAsmParser &parser, TypeAttr &type) {
  ValueType value;
  if (parseValueBody(parser, value))
    return failure();
  type = TypeAttr::get(value);
  return success();
}

void zero::printPlacedType(OpAsmPrinter &printer, Operation *, TypeAttr type) {
  printValueBody(printer, cast<ValueType>(type.getValue()));
}

ParseResult zero::parseOwnNames(OpAsmParser &parser, Region &region) {
  return parser.parseRegion(region, {}, /*enableNameShadowing=*/true);
}

void zero::printOwnNames(OpAsmPrinter &printer, Operation *, Region &region) {
  printer.printRegion(region);
}

ParseResult zero::parseUses(OpAsmParser &parser, IntegerAttr &uses) {
  int64_t number = ParameterOp::kAnyUses;
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword("any"))) {
    if (parser.parseInteger(number))
      return failure();
    if (number == ParameterOp::kAnyUses)
      return parser.emitError(loc, "uses must be at least 1, or any, got ")
             << number;
  }
  uses = parser.getBuilder().getI64IntegerAttr(number);
  return success();
}

void zero::printUses(OpAsmPrinter &printer, Operation *, IntegerAttr uses) {
  if (uses.getInt() == ParameterOp::kAnyUses)
    printer << "any";
  else
    printer << uses.getInt();
}

ParseResult zero::parseName(OpAsmParser &parser, StringAttr &name) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  name = parser.getBuilder().getStringAttr(text);
  return success();
}

void zero::printName(OpAsmPrinter &printer, Operation *, StringAttr name) {
  printer.printKeywordOrString(name);
}

ParseResult zero::parseNameList(OpAsmParser &parser, ArrayAttr &names) {
  SmallVector<StringRef> list;
  auto parseName = [&]() -> ParseResult {
    return parser.parseKeyword(&list.emplace_back());
  };
  if (parser.parseCommaSeparatedList(Delimiter::Square, parseName))
    return failure();
  names = parser.getBuilder().getStrArrayAttr(list);
  return success();
}

void zero::printNameList(OpAsmPrinter &printer, Operation *, ArrayAttr names) {
  printer << "[";
  llvm::interleaveComma(names.getAsRange<StringAttr>(), printer,
                        [&](StringAttr name) { printer << name.getValue(); });
  printer << "]";
}

ParseResult zero::parseSymbolList(OpAsmParser &parser, ArrayAttr &symbols) {
  SmallVector<Attribute> list;
  auto parseSymbol = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseSymbolName(name))
      return failure();
    list.push_back(FlatSymbolRefAttr::get(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(Delimiter::None, parseSymbol))
    return failure();
  symbols = parser.getBuilder().getArrayAttr(list);
  return success();
}

void zero::printSymbolList(OpAsmPrinter &printer, Operation *,
                           ArrayAttr symbols) {
  llvm::interleaveComma(symbols.getAsRange<FlatSymbolRefAttr>(), printer,
                        [&](FlatSymbolRefAttr symbol) {
                          printer.printSymbolName(symbol.getValue());
                        });
}

ParseResult zero::parseScaleList(OpAsmParser &parser, ScaleAttr &scale) {
  Scale factors;
  if (parseMonomial(parser, factors, Delimiter::Paren))
    return failure();
  scale = ScaleAttr::get(parser.getContext(), factors);
  return success();
}

void zero::printScaleList(OpAsmPrinter &printer, Operation *, ScaleAttr scale) {
  printer << "(";
  printScaleFactors(printer, scale.getFactors());
  printer << ")";
}

ParseResult zero::parseTypeList(OpAsmParser &parser,
                                SmallVectorImpl<Type> &types) {
  return parser.parseCommaSeparatedList(Delimiter::Paren, [&]() {
    return parser.parseType(types.emplace_back());
  });
}

void zero::printTypeList(OpAsmPrinter &printer, Operation *, TypeRange types) {
  printer << "(" << types << ")";
}

ParseResult
zero::parseTypeOfAll(OpAsmParser &parser, SmallVectorImpl<Type> &types,
                     ArrayRef<OpAsmParser::UnresolvedOperand> operands) {
  Type type;
  if (parser.parseType(type))
    return failure();
  types.append(operands.size(), type);
  return success();
}

void zero::printTypeOfAll(OpAsmPrinter &printer, Operation *, TypeRange types,
                          OperandRange) {
  printer << types.front();
}

ParseResult zero::parseNormType(OpAsmParser &parser, Type &type) {
  // The next token begins another op, perhaps lines below.
  if (failed(parser.parseOptionalKeyword("by")))
    return parser.emitError(parser.getNameLoc())
           << "has no type of the norm; write 'by !zero.value<f64>' after the "
              "types of the gradients";
  return parser.parseType(type);
}

void zero::printNormType(OpAsmPrinter &printer, Operation *, Type type) {
  printer << "by " << type;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

ParseResult zero::parseReal(OpAsmParser &parser, FloatAttr &number) {
  double value;
  if (parseDouble(parser, value))
    return failure();
  number = parser.getBuilder().getF64FloatAttr(value);
  return success();
}

void zero::printReal(OpAsmPrinter &printer, Operation *, FloatAttr number) {
  printer.printAttributeWithoutType(number);
}

ParseResult
zero::parseValueOrReal(OpAsmParser &parser,
                       std::optional<OpAsmParser::UnresolvedOperand> &operand,
                       FloatAttr &number) {
  OpAsmParser::UnresolvedOperand value;
  OptionalParseResult result = parser.parseOptionalOperand(value);
  if (!result.has_value())
    return parseReal(parser, number);
  operand = value;
  return *result;
}

void zero::printValueOrReal(OpAsmPrinter &printer, Operation *op, Value value,
                            FloatAttr number) {
  if (value)
    printer << value;
  else
    printReal(printer, op, number);
}

static constexpr double kDefaultEpsilon = 1e-6;

ParseResult zero::parseEpsilon(OpAsmParser &parser, FloatAttr &epsilon) {
  double value = kDefaultEpsilon;
  if (succeeded(parser.parseOptionalKeyword("epsilon")) &&
      parseDouble(parser, value))
    return failure();
  epsilon = parser.getBuilder().getF64FloatAttr(value);
  return success();
}

void zero::printEpsilon(OpAsmPrinter &printer, Operation *, FloatAttr epsilon) {
  if (epsilon.getValueAsDouble() == kDefaultEpsilon)
    return;
  printer << "epsilon ";
  printer.printAttributeWithoutType(epsilon);
}

/// `name` or `name = real`.
static ParseResult parseNamedReal(OpAsmParser &parser, std::string &name,
                                  std::optional<double> &value) {
  if (parser.parseKeywordOrString(&name))
    return failure();
  if (failed(parser.parseOptionalEqual()))
    return success();
  return parseDouble(parser, value.emplace());
}

ParseResult zero::parseHyperNames(OpAsmParser &parser, ArrayAttr &names,
                                  DictionaryAttr &defaults) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> list;
  NamedAttrList values;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    std::optional<double> value;
    if (parseNamedReal(parser, name, value))
      return failure();
    list.push_back(builder.getStringAttr(name));
    if (value)
      values.set(name, builder.getF64FloatAttr(*value));
    return success();
  };
  if (parser.parseCommaSeparatedList(Delimiter::Square, parseOne))
    return failure();
  names = builder.getArrayAttr(list);
  defaults = values.getDictionary(parser.getContext());
  return success();
}

static void printNamedReals(OpAsmPrinter &printer, ArrayAttr names,
                            DictionaryAttr values) {
  printer << "[";
  llvm::interleaveComma(names.getAsRange<StringAttr>(), printer,
                        [&](StringAttr name) {
                          printer.printKeywordOrString(name.getValue());
                          if (Attribute value = values.get(name)) {
                            printer << " = ";
                            printer.printAttributeWithoutType(value);
                          }
                        });
  printer << "]";
}

void zero::printHyperNames(OpAsmPrinter &printer, Operation *, ArrayAttr names,
                           DictionaryAttr defaults) {
  printNamedReals(printer, names, defaults);
}

ParseResult zero::parseCounters(OpAsmParser &parser, ArrayAttr &names,
                                DenseF64ArrayAttr &initial) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> list;
  SmallVector<double> values;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    std::optional<double> value;
    SMLoc loc = parser.getCurrentLocation();
    if (parseNamedReal(parser, name, value))
      return failure();
    if (!value)
      return parser.emitError(loc)
             << "counter '" << name << "' needs an initial value";
    list.push_back(builder.getStringAttr(name));
    values.push_back(*value);
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("counters")) &&
      parser.parseCommaSeparatedList(Delimiter::Square, parseOne))
    return failure();
  names = builder.getArrayAttr(list);
  initial = builder.getDenseF64ArrayAttr(values);
  return success();
}

void zero::printCounters(OpAsmPrinter &printer, Operation *op, ArrayAttr names,
                         DenseF64ArrayAttr initial) {
  if (names.empty())
    return;
  Builder builder(op->getContext());
  NamedAttrList values;
  for (auto [name, value] :
       llvm::zip_equal(names.getAsRange<StringAttr>(), initial.asArrayRef()))
    values.set(name, builder.getF64FloatAttr(value));
  printer << "counters ";
  printNamedReals(printer, names, values.getDictionary(op->getContext()));
}

ParseResult zero::parseStateNames(OpAsmParser &parser, ArrayAttr &names) {
  names = parser.getBuilder().getArrayAttr({});
  return succeeded(parser.parseOptionalKeyword("state"))
             ? parseNameList(parser, names)
             : success();
}

void zero::printStateNames(OpAsmPrinter &printer, Operation *op,
                           ArrayAttr names) {
  if (names.empty())
    return;
  printer << "state ";
  printNameList(printer, op, names);
}

ParseResult zero::parseHyperArguments(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands, ArrayAttr &names,
    DictionaryAttr &constants) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> list;
  NamedAttrList values;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&name) || parser.parseEqual())
      return failure();
    if (values.get(name) ||
        llvm::is_contained(list, builder.getStringAttr(name)))
      return parser.emitError(loc)
             << "hyperparameter '" << name << "' is given twice";
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult result = parser.parseOptionalOperand(operand);
    if (result.has_value()) {
      operands.push_back(operand);
      list.push_back(builder.getStringAttr(name));
      return *result;
    }
    double value;
    if (parseDouble(parser, value))
      return failure();
    values.set(name, builder.getF64FloatAttr(value));
    return success();
  };
  if (parser.parseKeyword("hyper") ||
      parser.parseCommaSeparatedList(Delimiter::Paren, parseOne))
    return failure();
  names = builder.getArrayAttr(list);
  constants = values.getDictionary(parser.getContext());
  return success();
}

void zero::printHyperArguments(OpAsmPrinter &printer, Operation *,
                               OperandRange operands, ArrayAttr names,
                               DictionaryAttr constants) {
  printer << "hyper(";
  llvm::interleaveComma(llvm::zip(names.getAsRange<StringAttr>(), operands),
                        printer, [&](auto pair) {
                          printer.printKeywordOrString(
                              std::get<0>(pair).getValue());
                          printer << " = " << std::get<1>(pair);
                        });
  if (!names.empty() && !constants.empty())
    printer << ", ";
  llvm::interleaveComma(constants, printer, [&](NamedAttribute constant) {
    printer.printKeywordOrString(constant.getName().getValue());
    printer << " = ";
    printer.printAttributeWithoutType(constant.getValue());
  });
  printer << ")";
}
