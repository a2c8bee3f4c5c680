//===- CudaEmulator.cpp - CUDA kernels on a CPU ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaEmulator.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/bit.h"

#include <condition_variable>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace zero;
using namespace zero::test;

static constexpr int kWarpSize = 32;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

namespace {

/// The threads of a warp, of which each runs on a thread of this machine.
class Warp {
public:
  /// What a member of |mask| that calls it with its |lane| gets from the one
  /// whose lane differs by |distance|, as soon as all members have called.
  uint32_t exchange(uint32_t mask, int lane, uint32_t value, int distance) {
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_TRUE(mask >> lane & 1) << "lane " << lane << " is no member";
    EXPECT_TRUE(mask >> (lane ^ distance) & 1) << "nor is its partner";
    Team &team = teams[llvm::countr_zero(mask)];
    team.given[lane] = value;
    uint64_t now = team.turn;
    if (++team.arrived == llvm::popcount(mask)) {
      std::copy_n(team.given, kWarpSize, team.taken);
      team.arrived = 0;
      ++team.turn;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return team.turn != now; });
    return team.taken[lane ^ distance];
  }

private:
  struct Team {
    uint32_t given[kWarpSize] = {};
    uint32_t taken[kWarpSize] = {};
    int arrived = 0;
    uint64_t turn = 0;
  };
  std::mutex mutex;
  std::condition_variable changed;
  Team teams[kWarpSize]; // by their first lane
};

struct Place {
  int32_t thread = 0;
  int32_t block = 0;
  Warp *warp = nullptr;
};

thread_local Place place;

int32_t getThread() { return place.thread; }
int32_t getBlock() { return place.block; }
int32_t exchange(int32_t mask, int32_t value, int32_t distance) {
  return int32_t(place.warp->exchange(uint32_t(mask), place.thread % kWarpSize,
                                      uint32_t(value), distance));
}

} // namespace

/// Runs |kernel| in each thread of |blocks| blocks, one after the other.
template <typename Kernel>
static void runAlone(int64_t blocks, int threads, const Kernel &kernel) {
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < threads; ++thread) {
      place = {thread, int32_t(block), nullptr};
      kernel();
    }
}

namespace {
/// A thread of this machine for each lane of a warp, kept: kernels are many.
class Lanes {
public:
  Lanes() {
    for (int lane = 0; lane < kWarpSize; ++lane)
      threads.emplace_back([this, lane] { work(lane); });
  }
  ~Lanes() {
    start(nullptr);
    for (std::thread &thread : threads)
      thread.join();
  }
  /// Calls |job| with each lane at once.
  void run(const std::function<void(int)> &job) {
    start(&job);
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return busy == 0; });
  }

private:
  void start(const std::function<void(int)> *next) {
    std::lock_guard<std::mutex> lock(mutex);
    job = next;
    busy = kWarpSize;
    ++turn;
    changed.notify_all();
  }
  void work(int lane) {
    for (uint64_t done = 0;;) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return turn != done; });
      done = turn;
      if (!job)
        return;
      lock.unlock();
      (*job)(lane);
      lock.lock();
      if (--busy == 0)
        changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread> threads;
  const std::function<void(int)> *job = nullptr;
  uint64_t turn = 0;
  int busy = 0;
};
} // namespace

/// The same with the threads of a warp at once, which can talk to each other.
template <typename Kernel>
static void runInWarps(int64_t blocks, const Kernel &kernel) {
  static Lanes lanes;
  constexpr int kWarps = kCudaThreads / kWarpSize;
  std::deque<Warp> warps(blocks * kWarps);
  lanes.run([&](int lane) {
    for (int64_t i = 0; i < blocks * kWarps; ++i) {
      place = {int32_t(i % kWarps) * kWarpSize + lane, int32_t(i / kWarps),
               &warps[i]};
      kernel();
    }
  });
}

//===----------------------------------------------------------------------===//
// Compiling for it
//===----------------------------------------------------------------------===//

/// Makes calls of what a CPU does not have, through pointers that are exported.
static void replaceOps(ModuleOp module) {
  OpBuilder builder(module.getBodyRegion());
  Location loc = module.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  for (StringRef name : {"get_thread", "get_block", "exchange"})
    builder
        .create<LLVM::GlobalOp>(loc, pointer, /*isConstant=*/false,
                                LLVM::Linkage::External, name, Attribute())
        .getInitializerRegion();
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    OpBuilder body(module.getContext());
    body.setInsertionPointToEnd(&global.getInitializerRegion().emplaceBlock());
    body.create<LLVM::ReturnOp>(loc, body.create<LLVM::ZeroOp>(loc, pointer));
  }
  auto call = [&](Operation *op, StringRef name, ValueRange operands) {
    OpBuilder at(op);
    Type i32 = at.getI32Type();
    Value address = at.create<LLVM::AddressOfOp>(loc, pointer, name);
    SmallVector<Value> all{at.create<LLVM::LoadOp>(loc, pointer, address)};
    llvm::append_range(all, operands);
    auto type = LLVM::LLVMFunctionType::get(
        i32, SmallVector<Type>(operands.size(), i32));
    auto result = at.create<LLVM::CallOp>(loc, type, all);
    op->replaceAllUsesWith(result);
    op->erase();
  };
  module.walk([&](Operation *op) {
    if (isa<NVVM::ThreadIdXOp>(op))
      call(op, "get_thread", {});
    else if (isa<NVVM::BlockIdXOp>(op))
      call(op, "get_block", {});
    else if (auto shuffle = dyn_cast<NVVM::ShflOp>(op))
      call(op, "exchange",
           {shuffle.getThreadMask(), shuffle.getVal(), shuffle.getOffset()});
  });
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    function->removeAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
    function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName());
  }
}

CudaEmulator::CudaEmulator(const std::string &symbols) {
  Source source;
  OwningOpRef<ModuleOp> parsed = source.parse(symbols);
  if (!parsed) {
    ADD_FAILURE() << "the test's program does not parse";
    return;
  }
  auto program = *parsed->getOps<zrt::ProgramOp>().begin();
  llvm::StringMap<int64_t> firstSlots;
  int64_t numSlots = 0;
  for (auto slots : program.getOps<zrt::SlotsOp>()) {
    firstSlots[slots.getSymName()] = numSlots;
    numSlots += slots.size();
  }
  compile(program, [&](FlatSymbolRefAttr slots) {
    return firstSlots.lookup(slots.getValue());
  });
}

CudaEmulator::CudaEmulator(
    zrt::ProgramOp program,
    llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  compile(program, getFirstSlot);
}

void CudaEmulator::compile(
    zrt::ProgramOp program,
    llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  FailureOr<OwningOpRef<ModuleOp>> module =
      emitCudaModule(program, getFirstSlot, code);
  ASSERT_TRUE(succeeded(module));
  replaceOps(**module);

  handle = loadCode(**module, directory, "x86-64-v3");
  ASSERT_NE(handle, nullptr);
  auto set = [&](const char *name, auto *function) {
    *static_cast<decltype(function) *>(find(name)) = function;
  };
  set("get_thread", getThread);
  set("get_block", getBlock);
  set("exchange", exchange);
}

CudaEmulator::~CudaEmulator() {
  if (handle)
    dlclose(handle);
}

void *CudaEmulator::find(const std::string &name) const {
  void *symbol = handle ? dlsym(handle, name.c_str()) : nullptr;
  EXPECT_NE(symbol, nullptr) << "no symbol " << name;
  return symbol;
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

/// Calls |function| with |arguments|, of which each fits a register.
template <typename... Passed>
static void call(void *function, const std::vector<uint64_t> &arguments,
                 Passed... passed) {
  if constexpr (sizeof...(Passed) < 24) {
    if (sizeof...(Passed) < arguments.size())
      return call(function, arguments, passed..., arguments[sizeof...(Passed)]);
  }
  reinterpret_cast<void (*)(Passed...)>(function)(passed...);
}

void CudaEmulator::run(const std::string &name, int64_t blocks, int threads,
                       const std::vector<uint64_t> &arguments) const {
  void *kernel = find(name);
  ASSERT_LE(arguments.size(), 24u) << "call knows no more";
  auto once = [&] { call(kernel, arguments); };
  // Threads of a kernel that sums talk to each other.
  bool sums = name == code.sum.name;
  for (const auto &function : code.functions)
    sums |= function.second.name == name && function.second.piecesPerBlock > 1;
  if (sums)
    runInWarps(blocks, once);
  else
    runAlone(blocks, threads, once);
}

static uint64_t addressOf(const void *data) {
  return uint64_t(reinterpret_cast<uintptr_t>(data));
}

void CudaEmulator::launch(const std::string &name,
                          const CudaLaunch &launch) const {
  CudaFunction function =
      name == "sum" ? code.sum : code.functions.lookup(name);
  std::vector<uint64_t> arguments;
  for (void *array : launch.arrays)
    arguments.push_back(addressOf(array));
  arguments.push_back(addressOf(launch.slots));
  arguments.push_back(addressOf(launch.pieces.data()));
  arguments.push_back(launch.pieces.size());
  arguments.push_back(addressOf(launch.partials));
  int64_t perBlock = function.piecesPerBlock;
  run(function.name, (int64_t(launch.pieces.size()) + perBlock - 1) / perBlock,
      kCudaThreads, arguments);
}

void CudaEmulator::runScalars(const std::string &name, double *slots) const {
  run(code.functions.lookup(name).name, 1, 1, {addressOf(slots)});
}
