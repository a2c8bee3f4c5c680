//===- ZeroDialect.td - The zero dialect -------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Include order: ZeroDialect <- ZeroTypes <- SymbolOps <- LogicalOps <-
// ScalarOps <- ShardedOps <- PlacedOps <- ZeroOps (the only file given to the op generators).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_TD
#define ZERO_DIALECT_TD

include "mlir/IR/OpBase.td"

def Zero_Dialect : Dialect {
  let name = "zero";
  let cppNamespace = "::zero";
  let summary = "The update part of a distributed training step, as values";
  let description = [{
    A training step after its backward passes: accumulate, reduce, norm, clip,
    update, gather. The placement of a value over the ranks of the mesh is part of its
    type (`!zero.value`). So the sum of a reduced gradient and one that is not reduced
    fails to verify.

    The dialect has three phases:

    - **logical**: the computation over the whole cluster, with one value per parameter,
      and without owners, buckets and collectives;
    - **sharded**: one value per bucket; every collective is explicit, and symbols name
      the optimizer state;
    - **placed**: values also move between the memories of device and host.

    Buffers do not exist here. The `zrt` dialect has them.

    | `!zero.value` over an axis | DTensor | JAX |
    |---|---|---|
    | replicated (not listed) | `Replicate()` | `P(None)` |
    | `sharded = [dp]` | `Shard(0)` | `P('dp')` |
    | `partial = [dp]` | `Partial('sum')` | `P(unreduced={'dp'})` |
    | `partial_max`, `partial_min` | `Partial('max')`, `Partial('min')` | – |
    | `varying = [dp]` | – | `varying` in `shard_map` |
    | `reduced = [ep]` | – | `P(reduced={'ep'})` |
    | `space = host` | `device="cpu"` of the local tensor | `memory_kind="pinned_host"` |
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = "void registerTypes();";
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

class Zero_Op<string mnemonic, list<Trait> traits = []>
    : Op<Zero_Dialect, mnemonic, traits>;

/// A string attribute may have a type. One with a type is another attribute with
/// the same text, so a name has none.
def Zero_Untyped : AttrConstraint<
    CPred<"::llvm::isa<::mlir::NoneType>("
          "::llvm::cast<::mlir::StringAttr>($_self).getType())">,
    "without a type">;

def Zero_NameAttr : ConfinedAttr<StrAttr, [Zero_Untyped]>;
def Zero_NameArrayAttr : TypedArrayAttrBase<Zero_NameAttr, "array of names"> {
  let constBuilderCall = "$_builder.getStrArrayAttr($0)";
}

/// The name of what C symbols, messages and checkpoints name.
def Zero_SymbolNameAttr : ConfinedAttr<SymbolNameAttr, [AttrConstraint<
    CPred<"!::llvm::cast<::mlir::StringAttr>($_self).empty()">,
    "of at least one character">, Zero_Untyped]>;

#endif // ZERO_DIALECT_TD
