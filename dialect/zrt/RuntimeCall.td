//===- RuntimeCall.td - What every call of the runtime answers -*- tablegen -=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_RUNTIME_CALL_TD
#define ZRT_RUNTIME_CALL_TD

include "mlir/IR/OpBase.td"

def Zrt_RuntimeCall : OpInterface<"RuntimeCall"> {
  let cppNamespace = "::zrt";
  let description = [{
    An op of a handler: one call of the runtime. The schedule and the proof of the
    schedule ask it on which stream it runs, and which memory it reads and writes.
  }];
  let methods = [
    InterfaceMethod<[{
        Adds the memory that the call reads and writes to `uses`. The memory of a
        call of an `arrive` handler is that of the bucket `arriving`, which is null
        elsewhere.
      }],
      "void", "getMemoryUses",
      (ins "const ::zrt::ProgramSymbols &":$symbols,
           "::mlir::FlatSymbolRefAttr":$arriving,
           "::llvm::SmallVectorImpl<::zrt::MemoryUse> &":$uses)>,
    InterfaceMethod<"The stream to which the call queues its work.",
      "::zrt::Stream", "getStream", (ins), "", [{ return Stream::compute; }]>
  ];
}

def Zrt_Collective : OpInterface<"Collective"> {
  let cppNamespace = "::zrt";
  let description = [{
    A call in which the ranks that differ over some axes meet: none is done with it
    before all have reached it.
  }];
  let methods = [
    InterfaceMethod<"The axes over which ranks meet.", "::mlir::ArrayAttr", "getAxes">
  ];
}

#endif // ZRT_RUNTIME_CALL_TD
