//===- NarrowSums.cpp - Sums that could travel narrower, exactly ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An accumulator in f32 holds sums that bf16 does not. The gradient of one
// backward pass, which arrives in bf16 and in one piece, is a bf16 number in an
// f32 buffer. A reduction in each backward pass (ZeRO-2) sends such numbers.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/NarrowSums.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

namespace {
/// The reduction of one bucket in each backward pass.
struct Sum {
  BucketOp bucket;
  Type arrives;
  Type travels;
  int64_t elements; // that each rank has addends of
  int64_t ranks;

  int64_t getBytesSent(Type type) const {
    return getRingBytes(elements * (type.getIntOrFloatBitWidth() / 8), ranks);
  }
};
} // namespace

int64_t zero::getRingBytes(int64_t bytes, int64_t ranks) {
  return bytes * (ranks - 1) / ranks;
}

/// Whether arrivals of a later backward pass are added to those of an earlier
/// one before anything is reduced.
static bool accumulatesArrivals(zrt::ProgramOp program) {
  return program
      .walk([](zrt::PackOp pack) {
        return pack.getAccumulate() ? WalkResult::interrupt()
                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The source and the axes of the one reduce_scatter of |handler|, if it takes
/// the gradients in |gradient| as they are, or converted by one kernel.
static std::pair<FlatSymbolRefAttr, ArrayAttr>
findScatter(zrt::HandlerOp handler, FlatSymbolRefAttr gradient) {
  FlatSymbolRefAttr converted;
  for (Operation &op : handler.getBody().getOps()) {
    if (auto launch = dyn_cast<zrt::LaunchOp>(op)) {
      ArrayAttr buffers = launch.getBuffers();
      if (converted || buffers.size() != 2 || buffers[0] != gradient)
        return {};
      converted = cast<FlatSymbolRefAttr>(buffers[1]);
      continue;
    }
    auto collective = dyn_cast<zrt::Collective>(op);
    zrt::Exchange exchange =
        collective ? collective.getExchange() : zrt::Exchange();
    if (!exchange.scatters || exchange.gathers)
      continue;
    if (exchange.source != (converted ? converted : gradient))
      return {};
    return {exchange.source, collective.getAxes()};
  }
  return {};
}

/// The reductions of |stage| that could travel as their gradients arrive.
static SmallVector<Sum> findNarrowSums(const StageProgram &stage) {
  zrt::ProgramOp program = stage.program;
  if (accumulatesArrivals(program))
    return {};
  SymbolTableCollection symbols;
  llvm::DenseMap<Attribute, zrt::BucketTableOp> arrivals;
  for (auto op : program.getOps<zrt::BucketTableOp>())
    arrivals[op.getBucketAttr()] = op;
  llvm::MapVector<Attribute, Sum> sums;
  for (auto sequence : program.getOps<zrt::SequenceOp>())
    for (auto [symbol, handler] :
         llvm::zip_equal(sequence.getBuckets(), sequence.getHandlers())) {
      auto bucket = zrt::lookup<BucketOp>(symbols, sequence,
                                          cast<FlatSymbolRefAttr>(symbol));
      auto [source, axes] =
          findScatter(zrt::lookup<zrt::HandlerOp>(
                          symbols, sequence, cast<FlatSymbolRefAttr>(handler)),
                      arrivals.lookup(symbol).getGradientAttr());
      if (!source)
        continue;
      auto buffer = zrt::lookup<zrt::BufferOp>(symbols, sequence, source);
      const zero_rt_buffer_row &row =
          stage.tables.buffers[stage.tables.getBuffer(source)];
      Sum sum{bucket, bucket.getArrivalType(),
              buffer.getValueType().getElementType(),
              stage.tables.getHeldElements(row),
              stage.tables.getNumRanks(stage.tables.getAxes(axes))};
      // The sum of several pieces of a gradient has more bits than its pieces.
      bool comesInOnePiece = llvm::all_of(
          bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
          [&](FlatSymbolRefAttr member) {
            return zrt::lookup<ParameterOp>(symbols, sequence, member)
                       .getUses() == 1;
          });
      if (comesInOnePiece && sum.ranks > 1 &&
          sum.arrives.getIntOrFloatBitWidth() <
              sum.travels.getIntOrFloatBitWidth())
        sums.insert({symbol, sum});
    }
  return llvm::to_vector(llvm::make_second_range(sums));
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// The warnings about |all|. |hasOthers| returns for a type whether a
/// zero.reduce in that type may also take gradients that it would round.
static json::Array describe(ArrayRef<Sum> all,
                            llvm::function_ref<bool(Type)> hasOthers) {
  llvm::MapVector<std::pair<Type, Type>, SmallVector<Sum>> byTypes;
  for (const Sum &sum : all)
    byTypes[{sum.arrives, sum.travels}].push_back(sum);
  json::Array warnings;
  for (auto &[types, sums] : byTypes) {
    auto [arrives, travels] = types;
    json::Array buckets;
    int64_t parameters = 0, bytes = 0, narrowBytes = 0;
    for (Sum &sum : sums) {
      buckets.push_back(sum.bucket.getSymName());
      parameters += sum.bucket.getMembers().size();
      bytes += sum.getBytesSent(travels);
      narrowBytes += sum.getBytesSent(arrives);
    }
    std::string message =
        llvm::formatv(
            "gradients of {0} parameter{1} arrive in {2} and are reduced in "
            "each backward pass as {3}: 'zero.reduce ... reduce_dtype {2}' "
            "sends {4} "
            "bytes instead of {5} per backward pass and rounds nothing, for a "
            "copy to one more buffer; at stages 0 and 1 it rounds sums of "
            "several backward passes",
            parameters, parameters == 1 ? "" : "s", print(arrives),
            print(travels), narrowBytes, bytes)
            .str();
    if (hasOthers(arrives))
      message += "; other gradients need a zero.reduce of their own, without "
                 "'reduce_dtype', as it may round theirs";
    warnings.push_back(
        json::Object{{"message", std::move(message)},
                     {"buckets", std::move(buckets)},
                     {"reduce_dtype", print(arrives)},
                     {"bytes_sent_per_backward",
                      json::Object{{"now", bytes}, {"then", narrowBytes}}}});
  }
  return warnings;
}

std::vector<json::Array>
zero::describeNarrowSums(ArrayRef<StageProgram> stages) {
  std::vector<SmallVector<Sum>> sums;
  size_t buckets = 0;
  llvm::DenseMap<Type, size_t> narrow;
  for (const StageProgram &stage : stages) {
    zrt::ProgramOp program = stage.program;
    buckets += llvm::range_size(program.getOps<zrt::BucketTableOp>());
    for (const Sum &sum : sums.emplace_back(findNarrowSums(stage)))
      ++narrow[sum.arrives];
  }
  std::vector<json::Array> warnings;
  for (ArrayRef<Sum> ofStage : sums)
    warnings.push_back(describe(
        ofStage, [&](Type type) { return narrow.lookup(type) != buckets; }));
  return warnings;
}
