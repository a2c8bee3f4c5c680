//===- KernelOps.td - Kernels and scalar programs ----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_KERNEL_OPS_TD
#define ZRT_KERNEL_OPS_TD

include "dialect/zrt/TableOps.td"

def Zrt_KernelOp : Zrt_SymbolOp<"kernel", [IsolatedFromAbove]> {
  let summary = "A fused loop: one scalar body for each element";
  let description = [{
    Operands are arrays with an element type and an access. The body takes the element of each
    operand that is read or updated, and then `scalars` f64 scalars of the step. It yields the
    new element of each operand that is written or updated.

    With `sums` the body also yields one f64, which is summed over all elements in a fixed
    order:

    - element i is added in lane i mod 32;
    - a block has 4096 elements;
    - the lanes of a block are folded in halves;
    - the sums of blocks are added in the same way.

    A `predicated` kernel does nothing unless its first scalar is 0.

    Bodies hold `arith` and `math` ops. A multiplication and an addition are contracted only as
    `math.fma`. A conversion to bf16 rounds to nearest even, in integer arithmetic. Results are
    the same on every machine, except for the sign and the payload of a NaN. `math.copysign`
    treats the sign of a NaN as that of 0.

    Constraints:

    - `kernel_c1`: arguments are the elements that are read, then the f64 scalars;
    - `kernel_c2`: the body yields one element per operand that is written, and one f64 if the
      kernel sums;
    - `kernel_c3`: the body holds only `arith` and `math` ops and `zrt.yield`;
    - `kernel_c4`: a predicated kernel has a scalar;
    - `kernel_c5`: each operand has an access;
    - `kernel_c6`: there are at most 4096 scalars.

    Example:

    ```mlir
    zrt.kernel @store [read bf16, write f32] scalars 0 {
    ^body(%g: bf16):
      %x = arith.extf %g : bf16 to f32
      zrt.yield %x : f32
    }
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, TypeArrayAttr:$operand_types,
    TypedArrayAttrBase<Zrt_AccessAttr, "accesses">:$accesses,
    I64Attr:$num_scalars, UnitAttr:$predicated, UnitAttr:$sums);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name custom<KernelOperands>($operand_types, $accesses)
    `scalars` $num_scalars (`predicated` $predicated^)? (`sums` $sums^)?
    attr-dict-with-keyword custom<OwnNames>($body)
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumArrays() { return getOperandTypes().size(); }
    ::mlir::Type getArrayType(unsigned i) {
      return ::llvm::cast<::mlir::TypeAttr>(getOperandTypes()[i]).getValue();
    }
    Access getArrayAccess(unsigned i) {
      return ::llvm::cast<AccessAttr>(getAccesses()[i]).getValue();
    }
  }];
}

def Zrt_ScalarsOp : Zrt_SymbolOp<"scalars", [IsolatedFromAbove, NoRegionArguments]> {
  let summary = "Straight-line f64 math over scalar slots";
  let description = [{
    Constraints:

    - `scalars_c1`: the body holds `zrt.load_slot`, `zrt.store_slot`, `arith` and `math` ops,
      and ends with a `zrt.yield` without operands;
    - `scalars_c2`: floats are f64.

    Example:

    ```mlir
    zrt.scalars @half {
      %x = zrt.load_slot @lr[0]
      %c = arith.constant 0.5 : f64
      %y = arith.mulf %x, %c : f64
      zrt.store_slot %y, @norm[0]
      zrt.yield
    }
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword custom<OwnNames>($body)";
  let hasRegionVerifier = 1;
}

def Zrt_YieldOp : Zrt_Op<"yield",
    [Terminator, Pure, ParentOneOf<["KernelOp", "ScalarsOp"]>]> {
  let summary = "Ends the body of a kernel or of a scalar program";
  let description = [{
    Yields the elements that a kernel writes, and the addend of a kernel that sums.

    Example: see `zrt.kernel`.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Zrt_LoadSlotOp : Zrt_Op<"load_slot",
    [MemoryEffects<[MemRead]>, HasParent<"ScalarsOp">,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Reads a scalar slot";
  let description = [{
    Constraints:

    - `load_slot_c1`: the scalar slot exists.

    Example: see `zrt.scalars`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$slots, I64Attr:$index);
  let results = (outs F64:$value);
  let assemblyFormat = "$slots `[` $index `]` attr-dict";
}

def Zrt_StoreSlotOp : Zrt_Op<"store_slot",
    [MemoryEffects<[MemWrite]>, HasParent<"ScalarsOp">,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Writes a scalar slot";
  let description = [{
    Constraints:

    - `store_slot_c1`: the scalar slot exists.

    Example: see `zrt.scalars`.
  }];
  let arguments = (ins F64:$value, FlatSymbolRefAttr:$slots, I64Attr:$index);
  let assemblyFormat = "$value `,` $slots `[` $index `]` attr-dict";
}

#endif // ZRT_KERNEL_OPS_TD
