//===- ZrtDialect.td - The zrt dialect ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Include order: ZrtDialect <- TableOps <- ScheduleOps <- ProgramOps, and
// TableOps <- KernelOps, ProtocolOps. ZrtOps includes all of them, and is the
// only file given to the op generators.
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_DIALECT_TD
#define ZRT_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Zrt_Dialect : Dialect {
  let name = "zrt";
  let cppNamespace = "::zrt";
  let summary = "A scheduled step: buffers, kernels, handlers, protocol";
  let description = [{
    The parts of a compiled step. Values do not exist here:

    - a buffer has a role, a lifetime and the placement of its contents;
    - a kernel is a scalar body over elements;
    - a handler is a list of calls of the runtime; one op is one call of `calls.def`;
    - the protocol is an automaton. Its state is the only flag at run time.

    Shapes are global. The runtime localizes them to its rank in one place.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::zero::ZeroDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

class Zrt_Op<string mnemonic, list<Trait> traits = []>
    : Op<Zrt_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Enums. Numbers are those of zero_rt/abi.h and zero_rt/library.h.
//===----------------------------------------------------------------------===//

class Zrt_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::zrt";
  let genSpecializedAttr = 0;
}
class Zrt_EnumAttr<EnumAttrInfo info, string mnemonic>
    : EnumAttr<Zrt_Dialect, info, mnemonic>;

def Zrt_Role : Zrt_Enum<"Role", "the role of a buffer", [
  I32EnumAttrCase<"parameter", 0>, I32EnumAttrCase<"gradient", 1>,
  I32EnumAttrCase<"accumulator", 2>, I32EnumAttrCase<"state", 3>,
  I32EnumAttrCase<"scalar", 4>, I32EnumAttrCase<"staging", 5>]>;
def Zrt_RoleAttr : Zrt_EnumAttr<Zrt_Role, "role">;

def Zrt_Space : Zrt_Enum<"Space", "the memory space of a buffer", [
  I32EnumAttrCase<"device", 0>, I32EnumAttrCase<"host", 1>]>;
def Zrt_SpaceAttr : Zrt_EnumAttr<Zrt_Space, "space">;

def Zrt_Access : Zrt_Enum<"Access", "the access of a kernel to an operand", [
  I32EnumAttrCase<"read", 0>, I32EnumAttrCase<"write", 1>,
  I32EnumAttrCase<"update", 2>]>;
def Zrt_AccessAttr : Zrt_EnumAttr<Zrt_Access, "access">;

def Zrt_Event : Zrt_Enum<"Event", "an event of the protocol", [
  I32EnumAttrCase<"begin", 0>, I32EnumAttrCase<"arrive", 1>,
  I32EnumAttrCase<"accumulate", 2>, I32EnumAttrCase<"apply", 3>,
  I32EnumAttrCase<"discard", 4>, I32EnumAttrCase<"begin_last", 5>,
  I32EnumAttrCase<"measure", 6>, I32EnumAttrCase<"unshard", 7>,
  I32EnumAttrCase<"reshard", 8>]>;
def Zrt_EventAttr : Zrt_EnumAttr<Zrt_Event, "event">;

def Zrt_Stream : Zrt_Enum<"Stream", "a queue of a rank's device", [
  I32EnumAttrCase<"compute", 0>, I32EnumAttrCase<"collective", 1>,
  I32EnumAttrCase<"to_host", 2>, I32EnumAttrCase<"host", 3>,
  I32EnumAttrCase<"to_device", 4>, I32EnumAttrCase<"caller", 5>]>;
def Zrt_StreamAttr : Zrt_EnumAttr<Zrt_Stream, "stream">;

#endif // ZRT_DIALECT_TD
