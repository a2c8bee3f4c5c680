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
    An op of a handler: one call of the runtime, which has the name of the op. The op
    describes the arguments of the call. From the description follow the memory that the
    call reads and writes, the code that makes the call, and the line of the call with
    which a compiled library is compared.
  }];
  let methods = [
    InterfaceMethod<[{
        Describes the arguments of the call behind the step, in the order of its prototype
        in `calls.def`.
      }],
      "void", "describeCall", (ins "::zrt::CallDescription &":$call)>,
    InterfaceMethod<[{
        Adds the memory that the call reads and writes to `uses`. The memory of a
        call of an `arrive` handler is that of the bucket `arriving`, which is null
        elsewhere. A call that touches more than its arguments overrides this method.
      }],
      "void", "getMemoryUses",
      (ins "const ::zrt::ProgramSymbols &":$symbols,
           "::mlir::FlatSymbolRefAttr":$arriving,
           "::llvm::SmallVectorImpl<::zrt::MemoryUse> &":$uses), "", [{
        ::zrt::addArgumentUses($_op, symbols, arriving, uses);
      }]>,
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
    InterfaceMethod<"The axes over which ranks meet.", "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<"What the ranks give each other.", "::zrt::Exchange", "getExchange">
  ];
}

#endif // ZRT_RUNTIME_CALL_TD
