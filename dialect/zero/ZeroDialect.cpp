//===- ZeroDialect.cpp - Registration, attributes, generated code ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/ZeroDialect.h"

#include "dialect/zero/Rules.h"

#include "dialect/zero/Assembly.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;

#include "dialect/zero/ZeroDialect.cpp.inc"
#include "dialect/zero/ZeroEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/zero/ZeroAttrs.cpp.inc"

#include "dialect/zero/CounterInterface.cpp.inc"
#include "dialect/zero/LaidOutInterface.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/zero/ZeroOps.cpp.inc"

void ZeroDialect::initialize() {
  registerTypes();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/zero/ZeroAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/zero/ZeroOps.cpp.inc"
      >();
}

Attribute ScaleAttr::parse(AsmParser &parser, Type) {
  Scale factors;
  if (parseMonomial(parser, factors, AsmParser::Delimiter::LessGreater))
    return {};
  return get(parser.getContext(), factors);
}

void ScaleAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printScaleFactors(printer, getFactors());
  printer << ">";
}
