//===- ZrtDialect.cpp - Registration, directives, generated code ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zrt/ZrtDialect.h"

#include "dialect/zero/Assembly.h"
#include "dialect/zrt/CallDescription.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zrt;
using zero::parseNameList;
using zero::parseOwnNames;
using zero::parseScaleList;
using zero::printNameList;
using zero::printOwnNames;
using zero::printScaleList;

//===----------------------------------------------------------------------===//
// Directives
//===----------------------------------------------------------------------===//

/// One of an enum's keywords.
template <typename AttrT, typename SymbolizeFn>
static ParseResult parseEnum(AsmParser &parser, AttrT &attr,
                             SymbolizeFn symbolize) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  auto value = symbolize(keyword);
  if (!value)
    return parser.emitError(loc) << "unknown keyword '" << keyword << "'";
  attr = AttrT::get(parser.getContext(), *value);
  return success();
}

static ParseResult parseRole(OpAsmParser &parser, RoleAttr &attr) {
  return parseEnum(parser, attr, [](StringRef k) { return symbolizeRole(k); });
}
static void printRole(OpAsmPrinter &printer, Operation *, RoleAttr attr) {
  printer << stringifyRole(attr.getValue());
}
static ParseResult parseSpace(OpAsmParser &parser, SpaceAttr &attr) {
  return parseEnum(parser, attr, [](StringRef k) { return symbolizeSpace(k); });
}
static void printSpace(OpAsmPrinter &printer, Operation *, SpaceAttr attr) {
  printer << stringifySpace(attr.getValue());
}
static ParseResult parseEvent(OpAsmParser &parser, EventAttr &attr) {
  return parseEnum(parser, attr, [](StringRef k) { return symbolizeEvent(k); });
}
static void printEvent(OpAsmPrinter &printer, Operation *, EventAttr attr) {
  printer << stringifyEvent(attr.getValue());
}

static ParseResult parseStream(OpAsmParser &parser, StreamAttr &attr) {
  return parseEnum(parser, attr,
                   [](StringRef k) { return symbolizeStream(k); });
}
static void printStream(OpAsmPrinter &printer, Operation *, StreamAttr attr) {
  printer << stringifyStream(attr.getValue());
}

static ParseResult parseKeyword(OpAsmParser &parser, StringAttr &attr) {
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  attr = parser.getBuilder().getStringAttr(keyword);
  return success();
}
static void printKeyword(OpAsmPrinter &printer, Operation *, StringAttr attr) {
  printer << attr.getValue();
}

/// `[read bf16, write f32]`
static ParseResult parseKernelOperands(OpAsmParser &parser, ArrayAttr &types,
                                       ArrayAttr &accesses) {
  SmallVector<Attribute> typeList;
  SmallVector<Attribute> accessList;
  auto parseOperand = [&]() -> ParseResult {
    AccessAttr access;
    Type type;
    if (parseEnum(parser, access,
                  [](StringRef k) { return symbolizeAccess(k); }) ||
        parser.parseType(type))
      return failure();
    typeList.push_back(TypeAttr::get(type));
    accessList.push_back(access);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseOperand))
    return failure();
  types = parser.getBuilder().getArrayAttr(typeList);
  accesses = parser.getBuilder().getArrayAttr(accessList);
  return success();
}

static void printKernelOperands(OpAsmPrinter &printer, Operation *,
                                ArrayAttr types, ArrayAttr accesses) {
  printer << "[";
  llvm::interleaveComma(llvm::zip(accesses, types), printer, [&](auto pair) {
    printer << stringifyAccess(cast<AccessAttr>(std::get<0>(pair)).getValue())
            << " " << std::get<1>(pair);
  });
  printer << "]";
}

//===----------------------------------------------------------------------===//
// Generated code
//===----------------------------------------------------------------------===//

#include "dialect/zrt/ZrtDialect.cpp.inc"
#include "dialect/zrt/ZrtEnums.cpp.inc"

#include "dialect/zrt/RuntimeCall.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/zrt/ZrtAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/zrt/ZrtOps.cpp.inc"

void ZrtDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/zrt/ZrtAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/zrt/ZrtOps.cpp.inc"
      >();
}

static ProgramOp getProgram(Operation *op) {
  return isa<ProgramOp>(op) ? cast<ProgramOp>(op)
                            : op->getParentOfType<ProgramOp>();
}

Operation *zrt::lookupInProgram(SymbolTableCollection &symbols, Operation *op,
                                FlatSymbolRefAttr symbol) {
  ProgramOp program = getProgram(op);
  return program ? symbols.lookupSymbolIn(program, symbol.getAttr()) : nullptr;
}

Operation *zrt::lookupInModule(SymbolTableCollection &symbols, Operation *op,
                               FlatSymbolRefAttr symbol) {
  if (ProgramOp program = getProgram(op))
    op = program->getParentOp();
  return op ? symbols.lookupNearestSymbolFrom(op, symbol.getAttr()) : nullptr;
}

zero::ValueType zrt::getPlace(SymbolTableCollection &symbols, Operation *op) {
  FlatSymbolRefAttr symbol;
  bool isOnFirstStage = false;
  if (auto call = dyn_cast<RuntimeCall>(op)) {
    CallDescription description(call);
    symbol = description.getPlace();
    isOnFirstStage = description.isOnFirstStage();
  } else if (auto table = dyn_cast<UnitTableOp>(op)) {
    auto unit = lookup<zero::UnitOp>(symbols, op, table.getUnitAttr());
    return unit ? unit.getPlace(symbols) : zero::ValueType();
  } else {
    // Only inherent attributes count. Discardable ones have no meaning here.
    symbol = dyn_cast_if_present<FlatSymbolRefAttr>(
        op->getInherentAttr("bucket").value_or(nullptr));
  }
  if (!symbol)
    return nullptr;
  auto buffer = lookup<BufferOp>(symbols, op, symbol);
  if (!buffer) {
    auto bucket = lookup<zero::LaidOut>(symbols, op, symbol);
    return bucket ? bucket.getValueType() : zero::ValueType();
  }
  zero::ValueType type = buffer.getValueType();
  return isOnFirstStage ? type.withStages(type.getFirstStage()) : type;
}

FlatSymbolRefAttr CallDescription::getPlace() const {
  for (const CallArgument &argument : arguments) {
    if (argument.kind == Kind::buffer || argument.kind == Kind::bucket)
      return argument.symbol;
    if (argument.kind == Kind::buffers && !argument.list.empty())
      return cast<FlatSymbolRefAttr>(argument.list[0]);
  }
  return nullptr;
}
