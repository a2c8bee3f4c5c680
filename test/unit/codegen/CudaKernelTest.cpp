//===- CudaKernelTest.cpp - CUDA kernels give the bits of CPU kernels -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaEmulator.h"

#include <algorithm>
#include <cmath>

using namespace zero::test;

namespace {

// Widths of 2, 4 and 8; with and without scalars and sums.
const char *const kKernels = R"(
zrt.kernel @store [read bf16, write f32] scalars 0 {
^body(%g: bf16):
  %x = arith.extf %g : bf16 to f32
  zrt.yield %x : f32
}
zrt.kernel @narrow [read f16, update bf16] scalars 0 {
^body(%g: f16, %a: bf16):
  %x = arith.extf %g : f16 to f32
  %y = arith.extf %a : bf16 to f32
  %s = arith.addf %x, %y : f32
  %r = arith.truncf %s : f32 to bf16
  zrt.yield %r : bf16
}
zrt.kernel @wide [read f64, read i32, update f64, write f16] scalars 1 {
^body(%x: f64, %n: i32, %y: f64, %s: f64):
  %a = math.absf %x : f64
  %r = math.sqrt %a : f64
  %c = math.copysign %r, %y : f64
  %less = arith.cmpf olt, %c, %s : f64
  %t = math.fma %c, %s, %y : f64
  %u = arith.select %less, %t, %c : f64
  %i = arith.sitofp %n : i32 to f64
  %d = arith.divf %u, %s : f64
  %m = arith.maximumf %d, %i : f64
  %h = arith.truncf %m : f64 to f16
  zrt.yield %m, %h : f64, f16
}
zrt.kernel @update [read bf16, update f32, update f32, write bf16] scalars 4
    predicated {
^body(%g: bf16, %p: f32, %v: f32, %skip: f64, %lr: f64, %beta: f64, %eps: f64):
  %l = arith.truncf %lr : f64 to f32
  %b = arith.truncf %beta : f64 to f32
  %e = arith.truncf %eps : f64 to f32
  %x = arith.extf %g : bf16 to f32
  %x2 = arith.mulf %x, %x : f32
  %v0 = arith.mulf %v, %b : f32
  %v1 = arith.addf %v0, %x2 : f32
  %r = math.sqrt %v1 : f32
  %d = arith.addf %r, %e : f32
  %q = arith.divf %x, %d : f32
  %p1 = math.fma %q, %l, %p : f32
  %out = arith.truncf %p1 : f32 to bf16
  zrt.yield %p1, %v1, %out : f32, f32, bf16
}
zrt.kernel @choose [read f32, read f32, write f32, write f32, write f32]
    scalars 0 {
^body(%a: f32, %b: f32):
  %max = arith.maxnumf %a, %b : f32
  %min = arith.minnumf %b, %a : f32
  %one = arith.constant 1.0 : f32
  %d = arith.subf %a, %b : f32
  %sign = math.copysign %one, %d : f32
  zrt.yield %max, %min, %sign : f32, f32, f32
}
zrt.kernel @squares_f32 [read f32] scalars 0 sums {
^body(%g: f32):
  %x = arith.extf %g : f32 to f64
  %s = arith.mulf %x, %x : f64
  zrt.yield %s : f64
}
zrt.kernel @squares_bf16 [read bf16] scalars 0 sums {
^body(%g: bf16):
  %x = arith.extf %g : bf16 to f64
  %s = arith.mulf %x, %x : f64
  zrt.yield %s : f64
}
zrt.kernel @scale_and_sum [update f64] scalars 2 predicated sums {
^body(%x: f64, %skip: f64, %factor: f64):
  %y = arith.mulf %x, %factor : f64
  zrt.yield %y, %y : f64, f64
}
zrt.slots @a [0.0, 0.0]
zrt.slots @b [0.0]
zrt.scalars @half {
  %x = zrt.load_slot @a[1]
  %r = math.sqrt %x : f64
  %c = arith.constant 0.3 : f64
  %y = arith.divf %r, %c : f64
  zrt.store_slot %y, @b[0]
  zrt.yield
}
)";

struct Operand {
  enum Type { f16, bf16, f32, f64, i32 } type;
  int64_t size() const {
    static const int64_t sizes[] = {2, 2, 4, 8, 4};
    return sizes[type];
  }
};

struct Kernel {
  const char *name;
  std::vector<Operand> operands;
  int64_t numScalars;
  bool sums;
};

const std::vector<Kernel> &getKernels() {
  using O = Operand;
  static const std::vector<Kernel> kernels = {
      {"store", {{O::bf16}, {O::f32}}, 0, false},
      {"narrow", {{O::f16}, {O::bf16}}, 0, false},
      {"wide", {{O::f64}, {O::i32}, {O::f64}, {O::f16}}, 1, false},
      {"update", {{O::bf16}, {O::f32}, {O::f32}, {O::bf16}}, 4, false},
      {"squares_f32", {{O::f32}}, 0, true},
      {"squares_bf16", {{O::bf16}}, 0, true},
      {"scale_and_sum", {{O::f64}}, 2, true}};
  return kernels;
}

/// Memory with guards, at |offset| elements behind a multiple of 64 bytes.
class Memory {
public:
  Memory(const Operand &operand, int64_t elements, int64_t offset,
         std::mt19937 &random)
      : words(size_t(elements * operand.size() / 8 + 64)) {
    for (uint64_t &word : words)
      word = 0xa5a5a5a5a5a5a5a5;
    begin = (kGuard + 63) / 64 * 64 + offset * operand.size();
    std::normal_distribution<double> normal(0, 4);
    // Among them zeros of both signs, infinities and, of f32, subnormals.
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, 1e-41};
    for (int64_t i = 0; i < elements; ++i)
      set(operand.type, i,
          random() % 16 || operand.type == Operand::i32
              ? normal(random)
              : special[random() % 5]);
  }
  char *data() { return base() + begin; }
  bool operator==(Memory &other) {
    return std::memcmp(base(), other.base(), words.size() * 8 - 64) == 0;
  }

private:
  static constexpr int64_t kGuard = 64;
  char *base() {
    auto address = reinterpret_cast<uintptr_t>(words.data());
    return reinterpret_cast<char *>((address + 63) / 64 * 64);
  }
  template <typename T> void put(int64_t i, T value) {
    std::memcpy(data() + i * int64_t(sizeof(T)), &value, sizeof(T));
  }
  void set(Operand::Type type, int64_t i, double value) {
    switch (type) {
    case Operand::f16:
      return put(i, _Float16(value));
    case Operand::bf16: {
      auto narrow = float(value);
      uint32_t bits;
      std::memcpy(&bits, &narrow, sizeof(bits));
      return put(i, uint16_t(bits >> 16));
    }
    case Operand::f32:
      return put(i, float(value));
    case Operand::f64:
      return put(i, value);
    case Operand::i32:
      return put(i, int32_t(value));
    }
  }

  std::vector<uint64_t> words;
  int64_t begin;
};

/// Each segment is one of |rows|, with scalars of its own, cut at multiples of
/// 4096 as a runtime does.
std::vector<zero_rt_cuda_piece>
cut(const std::vector<zero_rt_cuda_piece> &rows) {
  std::vector<zero_rt_cuda_piece> pieces;
  for (const zero_rt_cuda_piece &row : rows)
    for (int64_t begin = row.begin; begin < row.end;) {
      int64_t end = std::min(row.end, (begin / 4096 + 1) * 4096);
      pieces.push_back({begin, end, row.scalars});
      begin = end;
    }
  return pieces;
}

/// The sum of |terms|, as all targets take it.
double sumAll(std::vector<double> terms) {
  do {
    std::vector<double> sums;
    for (size_t begin = 0; begin < terms.size(); begin += 4096) {
      double lanes[32] = {};
      for (size_t i = begin; i < std::min(begin + 4096, terms.size()); ++i)
        lanes[i % 32] += terms[i];
      for (int half : {16, 8, 4, 2, 1})
        for (int i = 0; i < half; ++i)
          lanes[i] += lanes[i + half];
      sums.push_back(lanes[0]);
    }
    terms = sums;
  } while (terms.size() > 1);
  return terms.empty() ? 0 : terms[0];
}

/// What a kernel that sums has for |pieces| pieces.
struct Sums {
  explicit Sums(size_t pieces) : partials(2 * pieces + 2, -7), arrivals(4) {}
  std::vector<double> partials;
  std::vector<int32_t> arrivals;
  double sum = -7;
};

class CudaKernel : public testing::Test {
protected:
  static void SetUpTestSuite() {
    cpu = std::make_unique<KernelLibrary>(kKernels, Target{"x86-64-v3", 8});
    cuda = std::make_unique<CudaEmulator>(kKernels);
  }
  static void TearDownTestSuite() {
    cpu.reset();
    cuda.reset();
  }
  void SetUp() override {
    if (zero::resolveCpuName("native").empty())
      GTEST_SKIP() << "needs AVX2";
  }

  /// Runs |kernel| over |rows| both ways, on arrays of which number i begins
  /// |offset| * i elements behind a round address.
  void compare(const Kernel &kernel, std::vector<zero_rt_cuda_piece> rows,
               const std::vector<double> &slots, int64_t offset) {
    int64_t elements = rows.empty() ? 0 : rows.back().end;
    unsigned seed = unsigned(elements) + 7;
    std::vector<Memory> expected, actual;
    for (std::vector<Memory> *memory : {&expected, &actual}) {
      std::mt19937 random(seed);
      for (const Operand &operand : kernel.operands)
        memory->emplace_back(operand, elements,
                             offset * int64_t(memory->size() + 1), random);
    }
    std::vector<zero_rt_cuda_piece> pieces = cut(rows);
    Sums sums(pieces.size());
    std::vector<double> expectedSums(pieces.size());
    std::vector<void *> operands;
    for (Memory &memory : expected)
      operands.push_back(memory.data());
    for (const zero_rt_cuda_piece &row : rows)
      cpu->kernel(kernel.name)(operands.data(), slots.data() + row.scalars,
                               row.begin, row.end, expectedSums.data());
    CudaLaunch launch = {{},
                         slots.data(),
                         pieces,
                         sums.partials.data(),
                         sums.arrivals.data(),
                         &sums.sum};
    for (Memory &memory : actual)
      launch.arrays.push_back(memory.data());
    cuda->launch(kernel.name, launch);

    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(expected[i] == actual[i])
          << kernel.name << ", operand " << i << ", " << elements
          << " elements, offset " << offset;
    if (!kernel.sums || pieces.empty())
      return;
    double sum = sumAll(expectedSums);
    EXPECT_EQ(std::memcmp(&sums.sum, &sum, 8), 0)
        << kernel.name << ", " << elements << " elements, offset " << offset;
    EXPECT_EQ(std::memcmp(sums.partials.data(), expectedSums.data(),
                          expectedSums.size() * 8),
              0)
        << kernel.name << ", " << elements << " elements, offset " << offset;
    EXPECT_EQ(sums.arrivals, std::vector<int32_t>(4)) << kernel.name;
  }

  static std::unique_ptr<KernelLibrary> cpu;
  static std::unique_ptr<CudaEmulator> cuda;
};

std::unique_ptr<KernelLibrary> CudaKernel::cpu;
std::unique_ptr<CudaEmulator> CudaKernel::cuda;

} // namespace

// Not skipped, with a factor, epsilon and the like; then skipped.
static const std::vector<double> kSlots = {0, 0.1, 0.9, 1e-8, 1, 0.5, 2, 3};

TEST_F(CudaKernel, GivesTheBitsOfTheCpu) {
  for (const Kernel &kernel : getKernels())
    for (int64_t size : kSizes)
      for (int64_t offset : {0, 1, 8})
        compare(kernel, {{0, size, kernel.numScalars == 1 ? 2 : 0}}, kSlots,
                offset);
}

TEST_F(CudaKernel, RunsSegmentsWithScalarsOfTheirOwn) {
  for (const Kernel &kernel : getKernels())
    if (!kernel.sums)
      for (int64_t offset : {0, 3})
        compare(kernel, {{0, 1, 1}, {1, 3, 4}, {3, 4100, 0}, {4103, 9000, 3}},
                kSlots, offset);
}

TEST_F(CudaKernel, DoesNothingWhereItsFirstScalarSaysSo) {
  for (const Kernel &kernel : getKernels())
    for (double skip : {1.0, -0.0, double(NAN)}) {
      std::vector<double> slots = kSlots;
      slots[0] = skip;
      compare(kernel, {{0, 5000, 0}}, slots, 0);
    }
}

// Of 0 and -0 one and the same, of a number and a NaN the number; and the sign
// of a NaN, which machines give differently, is that of 0.
TEST_F(CudaKernel, ChoosesAsAnyMachineDoes) {
  const float inf = INFINITY, nan = NAN, tiny = 1e-41F;
  std::vector<float> a, b, max, min, sign;
  auto add = [&](float x, float y, float larger, float smaller, float s) {
    a.push_back(x);
    b.push_back(y);
    max.push_back(larger);
    min.push_back(smaller);
    sign.push_back(s);
  };
  for (int i = 0; i < 5; ++i) { // in vectors, and behind them
    add(0.0F, -0.0F, 0.0F, -0.0F, 1);
    add(-0.0F, 0.0F, 0.0F, -0.0F, -1);
    add(nan, 2, 2, 2, 1);
    add(-2, -nan, -2, -2, 1);
    add(inf, inf, inf, inf, 1); // inf - inf
    add(-inf, inf, inf, -inf, -1);
    add(tiny, 2 * tiny, 2 * tiny, tiny, -1);
  }
  auto size = int64_t(a.size());
  std::vector<float> out[2][3];
  for (auto &arrays : out)
    for (std::vector<float> &array : arrays)
      array.resize(a.size(), 77);
  void *operands[] = {a.data(), b.data(), out[0][0].data(), out[0][1].data(),
                      out[0][2].data()};
  cpu->kernel("choose")(operands, nullptr, 0, size, nullptr);
  cuda->launch("choose", {{a.data(), b.data(), out[1][0].data(),
                           out[1][1].data(), out[1][2].data()},
                          kSlots.data(),
                          {{0, size, 0}}});
  for (auto &arrays : out) {
    EXPECT_EQ(std::memcmp(arrays[0].data(), max.data(), a.size() * 4), 0);
    EXPECT_EQ(std::memcmp(arrays[1].data(), min.data(), a.size() * 4), 0);
    EXPECT_EQ(arrays[2], sign);
  }
}

// One array as two operands, and one that is not written.
TEST_F(CudaKernel, MayReadAndWriteOneArray) {
  std::vector<float> p(100), expected(100);
  for (int i = 0; i < 100; ++i)
    p[size_t(i)] = expected[size_t(i)] = float(i) - 50;
  std::vector<uint16_t> g(100, 0x3f80), out(100), expectedOut(100);
  void *operands[] = {g.data(), expected.data(), expected.data(),
                      expectedOut.data()};
  cpu->kernel("update")(operands, kSlots.data(), 0, 100, nullptr);
  cuda->launch("update", {{g.data(), p.data(), p.data(), out.data()},
                          kSlots.data(),
                          {{0, 100, 0}}});
  EXPECT_EQ(std::memcmp(p.data(), expected.data(), 400), 0);
  EXPECT_EQ(out, expectedOut);
}

// One group, of more pieces than a block has; as many as it can have; and
// several groups, whose sums are summed. Whichever warp comes last, and as
// often as one likes.
TEST_F(CudaKernel, SumsPartialSumsAsARuntimeDoes) {
  std::vector<float> in(2 * 4097);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = float(std::sin(double(i)));
  for (int64_t count : {1, 2, 9, 71, 4096, 4097}) {
    std::vector<zero_rt_cuda_piece> pieces;
    std::vector<double> expected;
    for (int64_t i = 0; i < count; ++i) { // short ones, for the test's sake
      pieces.push_back({2 * i, 2 * i + 2, 0});
      expected.push_back(double(in[2 * i]) * double(in[2 * i]) +
                         double(in[2 * i + 1]) * double(in[2 * i + 1]));
    }
    Sums sums(pieces.size());
    // A few warps in many orders.
    for (int launch = 0; launch < (count < 10 ? 500 : 2); ++launch) {
      std::fill(sums.partials.begin(), sums.partials.end(), -7);
      sums.sum = -7;
      cuda->launch("squares_f32", {{in.data()},
                                   nullptr,
                                   pieces,
                                   sums.partials.data(),
                                   sums.arrivals.data(),
                                   &sums.sum});
      EXPECT_EQ(sums.sum, sumAll(expected)) << count;
      EXPECT_EQ(sums.arrivals, std::vector<int32_t>(4)) << count;
    }
    // Nothing is written behind the sums of groups.
    size_t written = size_t(count) + (count > 4096 ? 2 : 0);
    EXPECT_EQ(std::count(sums.partials.begin(), sums.partials.end(), -7.0),
              int64_t(sums.partials.size() - written));
  }
}

TEST_F(CudaKernel, RunsScalarPrograms) {
  double slots[] = {0, 2, 0}, expected[] = {0, 2, 0};
  cpu->scalars("half")(expected);
  cuda->runScalars("half", slots);
  EXPECT_EQ(std::memcmp(slots, expected, sizeof(slots)), 0);
  EXPECT_EQ(slots[2], std::sqrt(2.0) / 0.3);
}

// Before the program begins, of one slot the last; and of no program.
TEST_F(CudaKernel, WritesTheSlotsThatItIsGiven) {
  std::vector<double> slots(12, -7);
  cuda->runScalars("half", slots.data(), {{1, 9}, {5, NAN}, {2, 8}, {1, 2}});
  EXPECT_EQ(slots[1], 2);
  EXPECT_EQ(slots[2], std::sqrt(2.0) / 0.3);
  EXPECT_TRUE(std::isnan(slots[5]));
  EXPECT_EQ(std::count(slots.begin(), slots.end(), -7), 9);
  std::vector<std::pair<int64_t, double>> most;
  for (int64_t i = 0; i < 8; ++i)
    most.emplace_back(i + 3, double(i));
  cuda->runScalars("", slots.data(), most);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(slots[size_t(i + 3)], double(i));
  EXPECT_EQ(slots[1], 2);
  EXPECT_EQ(slots[11], -7);
}
