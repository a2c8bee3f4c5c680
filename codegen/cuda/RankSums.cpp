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

/// The type in which sums over ranks are computed.
Type getWideType(Type sum) {
  return sum.isF64() ? sum : Float32Type::get(sum.getContext());
}

class Collector {
public:
  explicit Collector(zrt::ProgramOp program)
      : program(program), mesh(SymbolTable::lookupNearestSymbolFrom<MeshOp>(
                              program->getParentOp(), program.getMeshAttr())) {}

  std::vector<RankSum> collect() {
    program.walk([&](zrt::Collective call) {
      zrt::Exchange exchange = call.getExchange();
      if (!exchange.scatters)
        return;
      auto source = program.lookupSymbol<zrt::BufferOp>(exchange.source);
      auto target = program.lookupSymbol<zrt::BufferOp>(exchange.target);
      if (!source)
        addScalars(call.getAxes());
      else
        add(source.getValueType(), target.getValueType(), call.getAxes(),
            exchange.accumulates ? ZERO_RT_RANK_SUM_ADD
                                 : ZERO_RT_RANK_SUM_WRITE);
    });
    return std::move(sums);
  }

private:
  void add(ValueType addend, ValueType sum, ArrayAttr axes,
           zero_rt_rank_sum_kind kind) {
    int64_t ranks = 1;
    for (auto axis : axes.getAsRange<StringAttr>()) {
      // Counts only the pipeline stages that have the buffer.
      size_t stages = addend.getCoordinates(axis).size();
      ranks *= stages ? stages : mesh.getAxisSize(axis).value_or(1);
    }
    add({addend.getElementType(), sum.getElementType(), ranks, kind});
    // If NCCL computes the sum, a kernel only adds that sum to the destination.
    if (addend.getElementType() == sum.getElementType())
      addKernel({addend.getElementType(), sum.getElementType(), 1, kind});
  }

  void addScalars(ArrayAttr axes) {
    Type f64 = Float64Type::get(program.getContext());
    int64_t ranks = 1;
    for (auto axis : axes.getAsRange<StringAttr>())
      ranks *= mesh.getAxisSize(axis).value_or(1);
    add({f64, f64, ranks, ZERO_RT_RANK_SUM_WRITE});
  }

  void add(const RankSum &sum) {
    constexpr int64_t most = ZERO_RT_CUDA_MOST_RANKS;
    if (sum.ranks <= most)
      return addKernel(sum);
    Type wide = getWideType(sum.sum);
    addKernel({sum.addend, wide, most, ZERO_RT_RANK_SUM_WRITE});
    if (sum.ranks >= 2 * most)
      addKernel({sum.addend, wide, most, ZERO_RT_RANK_SUM_CONTINUE});
    if (int64_t rest = sum.ranks % most)
      addKernel({sum.addend, wide, rest, ZERO_RT_RANK_SUM_CONTINUE});
    addKernel({wide, sum.sum, 1, sum.kind});
  }

  void addKernel(const RankSum &sum) {
    bool isCopy = sum.ranks == 1 && sum.addend == sum.sum &&
                  sum.kind == ZERO_RT_RANK_SUM_WRITE;
    if (!isCopy && !llvm::is_contained(sums, sum))
      sums.push_back(sum);
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
      << (sum.kind == ZERO_RT_RANK_SUM_ADD        ? "_add"
          : sum.kind == ZERO_RT_RANK_SUM_CONTINUE ? "_more"
                                                  : "");
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
      context,
      sum.kind == ZERO_RT_RANK_SUM_WRITE ? Access::write : Access::update));
  auto kernel = builder.create<zrt::KernelOp>(
      loc, getName(sum), builder.getTypeArrayAttr(types),
      builder.getArrayAttr(accesses), /*num_scalars=*/0, /*predicated=*/false,
      /*sums=*/false);
  Block &body = kernel.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);

  Type wide = getWideType(sum.sum);
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
  SmallVector<Value> addends;
  for (int64_t rank = 0; rank < sum.ranks; ++rank)
    addends.push_back(widen(body.addArgument(sum.addend, loc)));
  Value present;
  if (sum.kind != ZERO_RT_RANK_SUM_WRITE)
    present = widen(body.addArgument(sum.sum, loc));
  bool continues = sum.kind == ZERO_RT_RANK_SUM_CONTINUE;
  Value total = continues ? present : Value();
  for (Value addend : addends)
    total = total ? builder.create<arith::AddFOp>(loc, total, addend) : addend;
  total = narrow(total);
  if (sum.kind == ZERO_RT_RANK_SUM_ADD)
    total = narrow(builder.create<arith::AddFOp>(loc, present, widen(total)));
  builder.create<zrt::YieldOp>(loc, total);
  return kernel;
}
