//===- MeshAssembly.cpp - How the axes of a mesh are written --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Assembly.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace zero;
using Delimiter = AsmParser::Delimiter;

/// Parses `"dp" = 4`.
static MeshAxisAttr parseMeshAxis(AsmParser &parser) {
  std::string name;
  int64_t size;
  if (parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(size))
    return {};
  return MeshAxisAttr::get(parser.getContext(),
                           parser.getBuilder().getStringAttr(name), size);
}

static void printMeshAxis(AsmPrinter &printer, MeshAxisAttr axis) {
  printer << axis.getName() << " = " << axis.getSize();
}

/// Parses `"dp" = ["edp", "ep"]`.
static FlattenedAxesAttr parseFlattenedAxes(AsmParser &parser) {
  std::string name;
  ArrayAttr axes;
  if (parser.parseString(&name) || parser.parseEqual() ||
      parser.parseAttribute(axes))
    return {};
  return FlattenedAxesAttr::get(parser.getContext(),
                                parser.getBuilder().getStringAttr(name), axes);
}

static void printFlattenedAxes(AsmPrinter &printer, FlattenedAxesAttr axes) {
  printer << axes.getName() << " = " << axes.getAxes();
}

/// Parses what |parseOne| does, in angle brackets.
template <typename AttrT>
static Attribute parseInAngles(AsmParser &parser,
                               AttrT (*parseOne)(AsmParser &)) {
  AttrT attribute;
  if (parser.parseLess() || !(attribute = parseOne(parser)) ||
      parser.parseGreater())
    return {};
  return attribute;
}

/// Parses a list of what |parseOne| does, in square brackets.
template <typename AttrT>
static ParseResult parseList(AsmParser &parser, ArrayAttr &list,
                             AttrT (*parseOne)(AsmParser &)) {
  SmallVector<Attribute> attributes;
  if (parser.parseCommaSeparatedList(Delimiter::Square, [&] {
        attributes.push_back(parseOne(parser));
        return success(static_cast<bool>(attributes.back()));
      }))
    return failure();
  list = parser.getBuilder().getArrayAttr(attributes);
  return success();
}

template <typename AttrT>
static void printList(AsmPrinter &printer, ArrayAttr list,
                      void (*printOne)(AsmPrinter &, AttrT)) {
  printer << "[";
  llvm::interleaveComma(list.getAsRange<AttrT>(), printer,
                        [&](AttrT one) { printOne(printer, one); });
  printer << "]";
}

Attribute MeshAxisAttr::parse(AsmParser &parser, Type) {
  return parseInAngles(parser, parseMeshAxis);
}

void MeshAxisAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printMeshAxis(printer, *this);
  printer << ">";
}

Attribute FlattenedAxesAttr::parse(AsmParser &parser, Type) {
  return parseInAngles(parser, parseFlattenedAxes);
}

void FlattenedAxesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printFlattenedAxes(printer, *this);
  printer << ">";
}

ParseResult zero::parseMeshAxes(OpAsmParser &parser, ArrayAttr &axes) {
  return parseList(parser, axes, parseMeshAxis);
}

void zero::printMeshAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printList(printer, axes, printMeshAxis);
}

ParseResult zero::parseFlattenedAxesList(OpAsmParser &parser,
                                         ArrayAttr &flattened) {
  if (succeeded(parser.parseOptionalKeyword("flattened")))
    return parseList(parser, flattened, parseFlattenedAxes);
  flattened = parser.getBuilder().getArrayAttr({});
  return success();
}

void zero::printFlattenedAxesList(OpAsmPrinter &printer, Operation *,
                                  ArrayAttr flattened) {
  if (flattened.empty())
    return;
  printer << "flattened ";
  printList(printer, flattened, printFlattenedAxes);
}
