//===- RankSums.cpp - Kernels that sum over ranks -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/RankSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace zero;
using zrt::Access;

namespace {

class Collector {
public:
  explicit Collector(zrt::ProgramOp program)
      : program(program), mesh(SymbolTable::lookupNearestSymbolFrom<MeshOp>(
                              program->getParentOp(), program.getMeshAttr())) {}

  std::vector<RankSum> collect() {
    program.walk([&](Operation *op) {
      if (auto call = dyn_cast<zrt::AllReduceOp>(op))
        add(getType(call.getBufferAttr()), getType(call.getResultBuffer()),
            call.getAxes(), false);
      else if (auto call = dyn_cast<zrt::ReduceScatterOp>(op))
        add(getType(call.getSourceAttr()), getType(call.getTargetAttr()),
            call.getAxes(), false);
      else if (auto call = dyn_cast<zrt::ReduceScatterAddOp>(op))
        add(getType(call.getSourceAttr()), getType(call.getTargetAttr()),
            call.getAxes(), true);
      else if (auto call = dyn_cast<zrt::AllReduceScalarsOp>(op))
        addScalars(call.getAxes());
    });
    return std::move(sums);
  }

private:
  ValueType getType(FlatSymbolRefAttr name) {
    return program.lookupSymbol<zrt::BufferOp>(name).getValueType();
  }

  void add(ValueType addend, ValueType sum, ArrayAttr axes, bool accumulates) {
    int64_t ranks = 1;
    for (auto axis : axes.getAsRange<StringAttr>()) {
      // Of pipeline stages only those that have the buffer.
      size_t stages = addend.getCoordinates(axis).size();
      ranks *= stages ? stages : mesh.getAxisSize(axis).value_or(1);
    }
    add({addend.getElementType(), sum.getElementType(), ranks, accumulates});
    // Where a network adds, what is left is to add its sum to what is there.
    if (accumulates && addend.getElementType() == sum.getElementType())
      add({addend.getElementType(), sum.getElementType(), 1, accumulates});
  }

  void addScalars(ArrayAttr axes) {
    Type f64 = Float64Type::get(program.getContext());
    int64_t ranks = 1;
    for (auto axis : axes.getAsRange<StringAttr>())
      ranks *= mesh.getAxisSize(axis).value_or(1);
    add({f64, f64, ranks, /*accumulates=*/false});
  }

  void add(const RankSum &found) {
    const auto &[addend, sum, ranks, accumulates] = found;
    bool isCopy = ranks == 1 && addend == sum && !accumulates;
    if (!isCopy && ranks <= kMaxRanksInSight &&
        !llvm::is_contained(sums, found))
      sums.push_back(found);
  }

  zrt::ProgramOp program;
  MeshOp mesh;
  std::vector<RankSum> sums;
};

} // namespace

std::vector<RankSum> zero::collectRankSums(zrt::ProgramOp program) {
  return Collector(program).collect();
}

std::string zero::getName(const RankSum &sum) {
  std::string name;
  llvm::raw_string_ostream(name)
      << sum.addend << '_' << sum.sum << '_' << sum.ranks
      << (sum.accumulates ? "_add" : "");
  return name;
}

OwningOpRef<zrt::KernelOp> zero::makeRankSum(const RankSum &sum, Location loc) {
  MLIRContext *context = loc.getContext();
  OpBuilder builder(context);
  SmallVector<Type> types(sum.ranks, sum.addend);
  types.push_back(sum.sum);
  SmallVector<Attribute> accesses(sum.ranks,
                                  zrt::AccessAttr::get(context, Access::read));
  accesses.push_back(zrt::AccessAttr::get(
      context, sum.accumulates ? Access::update : Access::write));
  auto kernel = builder.create<zrt::KernelOp>(
      loc, getName(sum), builder.getTypeArrayAttr(types),
      builder.getArrayAttr(accesses), /*num_scalars=*/0, /*predicated=*/false,
      /*sums=*/false);
  Block &body = kernel.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);

  Type wide = sum.sum.isF64() ? builder.getF64Type() : builder.getF32Type();
  auto widen = [&](Value value) -> Value {
    return value.getType() == wide
               ? value
               : builder.create<arith::ExtFOp>(loc, wide, value);
  };
  auto narrow = [&](Value value) -> Value {
    return wide == sum.sum
               ? value
               : builder.create<arith::TruncFOp>(loc, sum.sum, value);
  };
  Value total;
  for (int64_t rank = 0; rank < sum.ranks; ++rank) {
    Value addend = widen(body.addArgument(sum.addend, loc));
    total = rank ? builder.create<arith::AddFOp>(loc, total, addend) : addend;
  }
  total = narrow(total);
  if (sum.accumulates) {
    Value present = widen(body.addArgument(sum.sum, loc));
    total = narrow(builder.create<arith::AddFOp>(loc, present, widen(total)));
  }
  builder.create<zrt::YieldOp>(loc, total);
  return kernel;
}
