//===- Protocol.cpp - When the buffers of a bucket are used ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Protocol.h"

#include "passes/lower/Units.h"

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::Role;

/// Calls all |sums| of |bucket|, of the addends in |buffer|.
static void emitSums(ProgramBuilder &program, HandlerBuilder &calls,
                     const BucketBuffers &bucket, FlatSymbolRefAttr buffer) {
  for (const GradientSum &sum : bucket.sums) {
    calls.setLoc(sum.loc);
    if (!sum.scatters) {
      calls.call<zrt::AllReduceOp>(buffer, FlatSymbolRefAttr(), sum.axes);
      continue;
    }
    calls.call<zrt::ReduceScatterOp>(
        prepareAddends(program, calls, bucket, buffer), bucket.reduced,
        sum.axes);
    buffer = bucket.reduced;
  }
}

/// Reverts the sums of |bucket| that are in place: from here on the sum is an
/// addend, like the gradients of later backward passes. A sum that was
/// scattered needs no call, since its addends still exist.
static void emitUnreduce(ProgramBuilder &program, HandlerBuilder &calls,
                         const BucketBuffers &bucket) {
  SmallVector<Attribute> axes;
  for (const GradientSum &sum : bucket.sums) {
    if (sum.scatters)
      break;
    llvm::append_range(axes, sum.axes);
  }
  if (!axes.empty())
    calls.call<zrt::KeepOnRootOp>(bucket.gradient,
                                  program.getBuilder().getArrayAttr(axes));
}

using CloseBucket = llvm::function_ref<void(HandlerBuilder &, BucketBuffers &,
                                            FlatSymbolRefAttr symbol)>;

/// Creates a sequence that closes buckets one by one. |close| fills the handler
/// of each bucket.
static FlatSymbolRefAttr buildSequence(ProgramBuilder &program,
                                       BucketMap &buckets, StringRef name,
                                       CloseBucket close) {
  SmallVector<Attribute> symbols, handlers;
  for (auto &[bucketName, bucket] : buckets) {
    symbols.push_back(FlatSymbolRefAttr::get(bucket.op));
    program.setLoc(bucket.op.getLoc());
    zrt::HandlerOp handler =
        program.handler(bucketName.getValue() + ".close_" + name);
    handlers.push_back(FlatSymbolRefAttr::get(handler));
    HandlerBuilder calls(handler);
    close(calls, bucket, cast<FlatSymbolRefAttr>(symbols.back()));
  }
  return program.sequence(name, symbols, handlers);
}

using SumKernel = FlatSymbolRefAttr (ProgramBuilder::*)(Type, Type);

/// Stores the gradient of |bucket| in |target| by the kernel |sum|, or adds it.
static void launchSum(ProgramBuilder &program, HandlerBuilder &calls,
                      const BucketBuffers &bucket, SumKernel sum,
                      FlatSymbolRefAttr target) {
  calls.call<zrt::LaunchOp>(
      (program.*sum)(bucket.gradientType.getElementType(),
                     program.getElementType(target)),
      program.getBuilder().getArrayAttr({bucket.gradient, target}),
      bucket.whole, /*own=*/ArrayAttr(), /*sum=*/FlatSymbolRefAttr(),
      /*sum_index=*/IntegerAttr(), /*first_stage=*/UnitAttr());
}

/// Zeroes the gradients that did not arrive, and then sums over the ranks into
/// this rank's slice of the bucket by |ReduceT|. A bucket without axes to
/// scatter over is stored or added by the kernel |sum|.
template <typename ReduceT>
static FlatSymbolRefAttr buildLoopSequence(ProgramBuilder &program,
                                           BucketMap &buckets, StringRef name,
                                           SumKernel sum) {
  auto close = [&](HandlerBuilder &calls, BucketBuffers &bucket,
                   FlatSymbolRefAttr symbol) {
    calls.call<zrt::FillMissingOp>(symbol);
    if (bucket.scatterAxes) {
      calls.setLoc(bucket.scatterLoc);
      calls.call<ReduceT>(
          prepareAddends(program, calls, bucket, bucket.gradient),
          bucket.reduced, bucket.scatterAxes);
      return;
    }
    launchSum(program, calls, bucket, sum, bucket.reduced);
  };
  return buildSequence(program, buckets, name, close);
}

namespace {
/// Builds the automaton of one program.
class ProtocolBuilder {
public:
  ProtocolBuilder(ProgramBuilder &program, BucketMap &buckets,
                  const ApplyHandlers &ends, bool hasUnits)
      : program(program), buckets(buckets), ends(ends), hasUnits(hasUnits) {}

  void build(bool oneBackward);

private:
  using Handlers = SmallVector<FlatSymbolRefAttr>;
  struct Accumulation;

  FlatSymbolRefAttr
  handler(StringRef name,
          llvm::function_ref<void(HandlerBuilder &, BucketBuffers &)> each);
  FlatSymbolRefAttr packHandler(StringRef name, bool accumulate);
  FlatSymbolRefAttr buildOnlySequence(StringRef name);
  FlatSymbolRefAttr fillHandler();
  void addToSum(HandlerBuilder &calls, BucketBuffers &bucket);
  void declareAccumulators();
  void buildRoleChanges();
  void buildOneBackward();
  void buildSummedInLoop();
  Accumulation accumulateInPlace();
  Accumulation accumulateApart();
  void buildSummedAtApply();
  void transition(StringRef state, Event event, StringRef target,
                  const Handlers &handlers, FlatSymbolRefAttr sequence = {});
  void end(StringRef state, Handlers close, FlatSymbolRefAttr sequence = {});
  Handlers getReset() const { return reset ? Handlers{reset} : Handlers(); }

  ProgramBuilder &program;
  BucketMap &buckets;
  const ApplyHandlers &ends;
  const bool hasUnits;
  FlatSymbolRefAttr beginNext; // the buffer outlives its backward pass
  FlatSymbolRefAttr reset;     // null if no buffer does
};
} // namespace

FlatSymbolRefAttr ProtocolBuilder::handler(
    StringRef name,
    llvm::function_ref<void(HandlerBuilder &, BucketBuffers &)> each) {
  zrt::HandlerOp op = program.handler(name);
  HandlerBuilder calls(op);
  for (auto &bucket : llvm::make_second_range(buckets)) {
    calls.setLoc(bucket.op.getLoc());
    each(calls, bucket);
  }
  return FlatSymbolRefAttr::get(op);
}

FlatSymbolRefAttr ProtocolBuilder::packHandler(StringRef name,
                                               bool accumulate) {
  zrt::HandlerOp op = program.handler(name);
  HandlerBuilder(op).call<zrt::PackOp>(accumulate);
  return FlatSymbolRefAttr::get(op);
}

/// Closes and sums the buckets of an only backward pass.
FlatSymbolRefAttr ProtocolBuilder::buildOnlySequence(StringRef name) {
  return buildSequence(
      program, buckets, name,
      [&](HandlerBuilder &calls, BucketBuffers &bucket, auto symbol) {
        calls.call<zrt::FillMissingOp>(symbol);
        emitSums(program, calls, bucket, bucket.gradient);
      });
}

void ProtocolBuilder::transition(StringRef state, Event event, StringRef target,
                                 const Handlers &handlers,
                                 FlatSymbolRefAttr sequence) {
  OpBuilder &builder = program.getBuilder();
  SmallVector<Attribute> symbols(handlers.begin(), handlers.end());
  builder.create<zrt::TransitionOp>(
      buckets.front().second.op.getLoc(), builder.getStringAttr(state),
      zrt::EventAttr::get(builder.getContext(), event),
      builder.getStringAttr(target), builder.getArrayAttr(symbols), sequence);
}

/// The transitions of |state| that end the backward passes: at once, or with a
/// pause before parameters change. |close| takes what sums are left.
void ProtocolBuilder::end(StringRef state, Handlers close,
                          FlatSymbolRefAttr sequence) {
  close.push_back(ends.measure);
  Handlers measure = close, apply = close;
  measure.push_back(ends.commit);
  apply.append({ends.update, ends.commit});
  llvm::append_range(apply, getReset());
  transition(state, Event::apply, "idle", apply, sequence);
  transition(state, Event::measure, "measured", measure, sequence);
}

void ProtocolBuilder::declareAccumulators() {
  for (auto &bucket : llvm::make_second_range(buckets))
    program.getBuilder().create<zrt::AccumulatorOp>(
        bucket.op.getLoc(), FlatSymbolRefAttr::get(bucket.op),
        bucket.getAccumulator(), bucket.prescaled);
}

/// Zeroes the gradients that did not arrive.
FlatSymbolRefAttr ProtocolBuilder::fillHandler() {
  return handler(
      "close_first", [](HandlerBuilder &calls, BucketBuffers &bucket) {
        calls.call<zrt::FillMissingOp>(FlatSymbolRefAttr::get(bucket.op));
      });
}

/// Zeroes the gradients of |bucket| that did not arrive, and adds all to the
/// sum of the earlier backward passes.
void ProtocolBuilder::addToSum(HandlerBuilder &calls, BucketBuffers &bucket) {
  calls.call<zrt::FillMissingOp>(FlatSymbolRefAttr::get(bucket.op));
  launchSum(program, calls, bucket, &ProgramBuilder::addKernel,
            bucket.accumulator);
}

void ProtocolBuilder::buildRoleChanges() {
  auto setRoleTo = [&](Role role) {
    return [&, role](HandlerBuilder &calls, BucketBuffers &bucket) {
      calls.call<zrt::SetRoleOp>(
          bucket.getAccumulator(),
          zrt::RoleAttr::get(program.getBuilder().getContext(), role));
    };
  };
  declareAccumulators();
  beginNext = handler("begin_next", setRoleTo(Role::accumulator));
  reset = handler("reset", setRoleTo(Role::gradient));
}

/// The gradients of the one backward pass are stored, and each bucket is
/// reduced when it is complete.
void ProtocolBuilder::buildOneBackward() {
  FlatSymbolRefAttr store = packHandler("arrive", /*accumulate=*/false);
  FlatSymbolRefAttr close;
  if (buckets.front().second.summedInLoop) {
    shareBucketMemory(program, buckets, &BucketBuffers::gradient);
    close = buildLoopSequence<zrt::ReduceScatterOp>(
        program, buckets, "first", &ProgramBuilder::storeKernel);
  } else {
    close = buildOnlySequence("first");
  }
  transition("idle", Event::begin, "first", {});
  transition("first", Event::arrive, "first", {store}, close);
  transition("first", Event::accumulate, "closed", {}, close);
  end("first", {}, close);
  transition("first", Event::discard, "idle", {}, close);
  end("closed", {});
  transition("closed", Event::discard, "idle", {});
}

/// Each backward pass stores gradients, and reduces each bucket when it is
/// complete.
void ProtocolBuilder::buildSummedInLoop() {
  FlatSymbolRefAttr store = packHandler("arrive_first", /*accumulate=*/false);
  FlatSymbolRefAttr storeNext = packHandler("arrive_next", false);
  shareBucketMemory(program, buckets, &BucketBuffers::gradient);
  FlatSymbolRefAttr first = buildLoopSequence<zrt::ReduceScatterOp>(
      program, buckets, "first", &ProgramBuilder::storeKernel);
  FlatSymbolRefAttr next = buildLoopSequence<zrt::ReduceScatterAddOp>(
      program, buckets, "next", &ProgramBuilder::addKernel);
  buildRoleChanges();

  transition("idle", Event::begin, "first", {});
  transition("first", Event::arrive, "first", {store}, first);
  transition("first", Event::accumulate, "between", {}, first);
  end("first", {}, first);
  // Ranks that discard a backward pass may have reduced different numbers of
  // buckets. The sequence runs to its end, so that all ranks stop at the same
  // bucket.
  transition("first", Event::discard, "idle", {}, first);
  transition("between", Event::begin, "next", {beginNext});
  end("between", {});
  transition("between", Event::discard, "idle", {reset});
  transition("next", Event::arrive, "next", {storeNext}, next);
  transition("next", Event::accumulate, "between", {}, next);
  end("next", {}, next);
  transition("next", Event::discard, "idle", {reset}, next);
}

/// How the gradients of several backward passes become a sum.
struct ProtocolBuilder::Accumulation {
  FlatSymbolRefAttr store; // an arriving gradient of the first backward pass
  FlatSymbolRefAttr add;   // one of a later backward pass
  Handlers closeFirst;     // fills in what is missing
  Handlers closeNext;      // does so, and adds to the sum what is not there yet
  Handlers keepFirst;      // where another backward pass may follow the first
  Handlers beginNext;
  Handlers release; // when the sum is no longer needed
};

/// One buffer has the gradient and the sum: later gradients are added as they
/// arrive. In the first backward pass a missing gradient counts as zero. In
/// later ones it adds nothing.
ProtocolBuilder::Accumulation ProtocolBuilder::accumulateInPlace() {
  Accumulation sum;
  sum.store = packHandler("arrive_first", /*accumulate=*/false);
  sum.add = packHandler("arrive_next", /*accumulate=*/true);
  sum.closeFirst = {fillHandler()};
  buildRoleChanges();
  sum.beginNext = {beginNext};
  return sum;
}

/// Each backward pass stores its gradients as they arrive. The sum is a wider
/// buffer, which has memory only in a step of several backward passes.
ProtocolBuilder::Accumulation ProtocolBuilder::accumulateApart() {
  Accumulation sum;
  sum.store = packHandler("arrive_first", /*accumulate=*/false);
  sum.add = packHandler("arrive_next", /*accumulate=*/false);
  sum.closeFirst = {fillHandler()};
  declareAccumulators();
  sum.keepFirst = {
      handler("keep_first", [&](HandlerBuilder &calls, BucketBuffers &bucket) {
        calls.call<zrt::AllocateOp>(bucket.accumulator);
        launchSum(program, calls, bucket, &ProgramBuilder::storeKernel,
                  bucket.accumulator);
      })};
  sum.closeNext = {
      handler("close_next", [&](HandlerBuilder &calls, BucketBuffers &bucket) {
        addToSum(calls, bucket);
      })};
  sum.release = {
      handler("release", [](HandlerBuilder &calls, BucketBuffers &bucket) {
        calls.call<zrt::ReleaseOp>(bucket.accumulator);
      })};
  return sum;
}

/// The first backward pass stores gradients, later ones add, and apply reduces.
/// Exception: in a backward pass that the caller hints is the last, buckets are
/// reduced when they are complete. If another backward pass follows, sums
/// become addends again. Ranks may hint differently, so units allow none of
/// this: where ranks gather units between reductions, all must make the same
/// ones.
void ProtocolBuilder::buildSummedAtApply() {
  bool isApart = static_cast<bool>(buckets.front().second.accumulator);
  Accumulation sum = isApart ? accumulateApart() : accumulateInPlace();
  bool sums = llvm::any_of(
      buckets, [](auto &entry) { return !entry.second.sums.empty(); });
  bool takesHints = sums && !hasUnits;
  auto reduce = [&](StringRef name, bool ofFirst) -> Handlers {
    if (!sums)
      return {};
    return {handler(name, [&](HandlerBuilder &calls, BucketBuffers &bucket) {
      emitSums(program, calls, bucket,
               ofFirst ? bucket.gradient : bucket.getAccumulator());
    })};
  };
  Handlers reduceSum = reduce("reduce", /*ofFirst=*/false);
  Handlers reduceFirst = isApart ? reduce("reduce_first", true) : reduceSum;
  FlatSymbolRefAttr only, last;
  Handlers reopen;
  if (takesHints) {
    only = buildOnlySequence("only");
    last = buildSequence(
        program, buckets, "last",
        [&](HandlerBuilder &calls, BucketBuffers &bucket, auto) {
          if (isApart)
            addToSum(calls, bucket);
          emitSums(program, calls, bucket, bucket.getAccumulator());
        });
    if (!isApart)
      reopen = {
          handler("reopen", [&](HandlerBuilder &calls, BucketBuffers &bucket) {
            emitUnreduce(program, calls, bucket);
          })};
  }
  auto both = [](Handlers first, const Handlers &second) {
    llvm::append_range(first, second);
    return first;
  };
  Handlers discard = both(sum.release, getReset());

  transition("idle", Event::begin, "first", {});
  transition("first", Event::arrive, "first", {sum.store});
  transition("first", Event::accumulate, "between",
             both(sum.closeFirst, sum.keepFirst));
  end("first", both(sum.closeFirst, reduceFirst));
  transition("first", Event::discard, "idle", {});
  transition("between", Event::begin, "next", sum.beginNext);
  end("between", both(reduceSum, sum.release));
  transition("between", Event::discard, "idle", discard);
  transition("next", Event::arrive, "next", {sum.add});
  transition("next", Event::accumulate, "between", sum.closeNext);
  end("next", both(both(sum.closeNext, reduceSum), sum.release));
  transition("next", Event::discard, "idle", discard);
  if (!takesHints)
    return;
  transition("idle", Event::begin_last, "only", {});
  transition("only", Event::arrive, "only", {sum.store}, only);
  transition("only", Event::accumulate, "reduced", sum.keepFirst, only);
  end("only", {}, only);
  transition("only", Event::discard, "idle", {}, only);
  transition("between", Event::begin_last, "last", sum.beginNext);
  transition("last", Event::arrive, "last", {sum.add}, last);
  transition("last", Event::accumulate, "reduced", {}, last);
  end("last", sum.release, last);
  transition("last", Event::discard, "idle", discard, last);
  Handlers again = both(reopen, sum.beginNext);
  transition("reduced", Event::begin, "next", again);
  transition("reduced", Event::begin_last, "last", again);
  end("reduced", sum.release);
  transition("reduced", Event::discard, "idle", discard);
}

void ProtocolBuilder::build(bool oneBackward) {
  shareBucketMemory(program, buckets, &BucketBuffers::reduceBuffer);
  if (oneBackward)
    buildOneBackward();
  else if (buckets.front().second.summedInLoop)
    buildSummedInLoop();
  else
    buildSummedAtApply();
  Handlers apply{ends.update}, discard;
  if (ends.undo)
    discard.push_back(ends.undo);
  llvm::append_range(apply, getReset());
  llvm::append_range(discard, getReset());
  transition("measured", Event::apply, "idle", apply);
  transition("measured", Event::discard, "idle", discard);
}

void zero::buildProtocol(ProgramBuilder &program, BucketMap &buckets,
                         const ApplyHandlers &handlers, bool oneBackward) {
  bool hasUnits = buildUnits(program, buckets);
  ProtocolBuilder(program, buckets, handlers, hasUnits).build(oneBackward);
  if (hasUnits)
    addUnitTransitions(program);
}
