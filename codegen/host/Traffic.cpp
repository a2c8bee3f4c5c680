//===- Traffic.cpp - What a rank sends, copies and computes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Traffic.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

json::Object Traffic::toJson() const {
  return json::Object{{"all_reduces", allReduces},
                      {"scalar_all_reduces", scalarAllReduces},
                      {"reduce_scatters", reduceScatters},
                      {"all_gathers", allGathers},
                      {"bytes_sent", bytesSent},
                      {"bytes_copied_between_spaces", bytesCopied}};
}

json::Array Traffic::collectivesToJson() const {
  json::Array array;
  for (const CollectiveTotal &total : collectives) {
    json::Array axes;
    for (auto axis : total.axes.getAsRange<StringAttr>())
      axes.push_back(axis.getValue());
    array.push_back(json::Object{{"op", total.op},
                                 {"over", std::move(axes)},
                                 {"ranks", total.ranks},
                                 {"span", total.span},
                                 {"among", total.among},
                                 {"dtype", getDtypeName(total.dtype)},
                                 {"count", total.count},
                                 {"bytes", total.bytes},
                                 {"bytes_sent", total.bytesSent}});
  }
  return array;
}

json::Object Traffic::kernelsToJson() const {
  return json::Object{{"launches", launches},
                      {"device_bytes", bytesOfKernels[ZERO_RT_SPACE_DEVICE]},
                      {"host_bytes", bytesOfKernels[ZERO_RT_SPACE_HOST]}};
}

/// The bytes that |call| moves to another space on one rank.
static int64_t copiedBytes(zrt::RuntimeCall call, const Tables &tables) {
  const zero_rt_buffer_row *from = nullptr, *to = nullptr;
  zrt::CallDescription description(call);
  for (const zrt::CallArgument &argument : description.getArguments()) {
    if (argument.kind != zrt::CallArgument::Kind::buffer)
      continue;
    auto &end = argument.use == zrt::CallArgument::Use::reads ? from : to;
    end = &tables.buffers[tables.getBuffer(argument.symbol)];
  }
  if (!from || !to || from->space == to->space)
    return 0;
  return std::min(tables.getHeldElements(*from), tables.getHeldElements(*to)) *
         getDtypeBytes(from->dtype);
}

static void countCollective(zrt::RuntimeCall call, const Tables &tables,
                            SymbolTableCollection &symbols, Traffic &traffic) {
  auto collective = cast<zrt::Collective>(call.getOperation());
  zrt::Exchange exchange = collective.getExchange();
  auto slots = zrt::lookup<zrt::SlotsOp>(symbols, call, exchange.source);
  auto rowOf = [&](FlatSymbolRefAttr symbol) {
    return tables.buffers[tables.getBuffer(symbol)];
  };
  auto bytesOf = [&](FlatSymbolRefAttr symbol) -> int64_t {
    if (slots)
      return 8 * slots.size();
    return tables.getHeldElements(rowOf(symbol)) *
           getDtypeBytes(rowOf(symbol).dtype);
  };
  CollectiveTotal one;
  one.op = call->getName().stripDialect();
  one.axes = collective.getAxes();
  one.dtype = slots ? ZERO_RT_F64 : rowOf(exchange.source).dtype;
  one.count = 1;
  one.bytes = bytesOf(exchange.source);
  zrt::CallDescription description(call);
  for (const zrt::CallArgument &argument : description.getArguments())
    if (argument.kind == zrt::CallArgument::Kind::axes)
      one.ranks = tables.getNumRanks(tables.getAxes(argument, call, symbols));
  one.among = tables.ranks;
  // Ranks are numbered row-major, so the outermost axis decides.
  bool isWithin = false;
  for (const zero_rt_axis_row &axis : tables.axes) {
    StringRef name = tables.strings.getBytes().data() + axis.name;
    isWithin |= axis.size > 1 &&
                llvm::any_of(one.axes.getAsRange<StringAttr>(),
                             [&](StringAttr own) { return own == name; });
    if (isWithin)
      one.span *= axis.size;
  }
  // In a ring each rank sends (D-1)/D of the bytes.
  int64_t bytes = (exchange.scatters ? bytesOf(exchange.source) : 0) +
                  (exchange.gathers ? bytesOf(exchange.target) : 0);
  one.bytesSent = bytes * (one.ranks - 1) / one.ranks;
  traffic.bytesSent += one.bytesSent;
  if (!exchange.gathers)
    ++traffic.reduceScatters;
  else if (!exchange.scatters)
    ++traffic.allGathers;
  else
    ++(slots ? traffic.scalarAllReduces : traffic.allReduces);
  auto known =
      llvm::find_if(traffic.collectives, [&](const CollectiveTotal &other) {
        return other.op == one.op && other.axes == one.axes &&
               other.dtype == one.dtype && other.ranks == one.ranks &&
               other.span == one.span;
      });
  if (known == traffic.collectives.end())
    return traffic.collectives.push_back(one);
  known->count += one.count;
  known->bytes += one.bytes;
  known->bytesSent += one.bytesSent;
}

/// The elements over which |launch| runs on a rank.
static int64_t getNumElements(zrt::LaunchOp launch, const Tables &tables,
                              SymbolTableCollection &symbols) {
  auto segments =
      zrt::lookup<zrt::SegmentsOp>(symbols, launch, launch.getSegmentsAttr());
  int64_t elements = segments.getEnds().empty() ? 0 : segments.getEnds().back();
  zrt::CallDescription description(launch);
  for (const zrt::CallArgument &argument : description.getArguments())
    if (argument.kind == zrt::CallArgument::Kind::axes)
      if (int64_t axes = tables.getAxes(argument, launch, symbols); axes >= 0)
        elements /= tables.getNumRanks(axes);
  return elements;
}

static void countLaunch(zrt::LaunchOp launch, const Tables &tables,
                        SymbolTableCollection &symbols, Traffic &traffic) {
  ++traffic.launches;
  int64_t elements = getNumElements(launch, tables, symbols);
  auto kernel =
      zrt::lookup<zrt::KernelOp>(symbols, launch, launch.getKernelAttr());
  for (auto [i, buffer] :
       llvm::enumerate(launch.getBuffers().getAsRange<FlatSymbolRefAttr>())) {
    const zero_rt_buffer_row &row = tables.buffers[tables.getBuffer(buffer)];
    int64_t times = kernel.getArrayAccess(i) == zrt::Access::update ? 2 : 1;
    traffic.bytesOfKernels[row.space] +=
        times * elements * getDtypeBytes(row.dtype);
  }
}

void zero::addTraffic(zrt::RuntimeCall call, const Tables &tables,
                      SymbolTableCollection &symbols, Traffic &traffic) {
  traffic.bytesCopied += copiedBytes(call, tables);
  if (isa<zrt::Collective>(call.getOperation()))
    countCollective(call, tables, symbols, traffic);
  else if (auto launch = dyn_cast<zrt::LaunchOp>(call.getOperation()))
    countLaunch(launch, tables, symbols, traffic);
}

static void countHandler(zrt::HandlerOp handler, const Tables &tables,
                         SymbolTableCollection &symbols, Traffic &traffic) {
  for (auto call : handler.getBody().getOps<zrt::RuntimeCall>())
    addTraffic(call, tables, symbols, traffic);
}

Traffic zero::countTraffic(zrt::ProgramOp program, const Tables &tables,
                           StringRef state, zrt::Event event) {
  Traffic total;
  SymbolTableCollection symbols;
  for (auto transition : program.getOps<zrt::TransitionOp>()) {
    if (transition.getState() != state || transition.getEvent() != event)
      continue;
    SmallVector<Attribute> handlers(transition.getHandlers().getValue());
    if (FlatSymbolRefAttr symbol = transition.getSequenceAttr())
      llvm::append_range(
          handlers, zrt::lookup<zrt::SequenceOp>(symbols, transition, symbol)
                        .getHandlers());
    for (Attribute symbol : handlers)
      countHandler(zrt::lookup<zrt::HandlerOp>(symbols, transition,
                                               cast<FlatSymbolRefAttr>(symbol)),
                   tables, symbols, total);
  }
  return total;
}

static Traffic countUnits(zrt::ProgramOp program, const Tables &tables,
                          bool withKept) {
  Traffic total;
  SymbolTableCollection symbols;
  for (auto unit : program.getOps<zrt::UnitTableOp>()) {
    auto declared = zrt::lookup<UnitOp>(symbols, program, unit.getUnitAttr());
    if (!unit.isElsewhere() && (withKept || !declared.getKept()))
      countHandler(
          zrt::lookup<zrt::HandlerOp>(symbols, unit, unit.getUnshardAttr()),
          tables, symbols, total);
  }
  return total;
}

Traffic zero::countUnits(zrt::ProgramOp program, const Tables &tables) {
  return ::countUnits(program, tables, /*withKept=*/true);
}

Traffic zero::countUnitsAgain(zrt::ProgramOp program, const Tables &tables) {
  return ::countUnits(program, tables, /*withKept=*/false);
}
