//===- cuda_program.cpp - Kernels on a GPU --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_program.h"

#include "core/executables.h"
#include "core/numeric.h"
#include "core/status.h"
#include "core/thread_pool.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

using namespace zero_rt;

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Finds the code of the library for a GPU.
zero_rt_status CudaProgram::findCode() {
  std::vector<zero_rt_executable> executables;
  ZERO_RT_TRY(findExecutables(library, ZERO_RT_CUDA_TARGET, executables));
  const void *data = library.device_code; // in the first format
  for (const zero_rt_executable &executable : executables)
    if (!std::strcmp(executable.format, ZERO_RT_CUDA_FORMAT))
      second = static_cast<const zero_rt_cuda_code_2 *>(executable.data);
    else if (!std::strcmp(executable.format, ZERO_RT_CUDA_FORMAT_1))
      data = executable.data;
  code = second ? &second->code : static_cast<const zero_rt_cuda_code *>(data);
  if (code)
    return ZERO_RT_OK;
  if (!executables.empty())
    return fail(
        ZERO_RT_UNSUPPORTED,
        "'%s' has code for a GPU in format '%s', expected '%s'; compile "
        "it with the zero-compile of this runtime",
        library.name, executables[0].format, ZERO_RT_CUDA_FORMAT);
  return fail(ZERO_RT_UNSUPPORTED,
              "'%s' has no code for a GPU; compile it with --target=cuda",
              library.name);
}

zero_rt_status CudaProgram::load() {
  ZERO_RT_TRY(findCode());
  ZERO_RT_TRY(loadModule(*code));
  kernels.resize(size_t(library.num_kernels));
  for (size_t k = 0; k < kernels.size(); ++k)
    ZERO_RT_TRY(find(code->kernels[k], kernels[k]));
  batches.resize(second ? kernels.size() : 0);
  for (size_t k = 0; k < batches.size(); ++k)
    if (second->batches[k].name)
      ZERO_RT_TRY(find(second->batches[k], batches[k]));
  scalarPrograms.resize(size_t(library.num_scalar_programs));
  for (size_t p = 0; p < scalarPrograms.size(); ++p)
    ZERO_RT_TRY(find(code->scalar_programs[p], scalarPrograms[p]));
  rankSums.resize(size_t(code->num_rank_sums));
  for (size_t s = 0; s < rankSums.size(); ++s)
    ZERO_RT_TRY(find(code->rank_sums[s].function, rankSums[s]));
  ZERO_RT_TRY(find(code->give_slots, giveSlots));
  hostSlots = static_cast<double *>(
      device.allocate(ZERO_RT_SPACE_HOST, bytesOfSlots()));
  if (!hostSlots)
    return fail(ZERO_RT_OUT_OF_MEMORY, "no memory for a copy of the scalars");
  hostProgram = std::make_unique<HostProgram>(library, hostSlots, device.pool);
  return ZERO_RT_OK;
}

/// Machine code for this GPU, or PTX for the driver to compile.
zero_rt_status CudaProgram::loadModule(const zero_rt_cuda_code &code) {
  const void *image = code.ptx;
  for (int64_t c = 0; c < code.num_cubins; ++c)
    if (device.arch == code.cubins[c].arch)
      image = code.cubins[c].data;
  char log[512] = "";
  int options[] = {jitErrorLogBuffer, jitErrorLogBufferBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  CUresult result = driver.ModuleLoadDataEx(&module, image, 2, options, values);
  if (!result)
    return ZERO_RT_OK;
  module = nullptr;
  zero_rt_status status = check(driver, result, "cuModuleLoadDataEx");
  log[sizeof(log) - 1] = '\0';
  return log[0] ? fail(status, "%s: %s", lastMessage(), log) : status;
}

zero_rt_status CudaProgram::find(const zero_rt_cuda_function &row,
                                 Function &out) {
  CUresult result = driver.ModuleGetFunction(&out.handle, module, row.name);
  if (zero_rt_status status = check(driver, result, "cuModuleGetFunction"))
    return fail(status, "%s: %s", row.name, lastMessage());
  out.piecesPerBlock = row.pieces_per_block;
  return ZERO_RT_OK;
}

CudaProgram::~CudaProgram() {
  for (const auto &[key, pieces] : allPieces)
    if (pieces.data)
      device.release(ZERO_RT_SPACE_DEVICE, pieces.data);
  for (const Scratch &scratch : {partials, arrivals, carry, batchTable})
    if (scratch.data)
      device.release(ZERO_RT_SPACE_DEVICE, scratch.data);
  // Kernels of the program may still be running.
  (void)device.finish();
  graphs.clear(); // which have its functions
  if (hostSlots)
    device.release(ZERO_RT_SPACE_HOST, hostSlots);
  if (module)
    (void)driver.ModuleUnload(module);
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

static void cut(Range range, int64_t scalars,
                std::vector<zero_rt_cuda_piece> &rows) {
  for (int64_t begin = range.begin; begin < range.end;) {
    int64_t next = (begin / blockElements + 1) * blockElements;
    int64_t end = std::min(range.end, next);
    rows.push_back({begin, end, scalars});
    begin = end;
  }
}

zero_rt_status CudaProgram::getPieces(int32_t table, Range domain,
                                      Pieces &out) {
  // Without a table, all parts of a domain have the same pieces.
  Stream stream = device.getStream();
  PiecesKey key = table < 0
                      ? PiecesKey{-1, 0, domain.size(), stream}
                      : PiecesKey{table, domain.begin, domain.end, stream};
  auto found = allPieces.find(key);
  if (found != allPieces.end()) {
    out = found->second;
    return ZERO_RT_OK;
  }
  std::vector<zero_rt_cuda_piece> rows;
  if (table < 0) {
    cut({0, domain.size()}, 0, rows);
  } else {
    const zero_rt_table_row &row = library.tables[table];
    for (int64_t s = row.first; s < row.first + row.count; ++s) {
      const zero_rt_segment_row &segment = library.segments[s];
      cut(localize({segment.begin, segment.end}, domain),
          std::max<int64_t>(0, segment.scalars), rows);
    }
  }
  Pieces &pieces = allPieces[key];
  out.count = int64_t(rows.size());
  if (rows.empty())
    return ZERO_RT_OK;
  int64_t bytes = int64_t(rows.size() * sizeof(zero_rt_cuda_piece));
  out.data = pieces.data = device.allocate(ZERO_RT_SPACE_DEVICE, bytes);
  if (!pieces.data) {
    allPieces.erase(key);
    return fail(ZERO_RT_OUT_OF_MEMORY,
                "no memory for a table of a launch: %lld bytes",
                (long long)bytes);
  }
  pieces.count = out.count;
  // A full queue of the driver blocks this thread, where no error of another
  // rank is seen.
  constexpr int64_t taken = int64_t(1) << 16;
  if (device.isWatched() && bytes > taken)
    ZERO_RT_TRY(device.finish());
  return device.copyNow(pieces.data, rows.data(), bytes);
}

zero_rt_status CudaProgram::run(const Function &function, void *const *operands,
                                int64_t numOperands, const Pieces &pieces,
                                const Summing *summing) {
  const void *table = pieces.data;
  int64_t count = pieces.count;
  Summing mine = summing ? *summing : Summing();
  arguments.clear();
  // The driver takes addresses of arguments.
  for (int64_t i = 0; i < numOperands; ++i)
    arguments.push_back(const_cast<void **>(operands + i));
  arguments.push_back(&slots);
  arguments.push_back(&table);
  arguments.push_back(&count);
  if (summing)
    for (void **memory : {&mine.partials, &mine.arrivals, &mine.sum})
      arguments.push_back(memory);
  int64_t blocks =
      (count + function.piecesPerBlock - 1) / function.piecesPerBlock;
  return device.launch(function.handle, unsigned(blocks), ZERO_RT_CUDA_THREADS,
                       arguments.data());
}

zero_rt_status CudaProgram::copySlots() {
  ZERO_RT_TRY(writeSlots());
  return device.copy(hostSlots, slots, bytesOfSlots());
}

/// Queues: the CPU runs |launch| with its copy of the slots.
zero_rt_status CudaProgram::runOnHost(const Launch &launch) {
  std::vector<void *> operands(launch.operands,
                               launch.operands + launch.numOperands);
  ZERO_RT_TRY(device.queue(
      [program = hostProgram.get(), launch, operands = std::move(operands)] {
        Launch mine = launch;
        mine.operands = operands.data();
        (void)program->launch(mine); // which never fails
      }));
  return launch.sumSlot < 0
             ? zero_rt_status(ZERO_RT_OK)
             : device.copy(slots + launch.sumSlot, hostSlots + launch.sumSlot,
                           sizeof(double));
}

zero_rt_status CudaProgram::launch(const Launch &launch) {
  if (launch.isOnHost)
    return runOnHost(launch);
  if (canHold(launch)) {
    hold(launch);
    return ZERO_RT_OK;
  }
  if (readsSlots(launch))
    ZERO_RT_TRY(writeSlots());
  Pieces pieces;
  ZERO_RT_TRY(getPieces(launch.table, launch.domain, pieces));
  if (launch.sumSlot >= 0)
    return runReducing(launch, pieces);
  if (pieces.count == 0)
    return ZERO_RT_OK;
  return run(kernels[size_t(launch.kernel)], launch.operands,
             launch.numOperands, pieces);
}

/// Enlarges |scratch| to |bytes| if it is smaller.
zero_rt_status CudaProgram::reserve(Scratch &scratch, int64_t bytes,
                                    const char *what) {
  if (bytes <= scratch.bytes)
    return ZERO_RT_OK;
  if (scratch.data)
    device.release(ZERO_RT_SPACE_DEVICE, scratch.data);
  scratch = {device.allocate(ZERO_RT_SPACE_DEVICE, bytes), bytes};
  if (scratch.data)
    return ZERO_RT_OK;
  scratch.bytes = 0;
  return fail(ZERO_RT_OUT_OF_MEMORY, "no memory for %s: %lld bytes", what,
              (long long)bytes);
}

/// A single launch, for any number of pieces.
zero_rt_status CudaProgram::runReducing(const Launch &launch,
                                        const Pieces &pieces) {
  double *slot = slots + launch.sumSlot;
  if (pieces.count == 0)
    return device.set(slot, 0, sizeof(double), 1);
  int64_t sums = 0, groups = 0;
  for (int64_t level = pieces.count; level > 1 || groups == 0;) {
    sums += level;
    level = (level + ZERO_RT_CUDA_SUM_GROUP - 1) / ZERO_RT_CUDA_SUM_GROUP;
    groups += level;
  }
  ZERO_RT_TRY(reserve(partials, sums * int64_t(sizeof(double)), "sums"));
  int64_t known = arrivals.bytes;
  ZERO_RT_TRY(reserve(arrivals, groups * int64_t(sizeof(int32_t)), "sums"));
  // Kernels leave the counters 0. Other streams may use them only after this
  // memset.
  if (arrivals.bytes > known) {
    int64_t bytes = std::exchange(arrivals.bytes, 0);
    std::vector<int32_t> zeros(static_cast<size_t>(groups));
    ZERO_RT_TRY(device.copyNow(arrivals.data, zeros.data(), bytes));
    arrivals.bytes = bytes;
  }
  Summing summing = {partials.data, arrivals.data, slot};
  return run(kernels[size_t(launch.kernel)], launch.operands,
             launch.numOperands, pieces, &summing);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

zero_rt_status CudaProgram::setSlot(int64_t slot, double value) {
  for (GivenSlot &known : given)
    if (known.slot == slot) {
      known.value = value;
      return ZERO_RT_OK;
    }
  given.push_back({slot, value});
  return ZERO_RT_OK;
}

/// Whether |launch| reads scalars, or its sum goes to a slot that has a value
/// to be written first.
bool CudaProgram::readsSlots(const Launch &launch) const {
  auto isGiven = [&](const GivenSlot &each) {
    return each.slot == launch.sumSlot;
  };
  if (std::any_of(given.begin(), given.end(), isGiven))
    return true;
  if (launch.table < 0)
    return false;
  const zero_rt_table_row &table = library.tables[launch.table];
  const zero_rt_segment_row *first = library.segments + table.first;
  return std::any_of(first, first + table.count,
                     [](const auto &segment) { return segment.scalars >= 0; });
}

/// Writes the first slots that the host has set. Their number must not exceed
/// the limit of a launch.
zero_rt_status CudaProgram::runScalars(const Function &function) {
  constexpr size_t most = ZERO_RT_CUDA_MOST_GIVEN;
  size_t count = std::min(given.size(), most);
  GivenSlot passed[most] = {};
  std::copy_n(given.begin(), count, passed);
  auto number = int64_t(count);
  void *addresses[2 + 2 * most] = {&slots, &number};
  for (size_t i = 0; i < most; ++i) {
    addresses[2 + 2 * i] = &passed[i].slot;
    addresses[3 + 2 * i] = &passed[i].value;
  }
  ZERO_RT_TRY(
      device.launch(function.handle, /*blocks=*/1, /*threads=*/1, addresses));
  given.erase(given.begin(), given.begin() + number);
  return ZERO_RT_OK;
}

zero_rt_status CudaProgram::writeSlots() {
  while (!given.empty())
    ZERO_RT_TRY(runScalars(giveSlots));
  return ZERO_RT_OK;
}

zero_rt_status CudaProgram::runScalars(int32_t program) {
  while (given.size() > ZERO_RT_CUDA_MOST_GIVEN)
    ZERO_RT_TRY(runScalars(giveSlots));
  return runScalars(scalarPrograms[size_t(program)]);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

zero_rt_status CudaProgram::beginGraphs() {
  graphs.begin();
  device.setGraphs(device.wantsGraphs() ? &graphs : nullptr);
  return ZERO_RT_OK;
}

zero_rt_status CudaProgram::endGraphs() {
  zero_rt_status status = graphs.flush(device.stream);
  device.setGraphs(nullptr);
  return status;
}
