//===- EmitPlan.cpp - The plan of a compiled step as JSON -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Activations.h"
#include "codegen/host/EmitLibrary.h"
#include "codegen/host/Traffic.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

/// The state in which the first backward pass is closed.
static StringRef getClosedState(zrt::ProgramOp program) {
  for (auto op : program.getOps<zrt::TransitionOp>())
    if (op.getState() == "first" && op.getEvent() == zrt::Event::accumulate)
      return op.getNext();
  return {};
}

/// Bytes per rank by space and role. With |several| backward passes, a buffer
/// that changes its role counts under its later role.
static json::Object countBytes(zrt::ProgramOp program, const Tables &tables,
                               bool several) {
  llvm::DenseMap<int64_t, zrt::Role> roles;
  if (several)
    program.walk([&](zrt::RuntimeCall call) {
      zrt::CallDescription description(call);
      for (const zrt::CallArgument &argument : description.getArguments())
        if (argument.kind == zrt::CallArgument::Kind::role &&
            zrt::Role(argument.number) == zrt::Role::accumulator)
          roles[tables.getBuffer(argument.symbol)] = zrt::Role::accumulator;
    });
  llvm::MapVector<int64_t, llvm::MapVector<int64_t, int64_t>> bytes;
  for (int64_t space : {ZERO_RT_SPACE_DEVICE, ZERO_RT_SPACE_HOST})
    for (int64_t role = 0; role < ZERO_RT_ROLE_COUNT; ++role)
      bytes[space][role] = 0;
  for (auto [i, row] : llvm::enumerate(tables.buffers)) {
    if (row.shares >= 0)
      continue; // counted where the memory is
    // It is allocated when a backward pass is not the only one.
    if (row.on_demand && row.role == ZERO_RT_ROLE_ACCUMULATOR && !several)
      continue;
    auto it = roles.find(i);
    int64_t role =
        it == roles.end() ? row.role : static_cast<int64_t>(it->second);
    bytes[row.space][role] +=
        tables.getHeldElements(row) * getDtypeBytes(row.dtype);
  }
  json::Object object;
  for (auto &[space, roles] : bytes) {
    json::Object byRole;
    for (auto [role, count] : roles)
      byRole[zrt::stringifyRole(static_cast<zrt::Role>(role))] = count;
    object[zrt::stringifySpace(static_cast<zrt::Space>(space))] =
        std::move(byRole);
  }
  return object;
}

/// The sums of countBytes over the roles.
static json::Object sumBytes(const json::Object &bytes) {
  json::Object sums;
  for (const auto &[space, roles] : bytes) {
    int64_t sum = 0;
    for (const auto &entry : *roles.getAsObject())
      sum += *entry.second.getAsInteger();
    sums[space] = sum;
  }
  return sums;
}

/// The buffers with the most memory of a rank, the largest first.
static json::Array describeLargest(const Tables &tables) {
  constexpr size_t kShown = 5;
  std::vector<std::pair<int64_t, const zero_rt_buffer_row *>> sizes;
  for (const zero_rt_buffer_row &row : tables.buffers)
    if (row.shares < 0)
      sizes.push_back(
          {tables.getHeldElements(row) * getDtypeBytes(row.dtype), &row});
  llvm::sort(sizes, [](const auto &a, const auto &b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  json::Array largest;
  for (auto [bytes, row] : ArrayRef(sizes).take_front(kShown))
    largest.push_back(json::Object{
        {"name", tables.strings.getBytes().data() + row->name},
        {"space", zrt::stringifySpace(static_cast<zrt::Space>(row->space))},
        {"role", zrt::stringifyRole(static_cast<zrt::Role>(row->role))},
        {"bytes", bytes}});
  return largest;
}

/// The sharding of a parameter: `{"axis": "tp", "dimension": 1}` for each axis.
static json::Array describeSharding(ValueType type) {
  json::Array sharding;
  for (const AxisPlacement &placement : type.getPlacements())
    sharding.push_back(json::Object{{"axis", placement.axis.getValue()},
                                    {"dimension", placement.dim}});
  return sharding;
}

/// The part of the plan that is specific to one pipeline stage.
static void describeStage(const StageProgram &stage, json::Object &object) {
  zrt::ProgramOp program = stage.program;
  const Tables &tables = stage.tables;
  json::Array buckets;
  for (const zero_rt_bucket_row &row : tables.buckets)
    buckets.push_back(
        json::Object{{"name", tables.strings.getBytes().data() + row.name},
                     {"elements", row.elements}});
  object["buckets"] = std::move(buckets);
  json::Object one = countBytes(program, tables, false);
  json::Object several = countBytes(program, tables, true);
  object["total_bytes_per_rank"] =
      json::Object{{"one_backward", sumBytes(one)},
                   {"several_backwards", sumBytes(several)}};
  object["bytes_per_rank"] =
      json::Object{{"one_backward", std::move(one)},
                   {"several_backwards", std::move(several)}};
  object["largest_buffers"] = describeLargest(tables);
  object["warnings"] = json::Array(); // none today; format 1 has the key
  json::Object traffic, collectives, kernels;
  auto add = [&](StringRef when, const Traffic &one) {
    traffic[when] = one.toJson();
    collectives[when] = one.collectivesToJson();
    kernels[when] = one.kernelsToJson();
  };
  auto count = [&](StringRef when, StringRef state, zrt::Event event) {
    add(when, countTraffic(program, tables, state, event));
  };
  count("first_backward", "first", zrt::Event::accumulate);
  count("each_later_backward", "next", zrt::Event::accumulate);
  count("apply", getClosedState(program), zrt::Event::apply);
  if (!tables.units.empty()) {
    add("unshard_all", countUnits(program, tables));
    add("unshard_again", countUnitsAgain(program, tables));
  }
  object["traffic_per_rank"] = std::move(traffic);
  object["collectives_per_rank"] = std::move(collectives);
  object["kernels_per_rank"] = std::move(kernels);
}

/// `{"axis": "pp", "coordinate": 1}` for each.
static json::Array describeStages(ArrayRef<AxisCoordinate> coordinates) {
  json::Array array;
  for (const AxisCoordinate &c : coordinates)
    array.push_back(json::Object{{"axis", c.axis.getValue()},
                                 {"coordinate", c.coordinate}});
  return array;
}

/// The frozen parameters, and the bytes that the caller keeps of each on a
/// rank. If the parameter is sharded with its unit, the library keeps a slice,
/// which counts with the other parameters, and the caller keeps nothing.
static json::Array describeFrozen(ModuleOp module, zrt::ProgramOp program,
                                  bool hasStages) {
  json::Array array;
  auto mesh = module.lookupSymbol<MeshOp>(program.getMeshAttr());
  llvm::DenseMap<Attribute, StringRef> unitOf; // of those that are sharded
  for (auto bucket : module.getOps<FrozenBucketOp>())
    for (Attribute member : bucket.getMembers())
      if (bucket.isSharded())
        unitOf[member] = bucket.getUnit();
  for (auto op : module.getOps<ParameterOp>()) {
    if (!op.getFrozen())
      continue;
    int64_t elements = mesh.getNumHeld(op.getValueType());
    int64_t dtype = getDtype(op.getDtype());
    StringRef unit = unitOf.lookup(FlatSymbolRefAttr::get(op));
    int64_t kept = unit.empty() ? elements * getDtypeBytes(dtype) : 0;
    json::Object parameter{{"name", op.getSymName()},
                           {"shape", json::Array(op.getShape())},
                           {"sharded", describeSharding(op.getValueType())},
                           {"dtype", getDtypeName(dtype)},
                           {"elements", elements},
                           {"bytes_per_rank", kept}};
    if (!unit.empty())
      parameter["unit"] = unit;
    if (hasStages)
      parameter["on"] = describeStages(op.getValueType().getPresent());
    array.push_back(std::move(parameter));
  }
  return array;
}

json::Object zero::describePrograms(ArrayRef<StageProgram> stages) {
  json::Object object;
  if (stages.size() == 1) {
    describeStage(stages.front(), object);
    return object;
  }
  json::Array list;
  for (const StageProgram &stage : stages) {
    json::Object one{{"on", describeStages(stage.coordinates)}};
    describeStage(stage, one);
    list.push_back(std::move(one));
  }
  object["stages"] = std::move(list);
  return object;
}

/// What apply takes, in order. Of a parameter "inputs" has the numbers of those
/// on which its update depends.
static json::Array describeInputs(const Tables &whole) {
  const char *strings = whole.strings.getBytes().data();
  json::Array inputs;
  for (auto [row, name] : llvm::zip_equal(whole.inputs, whole.inputNames))
    inputs.push_back(
        json::Object{{"name", strings + name},
                     {"hyper", strings + row.name},
                     {"tokens", row.tokens != 0},
                     {"addend", row.over >= 0},
                     {"finite", row.check != ZERO_RT_INPUT_FREE},
                     {"positive", row.check == ZERO_RT_INPUT_POSITIVE}});
  return inputs;
}

json::Object zero::describePlan(ArrayRef<StageProgram> stages,
                                const Tables &whole, StringRef cpu,
                                const ProofNote &proof, json::Object validated,
                                const CudaCode *cuda) {
  json::Array parameters; // whose values are copied when it grows
  parameters.reserve(whole.parameters.size());
  zrt::ProgramOp program = stages.front().program;
  auto module = program->getParentOfType<ModuleOp>();
  auto trained =
      llvm::make_filter_range(module.getOps<ParameterOp>(),
                              [](ParameterOp op) { return !op.getFrozen(); });
  for (auto [op, name, row, set] :
       llvm::zip_equal(trained, whole.parameterNames, whole.parameters,
                       whole.parameterInputs)) {
    json::Object parameter{{"name", name},
                           {"shape", json::Array(op.getShape())},
                           {"sharded", describeSharding(op.getValueType())},
                           {"dtype", getDtypeName(row.dtype)},
                           {"gradient_dtype", getDtypeName(row.gradient_dtype)},
                           {"elements", row.elements},
                           {"bucket", row.bucket},
                           {"offset", row.offset},
                           {"extent", row.extent},
                           {"optional", row.optional != 0},
                           {"inputs", json::Array(whole.getInputs(set))},
                           {"uses", op.isUsedAnyTimes()
                                        ? json::Value("any")
                                        : json::Value(row.uses)}};
    if (stages.size() > 1)
      parameter["on"] = describeStages(op.getValueType().getPresent());
    parameters.push_back(std::move(parameter));
  }
  json::Array mesh;
  for (const zero_rt_axis_row &axis : whole.axes)
    mesh.push_back(
        json::Object{{"axis", whole.strings.getBytes().data() + axis.name},
                     {"size", axis.size}});
  json::Object plan{
      {"format", 1},
      {"step", whole.name},
      // Written as text, because JSON numbers lose bits beyond 2^53.
      {"plan_hash", llvm::formatv("{0:x16}", whole.planHash).str()},
      {"ranks", whole.ranks},
      {"mesh", std::move(mesh)},
      {"cpu", cpu},
      {"one_backward", program.getOneBackward()},
      {"inputs", describeInputs(whole)},
      {"parameters", std::move(parameters)},
      {"frozen", describeFrozen(module, program, stages.size() > 1)},
      {"activations", describeActivations(module)},
      {"proved", proof.isProved},
      {"preconditions", json::Array(proof.preconditions)},
      {"validated", std::move(validated)}};
  if (cuda) {
    json::Array archs;
    for (const auto &cubin : cuda->cubins)
      archs.push_back(cubin.first);
    plan["cuda"] =
        json::Object{{"ptx", getPtxArch()}, {"cubins", std::move(archs)}};
  }
  for (auto &[key, value] : describePrograms(stages))
    plan[key] = std::move(value);
  return plan;
}

std::string zero::emitPlan(ArrayRef<StageProgram> stages, const Tables &whole,
                           StringRef cpu, const ProofNote &proof,
                           json::Object validated, const CudaCode *cuda) {
  json::Value plan =
      describePlan(stages, whole, cpu, proof, std::move(validated), cuda);
  return llvm::formatv("{0:2}", plan).str() + "\n";
}
